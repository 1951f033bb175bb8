"""Learning rate as a function of the step: no state, so a resumed run needs none.

cosine     linear rise over `warmup` of the run, then half a cosine down to 0
one-cycle  half a cosine up from 1/25, then half a cosine down to 1e-4 of the peak
constant   1
"""

import math

from ssno.runs.options import Schedule

ONE_CYCLE_START, ONE_CYCLE_END = 1 / 25, 1e-4


def rate_factor(step: int, total: int, *, schedule: Schedule, warmup: float) -> float:
    """Learning rate at `step` of `total`, as a fraction of the peak."""
    rising = round(warmup * total)
    if schedule == "constant":
        return 1.0
    if schedule == "cosine":
        if step < rising:
            return (step + 1) / rising
        return _half_cosine(1.0, 0.0, (step - rising) / max(1, total - rising))
    if step < rising:
        return _half_cosine(ONE_CYCLE_START, 1.0, step / rising)
    return _half_cosine(1.0, ONE_CYCLE_END, (step - rising) / max(1, total - 1 - rising))


def _half_cosine(start: float, end: float, progress: float) -> float:
    return end + (start - end) * (1 + math.cos(math.pi * min(1.0, progress))) / 2
