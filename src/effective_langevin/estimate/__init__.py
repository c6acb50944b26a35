"""Stage 2: the partition, the score and the mobility. Everything in here is in standardised units."""
