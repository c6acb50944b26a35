"""What was found, in words: one record for the findings of the diagnosis and of the validation."""
