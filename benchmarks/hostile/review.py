"""Where each finding of the review of reliability stands in the table of `python -m benchmarks robustness`.

S: silently wrong, L: lost data, K: crashes and hangs; each with its family and, but for damaged copies, its cases.
"""

REVIEW: dict[str, dict[str, tuple[str, ...]]] = {
    "S1": {"simulations": tuple(f"increments of the default step, dt {dt}" for dt in (0.05, 0.1, 0.3, 0.5))},
    "S2": {
        "hostile series": ("records of 1", "records of 2", "records of 4", "records of 8", "a gap after every second")
    },
    "S3": {"surroundings": ("two at once",)},
    "S4": {"hostile tables": ("object: dt in days, asked for in hours", "object: dt in days and in seconds")},
    "S5": {"hostile tables": ("object: a mask", "object: a mask in a dictionary")},
    "S6": {
        "hostile tables": (
            "text: dates as 20000115",
            "text: months as 200001",
            "text: months as 2000.01",
            "NetCDF: day as %Y%m%d.%f",
        )
    },
    "S7": {"hostile tables": ("NetCDF: packed, called h5", "NetCDF: fill values, called h5")},
    "S8": {"hostile tables": ("object: x beside y",)},
    "S9": {
        "hostile tables": (
            "object: a name given twice",
            "object: a variable asked for twice",
            "object: three names for two columns",
            "name 'time' to csv",
            "name 'member' to parquet",
            "name 'time' to nc",
            "name 'T_bnds' to zarr",
        )
    },
    "S10": {"hostile series": ("correlation 1 - 5e-5", "correlation 1 - 1e-6")},
    "S11": {"hostile series": ("cubic of a linear process", "hyperbolic sine of a linear process", "lognormal")},
    "S12": {"run folders": ("validate @good @other.npz",)},
    "S13": {"simulations": ("angles in degrees",)},
    "S14": {"hostile series": ("rounded to 0.1", "rounded to 1")},
    "S15": {"corrupted models": ()},
    "S16": {"simulations": ("seed 4294967297", "seed = 18446744073709551616")},
    "S17": {
        "hostile tables": (
            "text: numbers for names",
            "text: one column of decimal commas",
            "text: thousands with underscores",
        )
    },
    "S18": {
        "hostile series": ("dt 1e12",),
        "run folders": (
            "simulate @good --duration 5 --start 1e18 --out @q.nc",
            "settings: noise level negative",
        ),
        "hostile tables": ("object: another dt than noted",),
        "hostile files": ("zarr with a damaged zarr.json",),
    },
    "L1": {"surroundings": ("SIGINT once model.safetensors is there", "SIGKILL once model.safetensors is there")},
    "L2": {"run folders": ("folder: a partial folder of someone else",)},
    "L3": {"run folders": ("folder: a folder of someone else",)},
    "L4": {"run folders": ("checkpoint: empty", "checkpoint: half", "checkpoint: no archive")},
    "L5": {"surroundings": ("errors full", "errors closed", "both closed", "output closed", "fit | head -1")},
    "L6": {"run folders": ("settings of infinity",)},
    "K1": {"simulations": ("double precision",), "surroundings": ("double precision",)},
    "K2": {
        "hostile series": (
            "identical columns",
            "x and -2 x",
            "sum of two",
            "period of 4 samples",
            "all but one constant",
        )
    },
    "K3": {
        "hostile series": (
            "correlation 1 - 1e-12",
            "logistic map",
            "rain, 2 variables",
            "binary, 2 variables",
        )
    },
    "K4": {f"corrupted {kind}": () for kind in ("h5", "npz", "npy", "parquet")},
    "K5": {
        "hostile files": (
            "npy that announces 16 TB",
            "npz bomb",
            "npz with a bomb that nobody wants",
            "h5 that announces 1.6 TB",
            "resampling to 1e-9",
            "a gap of 900 000 steps in 300 variables",
        )
    },
    "K6": {
        "simulations": (
            "duration = 1e+300",
            "members = 1000000000",
            "members = 1000000000000000000",
            "step = 1e-30",
            "dt = 1e-308",
            "initial = x",
            "stepper = heun",
        )
    },
    "K7": {
        "hostile files": (
            "no members",
            "time without an axis, joined",
            "a unit of dt without entries",
            "h5 with no unit",
            "h5 with a unit in Latin-1",
            "names in Latin-1",
            "encrypted npz",
        ),
        "hostile tables": ("text: a cell of 200 000 digits", "object: a column twice", "text: 100000 columns"),
    },
    "K8": {"corrupted models": ()},
    "K9": {
        "run folders": (
            "folder: here",
            "settings: variables number",
            "settings: names number",
            "settings: demo without system",
            "settings: noise level text",
            "settings: seed huge",
        ),
        "surroundings": ("ASCII output", "LC_ALL=C without UTF-8"),
        "hostile tables": ("name '' to nc", "name 'a\\x00b' to zarr", "name 'a\\ud800' to csv"),
    },
    "K10": {"surroundings": ("a user without a home",)},
    "K11": {"surroundings": ("full disk: nc", "full disk: csv", "full disk: zarr")},
    "K12": {"hostile series": ("scale 1e160", "scale 1e300", "scale 1e-160", "offset 1e15, spread 100", "dt 1e-300")},
    "K13": {"simulations": ("forked after a fit",)},
}
