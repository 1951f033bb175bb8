"""Transolver: attention among the slices of a point cloud. Counted on AirfRANS with 7 inputs: 3,893,572 parameters.

Differences from the public code are those of `ssno.models.slices`: the lattice in normalised units, and no idle layers
(the public file carries 2,103,296 numbers that nothing uses).
"""

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from torch import nn

from ssno.base import require_one_of
from ssno.layers.slice_mixing import AttentionMixing, NoMixing
from ssno.models.slices import SliceConfig, SliceOperator

Mixing = Literal["attention", "none"]


@dataclass(frozen=True, kw_only=True)
class TransolverConfig(SliceConfig):
    """Transolver: points gather in slices, slices attend to each other."""

    name: ClassVar[str] = "transolver"
    origin: ClassVar[str] = "Wu et al. 2024 (Transolver)"

    mixing: Mixing = "attention"
    """Mixing slices: attention, or nothing, which tells what slices do by themselves."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_one_of("mixing", self.mixing, get_args(Mixing))

    def build(self) -> "Transolver":
        return Transolver(self)

    def slice_mixing(self) -> nn.Module:
        return AttentionMixing(self.hidden_channels // self.n_heads) if self.mixing == "attention" else NoMixing()


class Transolver(SliceOperator):
    """Transolver: `Transolver(config)`, or `Transolver(hidden_channels=64, n_heads=4)` with its fields."""

    config_type = TransolverConfig
    config: TransolverConfig
