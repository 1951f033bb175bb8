"""Models of point clouds that exchange through slices: everything that Transolver and SS-NO on slices share.

    u = MLP [fields, distances to a lattice] + placeholder
    block:   u <- u + exchange(norm u),      u <- u + MLP(norm u)            (`ssno.layers.slices`)
    head:    Linear(norm u)

What happens among the slices is one module per block, made last, so that models with the same seed differ in it alone.
The lattice spans [-2.6, 3.4] x [-3, 3] in the normalised units of the context fields x and y (the original: 8 x 8 on
[-2, 4] x [-1.5, 1.5] in metres); x and y are the first two channels after the predicted ones. The models see one
frame at a time, and `spacing` has no meaning.

Axes: b trajectory, t time step, n = (b t) cloud, c field, p point, h channel.
"""

import abc
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ssno.base import require_one_of, require_pairs
from ssno.layers.modes import ModeOptions
from ssno.layers.slices import AttentionMixing, Mixing, NoMixing, ScanMixing, SliceExchange, ready
from ssno.models.config import OperatorConfig
from ssno.models.operator import NeuralOperator, OperatorState, Spacing
from ssno.models.pretrained import Pretrained

Start = Literal["truncated", "pytorch"]
LATTICE_X, LATTICE_Y = (-2.6, 3.4), (-3.0, 3.0)
TRUNCATED_STD = 0.02


