"""SS-NO on slices: Transolver with its attention among slices replaced by state-space scans over the slice index.

The paper says no more than that, so this is a reading: 32 channels, shared by the heads as attention's weights are, a
forward and a backward block with one residual around their sum (4,002,116 parameters with AirfRANS's 7 inputs). Slices
have no order but the one the network learns; `order="position"` sorts them by the mean x of their points.
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, get_args

from torch import nn

from ssno.base import require_one_of, require_pairs
from ssno.layers.modes import ModeOptions
from ssno.layers.slice_mixing import ScanMixing
from ssno.models.slices import SliceConfig, SliceOperator

Scan = Literal["linear", "selective"]
Directions = Literal["both", "forward"]
Sharing = Literal["heads", "none"]
Order = Literal["index", "position"]
SliceResidual = Literal["sum", "none"]


@dataclass(frozen=True, kw_only=True)
class SSNOSlicesConfig(SliceConfig):
    """SS-NO on slices: points gather in slices, state-space scans run over the slices."""

    name: ClassVar[str] = "ssno-slices"
    origin: ClassVar[str] = "the SS-NO paper; slices as in Transolver"

    scan: Scan = "linear"
    """Modes that are fixed, or that follow the tokens (selective)."""
    directions: Directions = "both"
    """Scan slices both ways, or forward only."""
    sharing: Sharing = "heads"
    """One scan shared by all heads, or one wide scan of all heads side by side."""
    order: Order = "index"
    """Scan slices as they are numbered, or by the mean x of their points."""
    residual: SliceResidual = "sum"
    """Add the tokens to the sum of both directions, or not."""
    d_state: int = 64
    """States per channel; even."""
    modes: ModeOptions = field(default_factory=ModeOptions)
    """How the modes start and what of them is learned."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_pairs("d_state", self.d_state)
        if self.modes.selective:
            raise ValueError("Say `scan='selective'`; `modes.selective` is for models of grids.")
        choices = (("scan", Scan), ("directions", Directions), ("sharing", Sharing), ("order", Order))
        for name, allowed in (*choices, ("residual", SliceResidual)):
            require_one_of(name, getattr(self, name), get_args(allowed))

    @property
    def by_position(self) -> bool:
        return self.order == "position"

    def build(self) -> "SSNOSlices":
        return SSNOSlices(self)

    def slice_mixing(self) -> nn.Module:
        return ScanMixing(
            self.hidden_channels // self.n_heads,
            heads=self.n_heads,
            d_state=self.d_state,
            both_ways=self.directions == "both",
            across_heads=self.sharing == "none",
            residual=self.residual,
            options=replace(self.modes, selective=self.scan == "selective"),
        )


class SSNOSlices(SliceOperator):
    """SS-NO on slices: `SSNOSlices(config)`, or `SSNOSlices(scan="selective")` with its fields."""

    config_type = SSNOSlicesConfig
    config: SSNOSlicesConfig
