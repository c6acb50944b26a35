"""Statistics of time series, on arrays only: segments are lists of (time, var) arrays sampled every `dt`."""
