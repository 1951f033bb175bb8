"""The paper scales data to [0, 1] and may have printed errors in those units. What that does to a relative error:

    |p - u| / |u - low|  =  |p - u| / |u|  *  |u| / |u - low|            low: the smallest value of the training data

An affine map leaves differences alone up to its slope, but moves the zero that a relative error is relative to.
"""

from functools import cache

from torch.linalg import vector_norm

from ssno.data.normalise import fit
from ssno.data.options import DataOptions
from ssno.data.windows import Window

LOOKED_AT = 64  # trajectories are enough for a ratio of norms


@cache
def unit_interval_factor(options: DataOptions, window: Window) -> float:
    """By what a relative error of forecasts of one field is multiplied when it is scaled to [0, 1]."""
    train, test = options.load("train"), options.load("test")
    low = fit(train, "minmax").state.shift[0]
    scored = window.plan(len(test.times)).scored
    truth = test.read(range(min(LOOKED_AT, len(test)))).state[:, scored.start : scored.stop].flatten(1)
    return float((vector_norm(truth, dim=1) / vector_norm(truth - low, dim=1)).mean())
