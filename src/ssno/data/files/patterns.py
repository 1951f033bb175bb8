"""Names for the axes of an array, such as "batch time x channel".

A pattern gives every axis of an array one word, in the order in which the axes are stored:

    batch      trajectory             (also: sample, trajectory, run, case, realization, ensemble, member, b, n)
    time       stored frame           (also: t, step, frame, snapshot)
    channel    physical field         (also: c, field, variable)
    1          an axis of length one, dropped
    any other  a space axis: x, y, z, lat, lon, ...

`batch`, `channel` and, for fields that do not change, `time` may be missing; one to three space axes must be
there. Space axes called x, y, z come out in that order however they are stored; other names keep the order of
the pattern. `Pattern.arrange` turns an array stored in any order into our layout (batch, time, channel,
*grid).
"""

import re
from dataclasses import dataclass

import numpy as np

from ssno.base import nearest
from ssno.data.errors import DataError

SYNONYMS = {
    "batch": {
        "batch",
        "sample",
        "trajectory",
        "member",
        "realization",
        "realisation",
        "ensemble",
        "run",
        "case",
        "b",
        "n",
    },
    "time": {"time", "t", "step", "frame", "snapshot"},
    "channel": {"channel", "channels", "c", "field", "fields", "variable", "component"},
    "x": {"x", "nx"},
    "y": {"y", "ny"},
    "z": {"z", "nz"},
}
MEANING = {word + end: role for role, words in SYNONYMS.items() for word in words for end in ("", "s")}
MEANING["trajectories"] = "batch"
CANONICAL_SPACE = ("x", "y", "z")
SPACE = {
    *CANONICAL_SPACE,
    "lat",
    "lon",
    "latitude",
    "longitude",
    "r",
    "radius",
    "theta",
    "phi",
    "depth",
    "height",
    "level",
}


@dataclass(frozen=True)
class Pattern:
    """One word per stored axis. Build it with `parse_pattern`."""

    words: tuple[str, ...]

    @property
    def stored_space(self) -> tuple[str, ...]:
        """The space axes in the order in which they are stored and named."""
        return tuple(word for word in self.words if word not in ("batch", "time", "channel", "1"))

    @property
    def space(self) -> tuple[str, ...]:
        """The space axes in the order of our layout."""
        words = self.stored_space
        return tuple(sorted(words)) if set(words) <= set(CANONICAL_SPACE) else words

    def axis(self, word: str) -> int | None:
        """Position of a word among the stored axes, or None."""
        return self.words.index(word) if word in self.words else None

    def size(self, word: str, shape: tuple[int, ...]) -> int:
        """Length of an axis of an array of this shape; 1 if the pattern does not have it."""
        position = self.axis(word)
        return 1 if position is None else shape[position]

    def check(self, shape: tuple[int, ...], *, what: str) -> None:
        """Refuse a shape that the pattern does not describe."""
        if len(self.words) != len(shape):
            raise DataError(
                f"`axes` names {len(self.words)} axes ({self}) but {what} has {len(shape)}: {shape}. "
                f"Give one word per axis, for example {example_pattern(len(shape))!r}."
            )
        for word, length in zip(self.words, shape, strict=True):
            if word == "1" and length != 1:
                raise DataError(f"`axes` marks an axis of {what} with 1, but it has length {length}: {shape}.")
            if length < 1:
                raise DataError(f"{what} is empty along {word!r}: its shape is {shape}.")

    def arrange(self, array: np.ndarray, space: tuple[str, ...]) -> np.ndarray:
        """View an array as (batch, time, channel, *space); missing axes get length one."""
        kept = [word for word in self.words if word != "1"]
        array = array.reshape([n for n, word in zip(array.shape, self.words, strict=True) if word != "1"])
        wanted = ("batch", "time", "channel", *space)
        array = array.transpose([kept.index(word) for word in wanted if word in kept])
        return np.expand_dims(array, tuple(i for i, word in enumerate(wanted) if word not in kept))

    def __str__(self) -> str:
        return " ".join(self.words)


def parse_pattern(text: str) -> Pattern:
    """Read a pattern such as "batch time x channel"; words may be separated by spaces or commas."""
    raw = [word for word in re.split(r"[\s,]+", text.strip().lower()) if word]
    words = tuple(MEANING.get(word, word) for word in raw)
    for word in words:
        if not (word.isidentifier() or word == "1"):
            raise DataError(f"`axes` has the word {word!r}, which is not a name. {_HELP}")
    repeated = sorted({word for word in words if word != "1" and words.count(word) > 1})
    if repeated:
        raise DataError(f"`axes` names {' and '.join(repeated)} more than once in {text!r}. {_HELP}")
    pattern = Pattern(words)
    # A misspelt reserved word would silently become a space axis.
    for word in pattern.space:
        if near := nearest(word, ("batch", "time", "channel"), cutoff=0.75):
            raise DataError(f"`axes` has the word {word!r}; did you mean {near!r}? {_HELP}")
    if len(pattern.space) == 3 and (odd := [word for word in pattern.space if word not in SPACE]):
        raise DataError(
            f"`axes` has the word {odd[0]!r}, which would be a third space axis beside "
            f"{' and '.join(word for word in pattern.space if word != odd[0])}. Call it batch if it counts "
            "trajectories, or x, y, z if it is space."
        )
    if not 1 <= len(pattern.space) <= 3:
        raise DataError(f"`axes` {text!r} names {len(pattern.space)} space axes, expected 1 to 3. {_HELP}")
    return pattern


def example_pattern(ndim: int) -> str:
    """A plausible pattern for an array of `ndim` axes, to show in messages."""
    examples = {2: "time x", 3: "batch time x", 4: "batch time x channel", 5: "batch time x y channel"}
    return examples.get(ndim, "batch time x y z channel" if ndim == 6 else "time x")


_HELP = 'Write one word per stored axis, for example "batch time x channel".'
