"""Numbers as NetCDF's conventions pack them: value = scale_factor * stored + add_offset, and numbers for none."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

SCALING = {"scale_factor": 1.0, "add_offset": 0.0}
MISSING = ("_FillValue", "missing_value")


@dataclass(frozen=True)
class Packing:
    """Values are `scale * stored + shift`, NaN where the stored number is one of those that mean `missing`."""

    scale: float = 1.0
    shift: float = 0.0
    missing: tuple[float, ...] = ()

    @classmethod
    def of(cls, attributes: Mapping[str, Any], dtype: str) -> "Packing":
        """What the attributes of a stored array say."""
        numbers = {key: _numbers(attributes.get(key)) for key in (*SCALING, *MISSING)}
        scale, shift = (numbers[key][0] if len(numbers[key]) == 1 else usual for key, usual in SCALING.items())
        missing = [_stored(number, np.dtype(dtype)) for key in MISSING for number in numbers[key]]
        return cls(scale, shift, tuple(dict.fromkeys(number for number in missing if number is not None)))

    def unpack(self, stored: np.ndarray) -> np.ndarray:
        """The values; numbers that are not packed, and of which none is missing, come back as they are."""
        gaps = [stored == number for number in self.missing]
        values = stored
        if (self.scale, self.shift) != (1.0, 0.0):
            values = self.scale * _real(values) + self.shift
        if any(gap.any() for gap in gaps):
            values = np.where(np.logical_or.reduce(gaps), np.nan, _real(values))
        return values


def _numbers(attribute: Any) -> list[float]:
    """An attribute as numbers: NetCDF stores one, or a list."""
    listed = attribute if isinstance(attribute, list) else [attribute]
    return [float(value) for value in listed if isinstance(value, int | float)]


def _stored(number: float, dtype: np.dtype) -> float | None:
    """A number as an array of this type holds it; None if it cannot, as NaN, or 1e20 among short integers."""
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            held = float(dtype.type(number))
    except (OverflowError, ValueError):
        return None
    return held if held == held and (dtype.kind == "f" or held == number) else None


def _real(values: np.ndarray) -> np.ndarray:
    return values if values.dtype == np.float32 else values.astype(np.float64, copy=False)


UNPACKED = Packing()
