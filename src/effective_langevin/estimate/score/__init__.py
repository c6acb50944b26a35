"""The score s = grad ln p, learned from samples."""

from ..networks import MLP, UNet1D
from .denoising import DenoisingScore
from .evidence import LearnedScore, ScoreEvidence
from .extrapolated import Extrapolated
from .fit_score import ScoreFit, ScoreStrategy, estimate_score
from .gaussian import Gaussian
from .kgmm import KGMM
from .score import Score
