"""What a reader of a file format is, and what a user may add to a file.

A reader looks at the `Contents` of a file (names, shapes, attributes; nothing is read yet), says whether it knows the
format, and turns the file into trajectories per split: {"train": ..., "valid": ...} if the file itself is divided,
{"all": ...} if it is not. A new format is one more module with a `READER`, added to `ssno.data.readers.registry`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from ssno.base.checks import unknown_name
from ssno.data.grids import Periodic
from ssno.data.sandbox.parent import Contents
from ssno.data.trajectories import Trajectories

WHOLE = "all"
LISTS = ("arrays", "fields", "context", "coordinates", "periodic")  # options that take several names


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """What the user knows about a file. `axes` or `arrays` make any file readable as plain arrays."""

    axes: str | None = None
    """Names of the axes as stored, "batch time x channel"."""
    arrays: tuple[str, ...] = ()
    """Names of the arrays in the file that hold the state."""
    fields: tuple[str, ...] = ()
    """Names for the channels."""
    context: tuple[str, ...] = ()
    """Context fields: channels or arrays that are inputs but not predicted; replaces the default list; "none" for none.
    "dt" is the time step of each trajectory, where they differ."""
    mask: str | None = None
    """Mask: array or field that is non-zero where there are no data (obstacles, land); "nan": non-finite values."""
    dt: float | None = None
    """Time between frames."""
    times: str | None = None
    """Name of the array that holds the times."""
    resample: float | None = None
    """Interpolate linearly onto frames this far apart in time, counted from each trajectory's first."""
    lengths: tuple[float, ...] = ()
    """Physical lengths of the space axes, in the order in which `axes` (or else the file) names them."""
    coordinates: tuple[str, ...] = ()
    """Names of the arrays that hold the coordinates of the space axes, in that order."""
    periodic: Periodic = True
    """Periodic axes, by name ("x"); all, or none."""
    viscosity: float | None = None
    """Viscosity of KS files that do not store it."""

    def __post_init__(self) -> None:
        for name in ("dt", "resample"):
            if (step := getattr(self, name)) is not None and not 0 < step < float("inf"):
                raise ValueError(f"`{name}` must be a positive number, got {step}.")
        if self.dt is not None and self.resample is not None:
            raise ValueError("Give `dt` (frames are equally spaced) or `resample` (they are not), not both.")
        for length in self.lengths:
            if not 0 < length < float("inf"):
                raise ValueError(f"`lengths` must be positive numbers, got {self.lengths}.")
        if self.dt is not None and self.times is not None:
            raise ValueError(f"Give `dt` or `times`, not both: {self.dt} and {self.times!r}.")
        if self.lengths and self.coordinates:
            raise ValueError(f"Give `lengths` or `coordinates`, not both: {self.lengths} and {self.coordinates}.")

    @property
    def given(self) -> set[str]:
        """Names of the options that the user set."""
        return {field.name for field in fields(ReadOptions) if getattr(self, field.name) != field.default}


def read_options(**options: Any) -> ReadOptions:
    """`ReadOptions` from keywords; lists and single names become tuples, unknown keywords errors with the nearest."""
    known = [field.name for field in fields(ReadOptions)]
    for name, value in options.items():
        if name not in known:
            raise TypeError(unknown_name(name, known, kind="option"))
        if isinstance(value, str):
            options[name] = (value,) if name in LISTS else value
        elif isinstance(value, Sequence):
            options[name] = tuple(map(float, value)) if name == "lengths" else tuple(value)
        elif name in ("dt", "resample", "viscosity") and value is not None:
            options[name] = float(value)
    return ReadOptions(**options)


@dataclass(frozen=True)
class Reader:
    """A format: its name, the dataset options it takes, how to recognise and how to open a file of it."""

    name: str
    takes: frozenset[str]
    recognise: Callable[[Contents], bool]
    open: Callable[[Contents, ReadOptions], dict[str, Trajectories]]
