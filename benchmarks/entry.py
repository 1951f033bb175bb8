"""Benchmark entries as data: competing implementations of the same work, their reference, and the expected result.

An entry defines the work and its sizes; its name is derived from them. Building it gives one `TimedCall` per
implementation. A task runs once per round and returns its result; `expected`, if given, returns the correct one, and
nothing is timed before the two agree.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

Answer = Tensor | np.ndarray | Sequence[Tensor]


@dataclass(frozen=True)
class TimedCall:
    """One contestant, ready to run. `amount` is the work of one run (trajectories, frames): times are per unit.

    `expected=None`: there is nothing to compare with, because this is the reference, or another model. `fetch` brings
    the answer of the last run where that is no part of the work to be timed. `tolerance` stands for that of the entry.
    """

    run: Callable[[], Answer | None]
    expected: Callable[[], Answer] | None = None
    fetch: Callable[[], Answer] | None = None
    amount: float = 1
    tolerance: float | None = None
    close: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class Goal:
    """What a contestant must reach. The ratio is time of the reference / own time; the fraction is of the GEMM peak."""

    at_least: float | None = None
    at_most: float | None = None
    fraction: float | None = None

    def met(self, ratio: float, fraction: float | None) -> bool:
        """Whether a measured ratio and fraction are good enough."""
        return (
            (self.at_least is None or ratio >= self.at_least)
            and (self.at_most is None or ratio <= self.at_most)
            and (self.fraction is None or (fraction is not None and fraction >= self.fraction))
        )

    def __str__(self) -> str:
        words = [
            f"{sign} {value:g}{unit}"
            for sign, value, unit in (
                (">=", self.at_least, "x"),
                ("<=", self.at_most, "x"),
                (">=", None if self.fraction is None else 100 * self.fraction, " % of peak"),
            )
            if value is not None
        ]
        return ", ".join(words)


@dataclass(frozen=True)
class Growth:
    """How time may grow along a sweep: the contestants are sizes, and time ~ size^exponent from `start` on."""

    of: str
    at_most: float
    start: int = 0


@dataclass(frozen=True)
class Entry:
    """One benchmark. `gflop` is the useful work of one run; without it no fraction of the peak is given."""

    what: str
    sizes: Mapping[str, int | str]
    build: Callable[[], Mapping[str, TimedCall]]
    reference: str
    goals: Mapping[str, Goal] = field(default_factory=dict)
    growth: Growth | None = None
    tolerance: float = 1e-4
    gflop: float | None = None
    threads: int | None = None
    """Threads torch computes with; None leaves it as it is."""
    seconds: float = 4.0
    """Time to spend, at least seven rounds."""

    @property
    def name(self) -> str:
        """Words and sizes, as `training-step-1d-n64-b32-t25`."""
        return "-".join([self.what.replace(" ", "-"), *(f"{key}{value}" for key, value in self.sizes.items())])


class Unavailable(RuntimeError):
    """An entry cannot run on this machine; the message names what is missing and how to get it."""


def difference(answer: Answer, expected: Answer) -> float:
    """The largest relative difference of any part, in the Euclidean norm; infinite if shapes differ.

    Parts that nearly vanish (a gradient that is zero up to rounding) are compared with a millionth of the total norm.
    """
    ours, theirs = _parts(answer), _parts(expected)
    if [part.shape for part in ours] != [part.shape for part in theirs]:
        return float("inf")
    floor = 1e-6 * max((float(part.norm()) for part in theirs), default=0.0)
    errors = [
        float((a - b).norm()) / max(float(b.norm()), floor, 1e-300) if bool(torch.isfinite(a).all()) else float("inf")
        for a, b in zip(ours, theirs, strict=True)
    ]
    return max(errors, default=0.0)


def _parts(answer: Answer) -> list[Tensor]:
    whole = [answer] if isinstance(answer, Tensor | np.ndarray) else list(answer)
    return [torch.as_tensor(part).detach().double() for part in whole]
