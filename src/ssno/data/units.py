"""Units of measure of fields, axes and times, as `ssno.data.readers.arrays.unit_of` reads them: "m s-1"."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class PhysicalUnits:
    """Units of fields and axes by name, and that of time; missing where a file states none."""

    fields: Mapping[str, str] = field(default_factory=dict)
    axes: Mapping[str, str] = field(default_factory=dict)
    time: str = ""

    def field_label(self, name: str) -> str:
        """A field as tables and colour bars call it: "u (m s-1)"."""
        return labelled(name, self.fields.get(name, ""))

    def axis_label(self, name: str) -> str:
        """A space axis as pictures call it: "x (m)"."""
        return labelled(name, self.axes.get(name, ""))

    @property
    def time_label(self) -> str:
        """Time as tables and pictures call it: "time (s)"."""
        return labelled("time", self.time)


NO_UNITS = PhysicalUnits()


def labelled(name: str, unit: str) -> str:
    """A name with its unit, if it has one. Round brackets, because square ones are markup to terminals."""
    return f"{name} ({unit})" if unit else name


def measured(number: str, unit: str) -> str:
    """A number with its unit, if it has one."""
    return f"{number} {unit}" if unit else number


def merged(several: Sequence[PhysicalUnits]) -> tuple[PhysicalUnits, list[str]]:
    """Units of files that are one set, and a remark for each that they state differently, which is then left out."""
    remarks = []

    def agreed(what: str, stated: Sequence[str]) -> str:
        found = list(dict.fromkeys(unit for unit in stated if unit))
        if len(found) > 1:
            remarks.append(f"Files state other units for {what}: {found[0]} and {found[1]}. Check their numbers.")
        return found[0] if len(found) == 1 else ""

    def by_name(columns: Sequence[Mapping[str, str]]) -> dict[str, str]:
        names = dict.fromkeys(name for column in columns for name in column)
        joined = {name: agreed(name, [column.get(name, "") for column in columns]) for name in names}
        return {name: unit for name, unit in joined.items() if unit}

    fields = by_name([units.fields for units in several])
    axes = by_name([units.axes for units in several])
    return PhysicalUnits(fields, axes, agreed("time", [units.time for units in several])), remarks
