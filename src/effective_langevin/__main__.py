"""`python -m effective_langevin` is `effective-langevin`."""

from .cli import main

if __name__ == "__main__":
    main()
