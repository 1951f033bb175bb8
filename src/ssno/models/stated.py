"""The error that a bundled checkpoint states about itself, in the section "stated" of its config.json.

    {"dataset": "ks-0.1-paper", "split": "test", "points": 64, "trajectories": 256, "rel_l2": ..., ...}

Whoever makes the data again (`ssno data generate`) can measure it again: `ssno evaluate NAME` prints both.
"""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any

from ssno.base import description_from_json


@dataclass(frozen=True, kw_only=True)
class ReportedMetrics:
    """What was measured when the checkpoint was made, and on what."""

    dataset: str
    """The folder in ./data that `ssno data generate` makes."""
    split: str
    """Which part of it."""
    points: int
    """Grid points along the first axis."""
    trajectories: int
    """How many were forecast."""
    rel_l2: float
    """Error of rollouts."""
    rel_l2_onestep: float
    """Error of single steps from true frames."""
    rel_l2_normalised: float | None = None
    """Error of rollouts in normalised units, where physical ones say little: fields with a large mean."""
    lift_abs: float | None = None
    """Mean error of the lift coefficient, on clouds around aerofoils."""
    lift_rank: float | None = None
    """Rank correlation of the lift."""

    def errors(self) -> dict[str, float]:
        """The numbers by the names of their metrics."""
        names = ("rel_l2", "rel_l2_onestep", "rel_l2_normalised", "lift_abs", "lift_rank")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    def data(self) -> str:
        """What they were measured on, in words."""
        return f"{self.trajectories} {self.split} trajectories of {self.dataset}, {self.points} points"

    def is_about(self, *, split: str, points: int, trajectories: int) -> bool:
        """Whether a measurement on the checkpoint's own data took the same part of them, on the same grid."""
        return (split, points, trajectories) == (self.split, self.points, self.trajectories)


def reported_metrics(config: Mapping[str, Any]) -> ReportedMetrics | None:
    """What the config.json of a model folder states; None if it states nothing, as those of ordinary runs."""
    section = config.get("stated")
    if section is None:
        return None
    needed = [f.name for f in fields(ReportedMetrics) if f.default is MISSING]
    if isinstance(section, Mapping) and (lacking := [name for name in needed if name not in section]):
        raise ValueError(f"The stated error in config.json lacks {', '.join(lacking)}. It may be damaged.")
    return description_from_json(ReportedMetrics, section, where="stated.")
