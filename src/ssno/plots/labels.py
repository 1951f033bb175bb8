"""What pictures call the field, the axes and the time they show, with the units that files state."""

from dataclasses import dataclass, replace

from ssno.data.trajectories import Trajectories
from ssno.data.units import measured


@dataclass(frozen=True)
class Labels:
    """Words for a picture of one field. `title` stands above it all."""

    field: str = "u"
    axes: tuple[str, ...] = ("x", "y", "z")
    time_unit: str = ""
    title: str = ""

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
    return Labels(units.field_label(data.fields[channel]), axes, units.time)
