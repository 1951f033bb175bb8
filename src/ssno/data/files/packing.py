"""Numbers as NetCDF's conventions pack them: value = scale_factor * stored + add_offset, and a number for none."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Packing:
    """Values are `scale * stored + shift`, NaN where `stored == missing`."""

    scale: float = 1.0
    shift: float = 0.0
    missing: float | None = None

    @classmethod
    def of(cls, attributes: Mapping[str, Any], dtype: str) -> "Packing":
        """What the attributes of a stored array say."""
        numbers = {key: value for key, value in attributes.items() if isinstance(value, int | float)}
        lists = {key: value[0] for key, value in attributes.items() if isinstance(value, list) and len(value) == 1}
        numbers |= {key: value for key, value in lists.items() if isinstance(value, int | float)}
        missing = numbers.get("_FillValue", numbers.get("missing_value"))
        return cls(
            scale=float(numbers.get("scale_factor", 1.0)),
            shift=float(numbers.get("add_offset", 0.0)),
            missing=None if missing is None or missing != missing else float(np.dtype(dtype).type(missing)),
        )

    def unpack(self, stored: np.ndarray) -> np.ndarray:
        """The values; numbers that are not packed, and of which none is missing, come back as they are."""
        gaps = None if self.missing is None else stored == self.missing
        values = stored
        if (self.scale, self.shift) != (1.0, 0.0):
            values = self.scale * _real(values) + self.shift
        if gaps is not None and gaps.any():
            values = np.where(gaps, np.nan, _real(values))
        return values


def _real(values: np.ndarray) -> np.ndarray:
    return values if values.dtype == np.float32 else values.astype(np.float64, copy=False)


UNPACKED = Packing()
