"""When to stop, as a word on the command line: a time of day, or a while from now."""

import re
from datetime import datetime, timedelta

WHILE = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?")


def moment(text: str, now: datetime, *, option: str) -> datetime:
    """The next moment at which clocks show a time (06:00), or the one after a while (55m, 1h30m, 90s)."""
    found = WHILE.fullmatch(text)
    if text and found:
        hours, minutes, seconds = (float(part or 0) for part in found.groups())
        return now + timedelta(hours=hours, minutes=minutes, seconds=seconds)
    try:
        wanted = datetime.strptime(text, "%H:%M").time()
    except ValueError:
        raise ValueError(
            f"`{option}` must be a time of day as 06:00, or a while as 55m or 1h30m, got {text!r}."
        ) from None
    at = datetime.combine(now.date(), wanted)
    return at if at > now else at + timedelta(days=1)
