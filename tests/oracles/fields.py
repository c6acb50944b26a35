"""Linear processes on a ring of points with exact answers, and their series without time-stepping error."""

import numpy as np
from scipy.linalg import circulant, expm

import effective_langevin as el


def ring_process(points: int = 8) -> el.systems.OrnsteinUhlenbeck:
    """No point is special, but one direction is: neighbours couple with different strengths, so that waves circulate.

    The noise is correlated between neighbours; no mode has the variance or the rate of another.
    """
    column = np.zeros(points)
    column[[0, 1, -1]] = 1.5, -1.2, 0.3
    noise = np.zeros(points)
    noise[[0, 1]] = 1.0, 0.4
    return el.systems.OrnsteinUhlenbeck(circulant(column), circulant(noise))


def reversible_ring_process(points: int = 8) -> el.systems.OrnsteinUhlenbeck:
    """No point and no direction is special."""
    column = np.zeros(points)
    column[[0, 1, -1]] = 1.5, -0.4, -0.4
    return el.systems.OrnsteinUhlenbeck(circulant(column), np.eye(points))


def uneven_ring_process(points: int = 8) -> el.systems.OrnsteinUhlenbeck:
    """The same as `ring_process`, but the noise is weaker at one point."""
    process = ring_process(points)
    strength = np.ones(points)
    strength[2] = 0.5
    return el.systems.OrnsteinUhlenbeck(process.drift_matrix, strength[:, None] * process.noise_matrix)


def exact_series(process, dt: float, members: int, steps: int, seed: int) -> el.TimeSeries:
    """x(t + h) = E x(t) + noise of covariance C - E C E^T with E = e^{-Ah}, started in the steady state."""
    rng = np.random.default_rng(seed)
    covariance, decay = process.covariance, expm(-process.drift_matrix * dt)
    values, vectors = np.linalg.eigh(covariance - decay @ covariance @ decay.T)
    kick = vectors * np.sqrt(np.maximum(values, 0))
    out = np.empty((steps, members, len(covariance)))
    out[0] = rng.multivariate_normal(np.zeros(len(covariance)), covariance, members)
    for t in range(1, steps):
        out[t] = out[t - 1] @ decay.T + rng.normal(size=out[t].shape) @ kick.T
    return el.TimeSeries(out.transpose(1, 0, 2), dt)


class OscillatorRing:
    """x'' = -damping x' - K x + sqrt(2 damping) noise with a circulant K: smooth at short times, K^-1 its covariance.

    Mode m has the stiffness k_m, the variance 1 / k_m and the autocorrelation of a damped oscillator.
    """

    def __init__(self, stiffness_of_mode, points: int, damping: float):
        self.modes, self.points, self.damping = np.asarray(stiffness_of_mode, float), points, damping
        self.stiffness = circulant(np.fft.irfft(self.modes, points))

    def series(self, dt: float, members: int, steps: int, seed: int) -> el.TimeSeries:
        """Positions only."""
        eye, zero = np.eye(self.points), np.zeros((self.points, self.points))
        rates = np.block([[zero, -eye], [self.stiffness, self.damping * eye]])
        noise = np.block([[zero, zero], [zero, np.sqrt(self.damping) * eye]])
        whole = exact_series(el.systems.OrnsteinUhlenbeck(rates, noise), dt, members, steps, seed)
        return el.TimeSeries(whole.values[..., : self.points], dt)

    def autocorrelation(self, mode: int, tau) -> np.ndarray:
        """C(tau) / C(0) of one mode: (a e^{-b tau} - b e^{-a tau}) / (a - b) with a + b = damping, a b = stiffness."""
        root = np.emath.sqrt(self.damping**2 - 4 * self.modes[mode])
        a, b = (self.damping + root) / 2, (self.damping - root) / 2
        return ((a * np.exp(-b * tau) - b * np.exp(-a * tau)) / (a - b)).real

    def correlation(self, tau) -> np.ndarray:
        """C(tau) of the positions."""
        modes = [self.autocorrelation(m, tau) / stiffness for m, stiffness in enumerate(self.modes)]
        return np.array([circulant(column) for column in np.fft.irfft(np.transpose(modes), self.points)])
