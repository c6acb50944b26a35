"""What closes the equation once the score is known: the current velocity nu(x) and the diffusion D(x)."""
