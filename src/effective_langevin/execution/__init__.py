"""How programs run fast: batches, compilation, devices. Nothing scientific in here."""
