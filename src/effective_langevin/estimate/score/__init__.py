"""The score s = grad ln p, learned from samples."""

from .base import Score, ScoreFit, estimate_score
from .denoising import DenoisingScore
from .extrapolated import Extrapolated
from .gaussian import Gaussian
from .kgmm import KGMM
from .networks import MLP, UNet1D

__all__ = ["KGMM", "MLP", "DenoisingScore", "Extrapolated", "Gaussian", "Score", "ScoreFit", "UNet1D", "estimate_score"]
