"""Which axes of the state an array beside it has.

Another field of the state may be stored in another order, and a known field may lack axes. Names of dimensions settle
which is which. Where a file has none, lengths do, with axes in the order of the state; the rest is an error.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from ssno.data.errors import DataError
from ssno.data.files.patterns import Pattern

Shape = tuple[int, ...]


def ways(dims: Sequence[str], words: Sequence[str], meanings: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    """Words for the axes called `dims`: what a name means, and for the other axes the words left, in their order."""
    named = [meanings.get(dim, "") for dim in dims]
    left = [word for word in words if word not in named]
    for chosen in combinations(left, named.count("")):
        rest = iter(chosen)
        yield tuple(word or next(rest) for word in named)


def reordered(pattern: Pattern, dims: Sequence[str], meanings: Mapping[str, str]) -> Pattern:
    """The pattern of an array that has all axes of the state, in the order of its own dimensions."""
    if len(dims) != len(pattern.words):
        return pattern
    return next((Pattern(way) for way in ways(dims, pattern.words, meanings)), pattern)


def fitting_patterns(
    shape: Shape, dims: Sequence[str], meanings: Mapping[str, str], *, pattern: Pattern, state: Shape
) -> list[Pattern]:
    """All patterns of an array that may lack axes of the state, which has shape `state` and the given pattern.

    An array with as many axes as the state may have length one along any of them, and is constant there.
    """
    words = [word for word in pattern.words if word != "1"]

    def fits(way: Sequence[str]) -> bool:
        return tuple(pattern.size(word, state) for word in way) == shape

    for known in (meanings, {}):  # a name that means an axis of another length means something else
        if found := [Pattern(way) for way in ways(dims, words, known) if fits(way)]:
            return found
    full = len(shape) == len(state) and all(n in (1, size) for n, size in zip(shape, state, strict=True))
    if not full:
        return []
    return [Pattern(tuple(w if n == m else "1" for w, n, m in zip(pattern.words, shape, state, strict=True)))]


def choose_pattern(found: Sequence[Pattern], *, what: str, shape: Shape, pattern: Pattern) -> tuple[Pattern, str]:
    """The one pattern that fits; of several the one with trajectories, with a remark; else an error that lists them."""
    if len(found) == 1:
        return found[0], ""
    listed = " and ".join(f"({one})" for one in found)
    by_trajectory = [one for one in found if "batch" in one.words]
    if len(by_trajectory) == 1:
        return by_trajectory[0], f"{what} fits {listed} by its shape {shape}: it is read as ({by_trajectory[0]})."
    raise DataError(
        f"Known field {what} has shape {shape}, which fits {listed} of a state with the axes ({pattern}). Give it as "
        "many axes as the state has, of length 1 where it is constant, or name its dimensions (NetCDF, HDF5 labels)."
    )
