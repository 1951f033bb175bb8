"""Requirements on the options of problems, each with one message."""

import math
from collections.abc import Sequence


def check_positive(**options: float) -> None:
    """Options that must be positive finite numbers, by name."""
    for name, value in options.items():
        if not 0 < value < math.inf:
            raise ValueError(f"`{name}` must be a positive finite number, got {value}.")


def check_at_least(least: int, **options: int) -> None:
    """Options with a smallest value, by name."""
    for name, value in options.items():
        if value < least:
            raise ValueError(f"`{name}` must be at least {least}, got {value}.")


def check_multiple(name: str, fine: int, points: int) -> None:
    """Stored points are every n-th point of the solver's grid, so its size `name` must be a multiple of `points`."""
    if points < 1 or fine < points or fine % points:
        raise ValueError(f"`{name}` must be a positive multiple of `points`, got {fine} and {points}.")


def check_batch(parameters: Sequence[object]) -> None:
    """A batch has at least one trajectory."""
    if not parameters:
        raise ValueError("`parameters` is empty: there is no trajectory to solve.")