@dataclass(frozen=True, kw_only=True)
class SliceConfig(OperatorConfig):
    """Sizes of a model of point clouds; context fields must begin with x and y."""

    geometries: ClassVar[tuple[str, ...]] = ("points",)
    smallest: ClassVar[Mapping[str, Any]] = {
        "hidden_channels": 16,
        "n_layers": 2,
        "n_heads": 2,
        "n_slices": 8,
        "lattice": 4,
        "start": "pytorch",
    }

    in_channels: int = 8
    out_channels: int = 3
    hidden_channels: int = 256
    """Width of the network."""
    n_layers: int = 8
    """Number of blocks."""
    n_heads: int = 8
    """Heads; divides the width."""
    n_slices: int = 32
    """Tokens per head."""
    lattice: int = 8
    """Points per axis of a lattice; the distances to all of its points are added to the input."""
    start: Start = "truncated"
    """Linear maps start truncated normal with deviation 0.02, as published, or as PyTorch starts them (better when
    narrow)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_dims != 1:
            raise ValueError(f"`n_dims` must be 1, the axis of points, got {self.n_dims}.")
        if self.hidden_channels % self.n_heads:
            raise ValueError(f"`n_heads` must divide `hidden_channels`, got {self.n_heads} and {self.hidden_channels}.")
        if self.in_channels < self.out_channels + 2:
            raise ValueError(
                "`in_channels` must count the context fields x and y after the predicted ones, got "
                f"{self.in_channels} for `out_channels={self.out_channels}`."
            )

    @abc.abstractmethod
    def slice_mixing(self) -> nn.Module:
        """What happens among the slices of one block."""

    @property
    def by_position(self) -> bool:
        """Whether slices are ordered by where their points are."""
        return False


class SliceBlock(nn.Module):
    """Exchange through slices, then a pointwise map, each added to its input."""

    def __init__(self, config: SliceConfig):
        super().__init__()
        width, hidden = config.hidden_channels, 2 * config.hidden_channels
        self.before_exchange, self.before_map = nn.LayerNorm(width), nn.LayerNorm(width)
        self.exchange = SliceExchange(
            width, heads=config.n_heads, slices=config.n_slices, by_position=config.by_position
        )
        self.map = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))

    def forward(self, u: Float[Tensor, "n p h"], mixing: Mixing, x: Float[Tensor, "n p"]) -> Float[Tensor, "n p h"]:
        u = u + self.exchange(self.before_exchange(u), mixing, x=x)
        return u + self.map(self.before_map(u))


class SliceOperator(NeuralOperator, Pretrained):
    """What models of point clouds share; not built itself."""

    config_type: ClassVar[type[SliceConfig]]
    config: SliceConfig
    lattice: Tensor

    def __init__(self, config: SliceConfig | None = None, **fields: Any):
        super().__init__()
        self.config = config = replace(config or self.config_type(), **fields)
        width, hidden = config.hidden_channels, 2 * config.hidden_channels
        along = (torch.linspace(*ends, config.lattice, dtype=torch.float64) for ends in (LATTICE_X, LATTICE_Y))
        corners = torch.cartesian_prod(*along).reshape(-1, 2)
        self.register_buffer("lattice", corners.to(torch.get_default_dtype()), persistent=False)
        self.lift = nn.Sequential(
            nn.Linear(config.in_channels + config.lattice**2, hidden), nn.GELU(), nn.Linear(hidden, width)
        )
        self.placeholder = nn.Parameter(torch.rand(width) / width)
        self.blocks = nn.ModuleList(SliceBlock(config) for _ in range(config.n_layers))
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, config.out_channels))
        if config.start == "truncated":
            self.apply(_start_truncated)
        self.mixings = nn.ModuleList(config.slice_mixing() for _ in range(config.n_layers))
        if config.start == "truncated":
            self.mixings.apply(_start_truncated_attention)

    def forward(self, frames: Tensor, *, spacing: Spacing = None) -> Tensor:
        """Predict the frame after each time step of (b, t, c_in, points)."""
        self.check_frames(frames)
        return self._clouds(frames.flatten(0, 1)).unflatten(0, frames.shape[:2])

    def start(self, first_frames: Tensor, *, spacing: Spacing = None) -> OperatorState:
        """Nothing is remembered."""
        self.check_frames(first_frames)
        return OperatorState(first_frames.new_zeros(0), spacing)

    def step(self, frame: Tensor, state: OperatorState) -> tuple[Tensor, OperatorState]:
        """Take the newest frame (b, c_in, points), give the next one."""
        self.check_frames(frame[:, None])
        return self._clouds(frame), state

    def _clouds(self, fields: Float[Tensor, "n c p"]) -> Float[Tensor, "n d p"]:
        points = fields.transpose(1, 2)
        place = points[..., self.config.out_channels :][..., :2]
        u = self.lift(torch.cat([points, distances(place, self.lattice)], dim=-1)) + self.placeholder
        mixings = ready(self.mixings, slices=self.config.n_slices)
        for block, mixing in zip(self.blocks, mixings, strict=True):
            u = block(u, mixing, place[..., 0])
        return self.head(u).transpose(1, 2)


def distances(place: Float[Tensor, "n p 2"], lattice: Float[Tensor, "m 2"]) -> Float[Tensor, "n p m"]:
    """From every point to every lattice point, each by its difference: products would cancel where they are close."""
    return torch.cdist(place, lattice, compute_mode="donot_use_mm_for_euclid_dist")


def _start_truncated(module: nn.Module) -> None:
    if isinstance(module, nn.Linear):
        nn.init.trunc_normal_(module.weight, std=TRUNCATED_STD)
        if module.bias is not None:
            nn.init.zeros_(module.bias)


def _start_truncated_attention(module: nn.Module) -> None:
    """State-space blocks keep their own start."""
    if isinstance(module, AttentionMixing):
        module.apply(_start_truncated)


# SS-NO on slices: Transolver with its attention among slices replaced by state-space scans over the slice index.
#
# The paper says no more than that, so this is a reading: 32 channels, shared by the heads as attention's weights are, a
# forward and a backward block with one residual around their sum (4,002,116 parameters with AirfRANS's 7 inputs).
# Slices have no order but the one the network learns; `order="position"` sorts them by the mean x of their points.

Scan = Literal["linear", "selective"]
Directions = Literal["both", "forward"]
Sharing = Literal["heads", "none"]
Order = Literal["index", "position"]
SliceResidual = Literal["sum", "none"]


@dataclass(frozen=True, kw_only=True)
class SSNOSlicesConfig(SliceConfig):
    """SS-NO on slices: points gather in slices, state-space scans run over the slices."""

    model_name: ClassVar[str] = "ssno-slices"
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
            raise ValueError("`modes.selective` is for models of grids; use `scan='selective'`.")
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


# Transolver: attention among the slices of a point cloud. Counted on AirfRANS with 7 inputs: 3,893,572 parameters.
#
# Differences from the public code are those of `ssno.models.slices`: the lattice in normalised units, and no idle
# layers (the public file carries 2,103,296 numbers that nothing uses).

TokenMixing = Literal["attention", "none"]


@dataclass(frozen=True, kw_only=True)
class TransolverConfig(SliceConfig):
    """Transolver: points gather in slices, slices attend to each other."""

    model_name: ClassVar[str] = "transolver"
    origin: ClassVar[str] = "Wu et al. 2024 (Transolver)"

    mixing: TokenMixing = "attention"
    """How slices are mixed: attention, or none, an ablation."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_one_of("mixing", self.mixing, get_args(TokenMixing))

    def build(self) -> "Transolver":
        return Transolver(self)

    def slice_mixing(self) -> nn.Module:
        return AttentionMixing(self.hidden_channels // self.n_heads) if self.mixing == "attention" else NoMixing()


class Transolver(SliceOperator):
    """Transolver: `Transolver(config)`, or `Transolver(hidden_channels=64, n_heads=4)` with its fields."""

    config_type = TransolverConfig
    config: TransolverConfig
