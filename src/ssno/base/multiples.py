"""Ratios of decimal numbers: 0.3 is three times 0.1, although 0.3 / 0.1 and 0.3 % 0.1 do not say so in binary."""

import math

ROUNDING = 1e-9


def in_units(value: float | int, unit: float | int, *, rounding: float = ROUNDING) -> float:
    """`value / unit`; exactly a whole number where only rounding (a part `rounding` of either) is in the way.

    Ask the result `is_integer()` for a multiple; take its floor or ceiling to count units.
    """
    ratio = value / unit
    if math.isfinite(ratio) and abs(ratio - round(ratio)) <= rounding * max(1.0, abs(ratio)):
        return float(round(ratio))
    return ratio
