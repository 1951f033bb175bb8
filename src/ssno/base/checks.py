"""Requirements on arguments, each with one message: which argument, what it must be, what came."""

import math
from collections.abc import Iterable
from difflib import get_close_matches

from ssno.base.renamed import advice

# What to say to a name that does not exist: the nearest one that does.


def nearest(name: str, known: Iterable[str], *, cutoff: float = 0.5) -> str | None:
    """The known name that resembles `name` most; None if none resembles it by `cutoff`, between 0 and 1."""
    return next(iter(get_close_matches(name, list(known), n=1, cutoff=cutoff)), None)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question for the end of a message, with a space before it; empty if nothing is near."""
    close = nearest(name, known)
    return f" Did you mean `{close}`?" if close else ""


def unknown_name(name: str, known: Iterable[str], *, kind: str = "name") -> str:
    """A whole message about a name that does not exist."""
    known = list(known)
    if changed := advice(name):
        return changed
    return f"Unknown {kind} `{name}`.{did_you_mean(name, known)} Known: {', '.join(known) or 'none'}."


def require_one_of(name: str, value: object, allowed: tuple[object, ...]) -> None:
    """Refuse an option that is not in the list."""
    if value not in allowed:
        raise ValueError(f"`{name}` must be one of {', '.join(map(repr, allowed))}, got {value!r}.")


LARGEST_SEED = 2**63 - 1
"""What PyTorch's generators and HDF5's attributes hold."""


def require_seed(value: int) -> None:
    """Refuse a seed that no generator takes."""
    if value < 0:
        raise ValueError(f"`seed` must be 0 or more, got {value}.")
    if value > LARGEST_SEED:
        raise ValueError(f"`seed` must be at most {LARGEST_SEED}, got {value}.")


def require_positive(name: str, value: int) -> None:
    """Refuse a count below one."""
    if value < 1:
        raise ValueError(f"`{name}` must be at least 1, got {value}.")


def require_pairs(name: str, states: int) -> None:
    """Refuse a number of states that is not a positive number of conjugate pairs."""
    if states < 2 or states % 2:
        raise ValueError(
            f"`{name}` counts states in conjugate pairs and must be even and positive, got {states}. "
            f"Use {max(2, states + states % 2)}."
        )


# Ratios of decimal numbers: 0.3 is three times 0.1, although 0.3 / 0.1 and 0.3 % 0.1 do not say so in binary.

ROUNDING = 1e-9


def in_units(value: float | int, unit: float | int, *, rounding: float = ROUNDING) -> float:
    """`value / unit`; exactly a whole number where only rounding (a part `rounding` of either) is in the way.

    Ask the result `is_integer()` for a multiple; take its floor or ceiling to count units.
    """
    ratio = value / unit
    if math.isfinite(ratio) and abs(ratio - round(ratio)) <= rounding * max(1.0, abs(ratio)):
        return float(round(ratio))
    return ratio
