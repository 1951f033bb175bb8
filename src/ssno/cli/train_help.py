"""What `ssno train --help` says about defaults: those that a run will use, which recipe and data may decide.

The recipe completes a run for imaginary data of every kind (`Run.suited`, as it does for real ones). Options that then
differ from the defaults of their dataclass are told as "by the recipe" with the values they may take, or, if they
differ without a recipe too, as "from the data".
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import field, fields, is_dataclass, make_dataclass
from typing import Annotated, Any, get_type_hints

import tyro

from ssno.pde.problems.problem import Axis
from ssno.runs.options import Recipe
from ssno.runs.resuming import leaves
from ssno.runs.run import Run

MOST_VALUES = 3
GRIDS = (4, 512)
CHANNELS = ((1, 0), (2, 4))
"""Predicted and known."""


def hints(run: Run[Any], *, recipe: Recipe | None, dataset: str) -> dict[str, str]:
    """What help says in place of a default, by the dotted names of the options that recipe or data change."""
    by_data, by_recipe = (completions(run, chosen, dataset) for chosen in (None, recipe))
    said = {}
    for name, usual in leaves(run.to_json()):
        if any(other[name] != usual for other in by_data):
            values = [other[name] for other in by_data]
            alike = all(value == values[0] for value in values)  # by the model
            said[name] = f"(default: {shown(values[0])})" if alike else "(from the data)"
        elif any(other[name] != usual for other in by_recipe):
            said[name] = f"(by the recipe{choices([other[name] for other in by_recipe])})"
    return said


def choices(values: Sequence[Any]) -> str:
    """Different values in words, if there are few. Axes that differ have values of their own, among these."""
    single = list(dict.fromkeys(shown(value) for value in values if not isinstance(value, tuple)))
    each = {shown(part) for value in values if isinstance(value, tuple) for part in value}
    if len(single) > MOST_VALUES or not each <= set(single):
        return ", depending on the data"
    return f": {' or '.join(single)}" + (", depending on the data" if len(single) > 1 else "")


def completions(run: Run[Any], recipe: Recipe | None, dataset: str) -> list[dict[str, Any]]:
    """The options of a run on imaginary data: one to three axes, periodic or with walls, coarse or fine."""
    found = []
    for count, points, channels in itertools.product((1, 2, 3), GRIDS, CHANNELS):
        for periodic in itertools.product((True, False), repeat=count):
            axes = [Axis(f"x{i}", 1.0, points, periodic=flag) for i, flag in enumerate(periodic)]
            try:
                suited = run.suited(axes, *channels, dataset=dataset, recipe=recipe)
            except ValueError:  # a model that is not made for such data
                continue
            found.append(dict(leaves(suited.to_json())))
    return found


def shown(value: Any) -> str:
    """A value in few digits."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def with_hints(value: Any, said: Mapping[str, str], where: str = "") -> Any:
    """The same description, of a type whose help says these words."""
    types, options, values = get_type_hints(type(value), include_extras=True), [], {}
    for option in fields(value):
        name, mine = f"{where}{option.name}", getattr(value, option.name)
        kind: Any = types[option.name]
        if is_dataclass(mine):
            mine = with_hints(mine, said, f"{name}.")
            kind = type(mine)
        if name in said:
            kind = Annotated[kind, tyro.conf.arg(help_behavior_hint=said[name])]
        options.append((option.name, kind, field(default=mine)))
        values[option.name] = mine
    described = {"__doc__": type(value).__doc__}
    base: Any = Run[type(values["model"])] if isinstance(value, Run) else type(value)  # type: ignore[misc]
    made = make_dataclass(type(value).__name__, options, bases=(base,), namespace=described, frozen=True)
    return made(**values)
