"""What pictures call the field, the axes and the time they show, with the units that files state."""

from dataclasses import dataclass, replace
from textwrap import fill

from matplotlib.figure import Figure

from ssno.data.trajectories import Trajectories
from ssno.data.units import measured

LONGEST = 20
"""Letters that fit beside a colour bar."""
LETTERS_PER_INCH = 11
"""Of a title."""


@dataclass(frozen=True)
class Labels:
    """Words for a picture of one field. `title` stands above it all."""

    field: str = "u"
    axes: tuple[str, ...] = ("x", "y", "z")
    time_unit: str = ""
    title: str = ""
    unit: str = ""

    @property
    def scale(self) -> str:
        """What a colour bar says: the field, of which a long name would not fit and leaves its unit."""
        return self.field if len(self.field) <= LONGEST else self.unit

    def above(self, figure: Figure, otherwise: str) -> str:
        """The title in lines that a figure has room for."""
        return fill(self.title or otherwise, int(LETTERS_PER_INCH * figure.get_figwidth()))

    def at(self, time: float) -> str:
        """A time: "t = 0.5 s"."""
        return measured(f"t = {time:.5g}", self.time_unit)

    def titled(self, title: str) -> "Labels":
        """The same under a title."""
        return replace(self, title=title)


PLAIN = Labels()
MAP_AXES = ("longitude (°)", "latitude (°)")


def labels_of(data: Trajectories, channel: int = 0) -> Labels:
    """Words for a field of these data; on a sphere the axes are those of a map."""
    units = data.units
    axes = MAP_AXES if data.grid_type == "sphere" else tuple(units.axis_label(axis.name) for axis in data.axes)
    name = data.fields[channel]
    return Labels(units.field_label(name), axes, units.time, unit=units.fields.get(name, ""))
