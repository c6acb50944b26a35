"""Stage 5: what the model predicts against what the data say, in numbers, pictures and words."""

from .validation import Validation, validate

__all__ = ["Validation", "validate"]
