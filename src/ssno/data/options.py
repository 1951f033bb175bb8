"""Which trajectories a command works on, as one typed description: what `ssno train --data.*` sets.

It is stored in the config.json of a run, so that an evaluation finds the same data again.
"""

from dataclasses import dataclass, fields

from ssno.data.grids import How, Points
from ssno.data.load import load_splits, parse_index
from ssno.data.readers.protocol import ReadOptions
from ssno.data.trajectories import Trajectories


@dataclass(frozen=True, kw_only=True)
class DataOptions(ReadOptions):
    """Which trajectories, and how they are read."""

    name: str = "ks"
    """A dataset's name, looked up in ./data, or a file or folder of your own."""
    path: str | None = None
    """Folder or file to read instead of looking the name up."""
    preset: str | None = None
    """Size of a generated dataset: tiny, small or paper; by default the largest there is."""
    resolution: int | None = None
    """Coarsen the grid to this many points along the first axis, others in proportion; by default what the literature
    uses."""
    reduction: How = "stride"
    """How to coarsen: take every n-th point, average cells, or cut the spectrum."""
    time_index: str | None = None
    """Frames to use, start:stop:step; by default what the literature uses."""
    segment: int | None = None
    """Cut long runs into pieces of this many frames."""
    train: int | None = None
    """Use only this many training trajectories, the first ones."""
    valid: int | None = None
    """Use only this many validation trajectories, the first ones."""
    splits: tuple[float, ...] | None = None
    """Fractions or counts for train, valid, test when a file is not divided."""

    def load(self, split: str, *, resolution: Points | None = None) -> Trajectories:
        """The trajectories of a split, or the same on another grid; nothing is read but descriptions."""
        return self.load_splits(split, resolution=resolution)[0]

    def load_splits(self, *splits: str, resolution: Points | None = None) -> tuple[Trajectories, ...]:
        """Several splits, each file opened once."""
        fits = resolution is not None and self.reduction == "stride"
        found = load_splits(
            self.path or self.name,
            splits,
            preset=self.preset,
            resolution=self.resolution if resolution is None else resolution,
            reduction=None if fits else self.reduction,
            time_index=None if self.time_index is None else parse_index(self.time_index),
            segment=self.segment,
            splits=self.splits,
            **{field.name: getattr(self, field.name) for field in fields(ReadOptions)},
        )
        return tuple(self._first(split, found[split]) for split in splits)

    def _first(self, split: str, data: Trajectories) -> Trajectories:
        """As many trajectories as the options ask for."""
        count = {"train": self.train, "valid": self.valid}.get(split)
        if count is None:
            return data
        if not 1 <= count <= len(data):
            raise ValueError(f"`data.{split}` must lie between 1 and the {len(data)} trajectories there, got {count}.")
        return data.select(indices=range(count))
