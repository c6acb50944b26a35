"""Where a measured number becomes a finding: every decision of the diagnosis, with its reason.

Chances of false alarms are in `statistics.resampling`, the slope of smooth motion in `statistics.regime`, the critical
value of a random walk in `statistics.stationarity_tests`.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Thresholds:
    """Pairs are (worth a note, a warning); a third value means that a fit is meaningless."""

    # Regime.
    clearly_smooth: float = 0.5  # slope of log(QV / h) of one variable, half way between a diffusion and smooth motion
    coarse: tuple[float, float] = (0.3, 0.5)  # dt / fastest time: beyond it, estimators of order dt are off by as much
    least_noise: float = 1e-4  # of the variance, 1 % of the standard deviation: less has no effect on a fit
    least_memory: float = 0.01  # partial correlation that measurement noise must leave between past and future
    # Memory: partial correlation of future and past given the present.
    memory: tuple[float, float] = (0.03, 0.1)  # its square is the share of variance that a Markov model misses
    # Stationarity.
    drift: tuple[float, float] = (0.05, 0.5)  # in standard deviations: below 0.05 a note, above 0.5 no fit
    undecayed: float = 0.3  # autocorrelation at the longest lag: a random walk has as much in any record
    short_record: float = 60.0  # integral times: the autocorrelation of a random walk decays within a tenth of a record
    # Seasonality.
    cycle_share: float = 0.01  # of the variance
    # Distribution.
    tail_exponent: float = 4.0  # below it the fourth moment, hence the error of a variance, is infinite
    kurtosis: float = 1.0  # excess; that of a Laplace law is 3
    sure: float = 3.5  # standard errors of the kurtosis, whose own error is heavy-tailed
    outlier: float = 20.0  # standard deviations, by the quartiles, from the median
    few_outliers: float = 1e-3  # of the samples: more of them are a tail
    crowded_edge: float = 0.002  # of the samples within 1 % of the range: ten times what a Gaussian tail has there
    # Sample size.
    covariance_error: tuple[float, float, float] = (0.1, 0.3, 1.0)  # relative, sqrt((D + 1) / independent samples)
    least_variance: tuple[float, float] = (1e-4, 1e-8)  # of a direction: steep score, and none at all
    lost_pairs: float = 0.2  # share of the pairs one integral time apart that gaps remove
    # Symmetry.
    visible: float = 0.1  # standard deviations: a violation of this size must show before a symmetry is suggested
    missed_symmetry: float = 0.01  # chance to miss a symmetry that is there


THRESHOLDS = Thresholds()
