# pyright: strict
"""What a user writes, checked by pyright in strict mode: every public name has types that are known.

This file is not run. `assert_type` fixes what functions return.
"""

from typing import assert_type

import numpy as np
from numpy.typing import NDArray

import effective_langevin as el


def read_and_check(path: str) -> el.TimeSeries:
    series = el.read(path, variables=["T", "h"])
    assert_type(series, el.TimeSeries)
    assert_type(series.dt, float)
    assert_type(series.n_samples, int)
    diagnosis = el.diagnose(series)
    assert_type(diagnosis, el.Diagnosis)
    assert_type(diagnosis.summary(), str)
    return series


def make() -> el.TimeSeries:
    values: NDArray[np.float64] = np.zeros((100, 2))
    return el.TimeSeries(values, dt=0.1, names=["x", "y"])


def transforms(series: el.TimeSeries) -> el.TimeSeries:
    pp = el.preprocess
    chain = pp.Chain([pp.Detrend(), pp.RemoveSeasonalCycle(12), pp.PCA(components=2)])
    fitted = chain.fit(series)
    return fitted.invert(fitted.apply(series))


def fits(series: el.TimeSeries) -> list[el.LangevinModel]:
    model = el.fit(series, seed=0)
    assert_type(model, el.LangevinModel)
    return [
        model,
        el.fit(series, score=el.Gaussian(), mobility=el.LogCorrelation()),
        el.fit(series, score=el.KGMM(noise_level=0.1), mobility=el.FiniteVolume(), symmetry=el.Translations()),
        el.fit(series, score=el.DenoisingScore(el.MLP((8,))), mobility=el.IntegratedResponse()),
        el.fit(series, score=el.DenoisingScore(el.UNet1D()), symmetry=el.TranslationsAndReflections()),
        el.fit(series, score=el.Extrapolated(el.KGMM(noise_level=0.1)), mobility=el.CorrelationFit()),
        el.fit(series, preprocess=el.preprocess.Detrend(), mobility=el.QuadraticVariation()),
    ]


def many(series: el.TimeSeries) -> dict[str, str]:
    fits = el.fit_many({"one": series}, out="runs", score=el.Gaussian())
    assert_type(fits.models["one"], el.LangevinModel)
    assert_type(fits.summary(), str)
    return fits.failures


def uses(model: el.LangevinModel, series: el.TimeSeries) -> None:
    paths = model.simulate(duration=10.0, members=4, seed=1, stepper=el.StochasticHeun())
    assert_type(paths, el.TimeSeries)
    stored = model.simulate(duration=10.0, members=4, out="paths.zarr")
    assert_type(stored.samples, int)
    assert_type(model.mobility, el.Mobility)
    result = el.validate(model, series, seed=2)
    assert_type(result, el.Validation)
    assert_type(result.summary(), str)
    result.report("report.html")
    model.save("model.safetensors")
    assert_type(el.load("model.safetensors"), el.LangevinModel)


def systems() -> el.TimeSeries:
    wells = el.systems.AsymmetricWells()
    return wells.simulate(duration=10.0, dt=0.05, members=2, seed=0)


def catches(path: str) -> str:
    try:
        el.read(path)
    except el.DataError as error:
        return str(error)
    except el.EffectiveLangevinError:
        return ""
    return ""
