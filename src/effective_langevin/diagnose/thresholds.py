"""Where a measured number becomes a finding: every decision of the diagnosis, with its reason.

Chances of false alarms are in `statistics.resampling`, the slope of smooth motion in `statistics.regime`, the critical
value of a random walk in `statistics.stationarity_tests`. Pairs are (worth a note, a warning); a third value means that
a fit is meaningless.
"""

# Regime.
CLEARLY_SMOOTH = 0.5  # slope of log(QV / h) of one variable, half way between a diffusion and smooth motion
COARSE = (0.3, 0.5)  # dt / fastest time: beyond it, estimators of order dt are off by as much
LEAST_NOISE = 1e-4  # of the variance, 1 % of the standard deviation: less has no effect on a fit
LEAST_MEMORY = 0.01  # partial correlation that measurement noise must leave between past and future
# Memory: partial correlation of future and past given the present.
MEMORY = (0.03, 0.1)  # its square is the share of variance that a Markov model misses
# Stationarity.
DRIFT = (0.05, 0.5)  # in standard deviations: below 0.05 a note, above 0.5 no fit
UNDECAYED = 0.3  # autocorrelation at the longest lag: a random walk has as much in any record
SHORT_RECORD = 60.0  # integral times: the autocorrelation of a random walk decays within a tenth of a record
# Seasonality.
CYCLE_SHARE = 0.01  # of the variance
# Distribution.
TAIL_EXPONENT = 4.0  # below it the fourth moment, hence the error of a variance, is infinite
KURTOSIS = 1.0  # excess; that of a Laplace law is 3
SURE = 3.5  # standard errors of the kurtosis, whose own error is heavy-tailed
OUTLIER = 20.0  # standard deviations, by the quartiles, from the median
FEW_OUTLIERS = 1e-3  # of the samples: more of them are a tail
CROWDED_EDGE = 0.002  # of the samples within 1 % of the range: ten times what a Gaussian tail has there
# Sample size.
COVARIANCE_ERROR = (0.1, 0.3, 1.0)  # relative, sqrt((D + 1) / independent samples)
LEAST_VARIANCE = (1e-4, 1e-8)  # of a direction: steep score, and none at all
LOST_PAIRS = 0.2  # share of the pairs one integral time apart that gaps remove
# Symmetry.
VISIBLE = 0.1  # standard deviations: a violation of this size must show before a symmetry is suggested
MISSED_SYMMETRY = 0.01  # chance to miss a symmetry that is there
