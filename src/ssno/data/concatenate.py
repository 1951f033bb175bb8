"""Several files of trajectories as one set."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ssno.data.errors import DataError
from ssno.data.trajectories import Trajectories
from ssno.data.units import merged


def concatenate(sets: Sequence[Trajectories]) -> Trajectories:
    """Trajectories of several files, one after the other. Names, times and grids must agree."""
    first = sets[0]
    for other in sets[1:]:
        for what in (
            "name",
            "fields",
            "context_fields",
            "mask",
            "mask_from_nan",
            "grid_type",
            "axes",
            "steps",
            "reductions",
        ):
            if getattr(other, what) != getattr(first, what):
                raise DataError(
                    f"Files do not belong together: {what} is {getattr(first, what)} in {_where(first)} but "
                    f"{getattr(other, what)} in {_where(other)}."
                )
        if len(first.times) != len(other.times) or not np.allclose(first.times, other.times, rtol=1e-6, atol=0):
            raise DataError(f"Files do not belong together: times differ between {_where(first)} and {_where(other)}.")
    offsets = np.cumsum([0, *(len(data.parts) for data in sets[:-1])])
    rows = [data.rows + np.array([offset, 0, 0]) for data, offset in zip(sets, offsets, strict=True)]
    shared = set.intersection(*(set(data.parameters) for data in sets))
    units, remarks = merged([data.units for data in sets])
    return replace(
        first,
        parts=tuple(part for data in sets for part in data.parts),
        rows=np.concatenate(rows),
        parameters={key: np.concatenate([data.parameters[key] for data in sets]) for key in sorted(shared)},
        notes=tuple(dict.fromkeys([*(note for data in sets for note in data.notes), *remarks])),
        units=units,
    )


def _where(data: Trajectories) -> str:
    return data.parts[0].state[0].array.label
