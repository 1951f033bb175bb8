"""What a reader of a file format is, and what a user may add to a file.

A reader looks at the `Contents` of a file (names, shapes, attributes; nothing is read yet), says whether it knows the
format, and turns the file into trajectories per split: {"train": ..., "valid": ...} if the file itself is divided,
{"all": ...} if it is not. A new format is one more module with a `READER`, added to `ssno.data.files.readers.registry`.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields

from ssno.data.files.probe import Contents
from ssno.data.trajectories import DEFAULT_LIMIT, Trajectories

WHOLE = "all"


@dataclass(frozen=True)
class ReadOptions:
    """What the user knows about a file. `axes` or `arrays` make any file readable as plain arrays.

    axes       names of the axes as stored, "batch time x channel"
    arrays     names of the arrays in the file that hold the state
    fields     names for the channels
    context    channels or arrays that are known and not predicted, exactly these; "none" for none
    dt         time between frames
    lengths    physical length of each space axis
    periodic   whether the space axes repeat
    viscosity  for files that do not say (KS)
    """

    axes: str | None = None
    arrays: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    context: tuple[str, ...] = ()
    dt: float | int | None = None
    lengths: tuple[float | int, ...] = ()
    periodic: bool = True
    viscosity: float | None = None
    limit: int = DEFAULT_LIMIT

    def __post_init__(self) -> None:
        if self.dt is not None and not 0 < self.dt < float("inf"):
            raise ValueError(f"`dt` must be a positive number, got {self.dt}.")
        for length in self.lengths:
            if not 0 < length < float("inf"):
                raise ValueError(f"`lengths` must be positive numbers, got {self.lengths}.")

    @property
    def given(self) -> set[str]:
        """Names of the options that the user set."""
        return {field.name for field in fields(self) if getattr(self, field.name) != field.default} - {"limit"}


@dataclass(frozen=True)
class Reader:
    """A format: its name, the dataset options it takes, how to recognise and how to open a file of it."""

    name: str
    takes: frozenset[str]
    recognise: Callable[[Contents], bool]
    open: Callable[[Contents, ReadOptions], dict[str, Trajectories]]
