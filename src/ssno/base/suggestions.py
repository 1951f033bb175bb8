"""What to say to a name that does not exist: the nearest one that does."""

from collections.abc import Iterable
from difflib import get_close_matches


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
    return f"Unknown {kind} `{name}`.{did_you_mean(name, known)} Known: {', '.join(known) or 'none'}."
