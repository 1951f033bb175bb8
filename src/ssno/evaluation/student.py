"""Student's t of scipy.special, which takes a seventh of a second to import and is needed where seeds are compared."""

from typing import Any


def stdtr(freedom: int | float, t: Any) -> Any:
    """The probability of a value below t."""
    from scipy import special

    return special.stdtr(freedom, t)


def stdtrit(freedom: int | float, p: Any) -> Any:
    """The value below which t lies with probability p."""
    from scipy import special

    return special.stdtrit(freedom, p)
