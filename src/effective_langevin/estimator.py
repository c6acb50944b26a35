"""`LangevinEstimator`: `fit` for those who work with scikit-learn, which is not needed for it."""

import inspect
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from ._core import checks
from ._core.errors import ArgumentError
from .data import TimeSeries
from .data.preprocess.base import Transform
from .data.series import is_labelled
from .estimate.mobility.base import ClosureStrategy
from .estimate.score import ScoreStrategy
from .estimate.symmetry import Symmetry
from .fit import fit
from .model import LangevinModel


class LangevinEstimator:
    """`el.fit` with the conventions of scikit-learn: parameters here, data in `fit`, results in attributes ending in _.

    There is no method called `score`, since the score is the gradient of ln p here: searches need their own `scoring`,
    such as `lambda fitted, X: -fitted.model_.score.stein_error`.

    Parameters
    ----------
    dt : float, optional
        Sampling interval of arrays; a TimeSeries and data with a time coordinate have their own.
    preprocess, score, mobility, symmetry, check, seed : object
        As in `el.fit`. Settings of a strategy can be reached through it, such as `score__noise_level`.

    Attributes
    ----------
    model_ : LangevinModel
        The fitted model.
    n_features_in_ : int
        Number of variables.
    feature_names_in_ : array of str
        Names of the variables, where the data have names.

    Examples
    --------
    >>> series = el.systems.OrnsteinUhlenbeck.rotating(2).simulate(200.0, dt=0.1, seed=1)
    >>> el.LangevinEstimator(dt=0.1, score=el.Gaussian()).fit(series.values).n_features_in_
    2
    """

    model_: LangevinModel
    n_features_in_: int
    feature_names_in_: np.ndarray

    def __init__(
        self,
        *,
        dt: float | None = None,
        preprocess: Transform | Sequence[Transform] | None = None,
        score: ScoreStrategy | None = None,
        mobility: ClosureStrategy | None = None,
        symmetry: Symmetry | None = None,
        check: str = "warn",
        seed: int = 0,
    ):
        self.dt = dt
        self.preprocess = preprocess
        self.score = score
        self.mobility = mobility
        self.symmetry = symmetry
        self.check = check
        self.seed = seed

    def fit(self, X: Any, y: Any = None, *, dt: float | None = None) -> "LangevinEstimator":
        """Learn a model.

        Parameters
        ----------
        X : array of shape (time, var) or (member, time, var), list of (time, var), labelled data, or TimeSeries
            The samples.
        y : ignored
            For scikit-learn.
        dt : float, optional
            Sampling interval, instead of that of the estimator.

        Returns
        -------
        LangevinEstimator
            Itself.
        """
        settings = self.get_params(deep=False)
        given = settings.pop("dt")
        series = _as_series(X, given if dt is None else dt)
        self.model_, self.n_features_in_ = fit(series, **settings), series.dimension
        if isinstance(X, TimeSeries) or is_labelled(X):
            self.feature_names_in_ = np.array(series.names, dtype=object)
        return self

    def sample(self, n_samples: int = 1, seed: int | None = None) -> np.ndarray:
        """Simulate a series like the one learned from; `model_.simulate` has ensembles and more.

        Parameters
        ----------
        n_samples : int, default 1
            Number of samples.
        seed : int, optional
            Default: that of the estimator.

        Returns
        -------
        array of shape (n_samples, var)
            Samples every `model_.dt`.
        """
        n_samples = checks.integer_at_least("n_samples", n_samples, 1)
        model, seed = self._fitted(), self.seed if seed is None else seed
        paths = model.simulate(n_samples * model.dt, seed=seed)
        return np.asarray(paths.segments[0][-n_samples:])

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name.

        Parameters
        ----------
        deep : bool, default True
            Add the settings of the strategies.

        Returns
        -------
        dict
            Names and values.
        """
        own = {name: getattr(self, name) for name in _parameters(type(self))}
        inner = {
            f"{name}__{f.name}": getattr(value, f.name)
            for name, value in own.items()
            if deep and is_dataclass(value)
            for f in fields(value)
        }
        return own | inner

    def set_params(self, **params: Any) -> "LangevinEstimator":
        """Set parameters.

        Parameters
        ----------
        **params : object
            Parameters by name; settings of strategies as `score__noise_level`.

        Returns
        -------
        LangevinEstimator
            Itself.
        """
        known = self.get_params()
        for path, value in sorted(params.items(), key=lambda item: "__" in item[0]):
            name, nested, setting = path.partition("__")
            if name not in _parameters(type(self)) or (nested and path not in known and name not in params):
                raise ArgumentError(f"There is no parameter `{path}`. There are: {', '.join(known)}.")
            setattr(self, name, replace(getattr(self, name), **{setting: value}) if nested else value)
        return self

    def _fitted(self) -> LangevinModel:
        if not self.__sklearn_is_fitted__():
            raise ArgumentError("This LangevinEstimator is not fitted yet. Call `fit` first.")
        return self.model_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        """Asked for by scikit-learn only, and made of what it has."""
        from sklearn.utils import Tags, TargetTags  # pyright: ignore[reportMissingImports]

        return Tags(estimator_type=None, target_tags=TargetTags(required=False))

    def __repr__(self) -> str:
        given = [f"{k}={v!r}" for k, v in self.get_params(deep=False).items() if v != _parameters(type(self))[k]]
        return f"LangevinEstimator({', '.join(given)})"


def _parameters(kind: type) -> dict[str, Any]:
    """Names and defaults of what the constructor takes."""
    signature = inspect.signature(kind.__init__)
    return {name: p.default for name, p in list(signature.parameters.items())[1:]}


def _as_series(X: Any, dt: float | None) -> TimeSeries:
    if not isinstance(X, TimeSeries):
        return TimeSeries(X, dt)
    if dt is not None and dt != X.dt:
        raise ArgumentError(f"Argument `dt` is {dt:g}, but the series has dt = {X.dt:g}. Leave it out.")
    return X
