"""What a validation found, in words with levels: the verdict, notes on what was done, and the model described."""
