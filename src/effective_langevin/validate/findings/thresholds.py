"""Every threshold of the verdict, in one place. Up to the first value of a pair a difference does not matter in
practice; beyond the second it spoils the model.

The values are judgements, not yet calibrated on replicas; chances are stated for all comparisons of a test together.
"""

import numpy as np

LEVELS = {
    "pdf_kl_mean": (0.02, 0.1),
    "pdf_kl_max": (0.02, 0.1),
    "pdf_kl_original": (0.02, 0.1),
    "covariance_error": (0.05, 0.3),
    "acf_rmse": (0.03, 0.1),
    "increment_error": (0.1, np.inf),
    "stein_error": (0.05, 0.2),
    "mobility_error": (0.05, 0.3),
}
MOBILITY_ERROR = (0.05, 0.3)  # sampling error of Phi, relative
HORIZON_TREND = (0.1, np.inf)  # change of Phi with the horizon, relative
LIFT = (0.0, 0.1)  # change of Phi that made the diffusion positive definite, relative
OUTSIDE = (0.002, 0.05)  # share of simulated states beyond the range of the data

DETECTION = 2.0  # standard errors beyond the sampling error of the data from which a difference is real
# What a relative error of Phi can do: to an autocorrelation, d exp(-kt) <= dk / (e k); to an increment, as much.
MOBILITY_GAIN = {"acf_rmse": 1 / np.e, "increment_error": 1.0}
CIRCULATION_CHANCE = 0.0027  # of a circulation that is not there: three standard errors for a single pair
STEP_CHANCE = 0.002  # of state-dependent steps that are not there
STEP_SIZE = 0.25  # of the mean squared step: smaller differences are not mentioned
FEW_GROUPS = 10  # with fewer independent parts of the record, the errors themselves are uncertain
FAST_ANGLE = 0.1  # correlation left after one sampling interval, below which a mobility is a lower bound
ENOUGH_HELD_OUT = 0.5  # relative error expected of a held-out fifth, beyond which it is not mentioned
