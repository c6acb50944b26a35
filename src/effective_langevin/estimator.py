"""`LangevinEstimator`: `fit` for those who work with scikit-learn, which is not needed for it."""

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from ._core import checks
from ._core.deprecation import keyword_once_called
from ._core.errors import ArgumentError, DataError
from .data import TimeSeries
from .data.preprocess.base import Transform
from .data.series import is_labelled
from .estimate.mobility.base import ClosureStrategy
from .estimate.score import ScoreStrategy
from .estimate.symmetry import Symmetry
from .fit import fit
from .forecast_skill import forecast_skill
from .memory import Memory
from .model import LangevinModel

_LEAST_SCORED = 20


class LangevinEstimator:
    """`el.fit` with the conventions of scikit-learn: parameters here, data in `fit`, results in attributes ending in _.

    `score` is the skill of forecasts, as `GridSearchCV` needs it. The strategy for the gradient of ln p,
    `score` in `el.fit`, is `score_strategy` here. Use `RecordSplit` for folds: a splitter of rows joins what was apart.

    Parameters
    ----------
    dt : float, optional
        Sampling interval of arrays; a TimeSeries and data with a time coordinate have their own.
    score_strategy : score strategy, optional
        `score` of `el.fit`.
    preprocess, mobility, symmetry, memory, check, seed : object
        As in `el.fit`. Settings of a strategy can be reached through it, such as `score_strategy__noise_level`.

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
    >>> el.LangevinEstimator(dt=0.1, score_strategy=el.Gaussian()).fit(series.values).n_features_in_
    2
    """

    model_: LangevinModel
    n_features_in_: int
    feature_names_in_: np.ndarray

    @keyword_once_called("score", "score_strategy")
    def __init__(
        self,
        *,
        dt: float | None = None,
        preprocess: Transform | Sequence[Transform] | None = None,
        score_strategy: ScoreStrategy | None = None,
        mobility: ClosureStrategy | None = None,
        symmetry: Symmetry | None = None,
        memory: Memory | str | None = None,
        check: str = "warn",
        seed: int = 0,
    ):
        self.dt = dt
        self.preprocess = preprocess
        self.score_strategy = score_strategy
        self.mobility = mobility
        self.symmetry = symmetry
        self.memory = memory
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
        given, score = settings.pop("dt"), settings.pop("score_strategy")
        series = _as_series(X, given if dt is None else dt)
        self.model_, self.n_features_in_ = fit(series, score=score, **settings), series.dimension
        if isinstance(X, TimeSeries) or is_labelled(X):
            self.feature_names_in_ = np.array(series.names, dtype=object)
        return self

    def score(self, X: Any, y: Any = None) -> float:
        """Return the skill of forecasts of other data: 1 is perfect, 0 like climatology, more is better.

        It is 1 - E / E_c, mean over lags up to one integral time. E is the energy score, a proper score, of ensemble
        forecasts from up to 2000 states, and E_c that of states of `X` drawn at random. Both are in the model's
        variables.

        Parameters
        ----------
        X : as in `fit`
            Samples that the model was not learned from.
        y : ignored
            For scikit-learn.

        Returns
        -------
        float
            -inf if members of the ensemble diverge.
        """
        model = self._fitted()
        series = _as_series(X, self.dt or (None if isinstance(X, TimeSeries) or is_labelled(X) else model.dt))
        if series.dimension != self.n_features_in_:
            expected = f"LangevinEstimator is expecting {self.n_features_in_} features as input"
            raise DataError(f"X has {series.dimension} features, but {expected}.")
        checks.enough_samples(series.n_samples, _LEAST_SCORED, "a score")
        return forecast_skill(model, series, self.seed)

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
            Parameters by name; settings of strategies as `score_strategy__noise_level`.

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
        from sklearn.utils import InputTags, Tags, TargetTags  # pyright: ignore[reportMissingImports]

        kinds = InputTags(allow_nan=True, three_d_array=True)
        return Tags(estimator_type=None, target_tags=TargetTags(required=False), input_tags=kinds)

    def __repr__(self) -> str:
        given = [f"{k}={v!r}" for k, v in self.get_params(deep=False).items() if v != _parameters(type(self))[k]]
        return f"LangevinEstimator({', '.join(given)})"


class RecordSplit:
    """Folds for cross-validation that join nothing that was apart in time, with the interface of scikit-learn.

    Of several records, a list or an array (member, time, var), each is in one fold, as a whole. One record (time, var)
    is cut into consecutive stretches: each is held out once, and the longer of the two parts around it is for training.
    A splitter of rows, such as `KFold`, joins both parts, which makes a step that never happened. To train on more of
    one record, cut it first: `list(np.split(values, 10))`.

    Parameters
    ----------
    n_splits : int, default 5
        Number of folds.

    Examples
    --------
    >>> [(len(train), int(test[0])) for train, test in el.RecordSplit(4).split(np.zeros((100, 2)))]
    [(75, 0), (50, 25), (50, 50), (75, 75)]
    """

    def __init__(self, n_splits: int = 5):
        self.n_splits = n_splits

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the indices for training and those held out.

        Parameters
        ----------
        X : array of shape (time, var) or (member, time, var), list of (time, var), or DataFrame
            The samples.
        y, groups : ignored
            For scikit-learn.

        Yields
        ------
        tuple of two arrays of int
            Of rows, or of records.
        """
        folds = checks.integer_at_least("n_splits", self.n_splits, 2)
        several = np.ndim(X[0]) == 2 if isinstance(X, list | tuple) and len(X) else getattr(X, "ndim", 2) == 3
        if len(X) < folds:
            kind = "records" if several else "samples"
            raise DataError(f"There are {len(X)} {kind} for {folds} folds. Ask for fewer, or give one record.")
        places = np.arange(len(X))
        for held_out in np.array_split(places, folds):
            before, after = places[: held_out[0]], places[held_out[-1] + 1 :]
            train = np.concatenate([before, after]) if several else max(before, after, key=len)
            yield train, held_out

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds.

        Parameters
        ----------
        X, y, groups : ignored
            For scikit-learn.

        Returns
        -------
        int
        """
        return self.n_splits


def _parameters(kind: type) -> dict[str, Any]:
    """Names and defaults of what the constructor takes."""
    signature = inspect.signature(kind.__init__)
    return {name: p.default for name, p in list(signature.parameters.items())[1:]}


def _as_series(X: Any, dt: float | None) -> TimeSeries:
    if not isinstance(X, TimeSeries):
        return TimeSeries(_refuse(X), dt)
    if dt is not None and dt != X.dt:
        raise ArgumentError(f"Argument `dt` is {dt:g}, but the series has dt = {X.dt:g}. Leave it out.")
    return X


def _refuse(X: Any) -> Any:
    """Return X; refuse in the words of scikit-learn what is no dense table of numbers. Objects become numbers."""
    if hasattr(X, "toarray"):
        raise DataError("Sparse data are not supported: pass X.toarray().")
    if not isinstance(X, np.ndarray):
        return X
    if np.iscomplexobj(X):
        raise DataError("Complex data not supported: give real and imaginary parts as two variables.")
    if X.ndim == 2 and X.shape[1] == 0:
        raise DataError(f"There are 0 feature(s) (shape={X.shape}) while a minimum of 1 is required.")
    if X.ndim == 2 and len(X) == 1:
        raise DataError("There is only 1 sample: a time series has many.")
    return X.astype(float) if X.dtype == object else X
