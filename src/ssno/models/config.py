"""Typed model descriptions: frozen dataclasses that validate themselves, build the model, and live on disk as JSON.

A configuration read from a file names its model; only names in `ssno.models.registry` are known, so that opening a file
never imports or runs anything it chooses.
"""

import abc
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar, get_args

from torch import nn

from ssno.base import description_from_json, require_one_of, require_pairs, require_positive
from ssno.layers.memory import MemoryKernel, TemporalMemory

LARGEST_MODEL = 2**28
"""Parameters of the largest model that is built: a gibibyte of float32."""
LARGEST_SIZES = {"n_layers": 256, "d_state": 1024, "memory_d_state": 1024, "memory_window": 4096}
"""Limits of sizes that cost time rather than parameters."""

Config = TypeVar("Config", bound="OperatorConfig")


@dataclass(frozen=True, kw_only=True)
class OperatorConfig(abc.ABC):
    """What every model has. `in_channels` counts state and context fields; coordinates are added inside."""

    name: ClassVar[str]
    """How commands and files call this model."""
    origin: ClassVar[str] = "the SS-NO paper"
    """Where the model comes from."""
    grid_types: ClassVar[tuple[str, ...]] = ("cartesian", "sphere")
    """Kinds of grids that the model takes; on the sphere most see a rectangle of colatitude and longitude."""

    in_channels: int = 1
    """State fields plus context fields."""
    out_channels: int = 1
    """Predicted fields."""
    n_dims: int = 1
    """Number of grid axes."""

    def __post_init__(self) -> None:
        for field in ("in_channels", "out_channels"):
            require_positive(field, getattr(self, field))
        if self.n_dims not in (1, 2, 3):
            raise ValueError(f"`n_dims` must be 1, 2 or 3, got {self.n_dims}.")
        for name, most in LARGEST_SIZES.items():
            if getattr(self, name, 0) > most:
                raise ValueError(f"`{name}` must be at most {most:,}, got {getattr(self, name):,}.")
        if self.approximate_size() > LARGEST_MODEL:
            raise ValueError(
                f"This {self.name!r} model would have about {self.approximate_size():,} parameters; models of up to "
                f"{LARGEST_MODEL:,} are built. Make it narrower or shallower."
            )

    def check_grid_type(self, grid_type: str) -> None:
        """Refuse data on a kind of grid that the model cannot take."""
        if grid_type not in self.grid_types:
            raise ValueError(
                f"Model {self.name!r} takes data on {' or '.join(map(repr, self.grid_types))} grids, but these data "
                f"are on {grid_type!r}. `ssno models` says which model takes what."
            )

    @abc.abstractmethod
    def build(self) -> nn.Module:
        """The model, freshly initialised from torch's random state."""

    def build_described(self) -> nn.Module:
        """The model of `build`; one that does not carry its description as `config` is given this one."""
        model = self.build()
        if not hasattr(model, "config"):
            model.config = self  # type: ignore[assignment]
        return model

    def approximate_size(self) -> int:
        """Roughly how many parameters the model has, from its sizes alone: no memory is taken to tell."""

        def size(name: str) -> int:
            return max(1, getattr(self, name, 1))

        width = max(size("hidden_channels"), size("embed_dim"))
        inner = max(width * size("expansion"), size("head_channels") * size("n_heads"))
        entering = self.in_channels * size("frames_as_channels") + self.out_channels
        states = size("d_state") + size("memory_d_state")
        return size("n_layers") * self.n_dims * (4 * width * inner + 4 * width * states) + entering * inner

    def for_grid(self: Config, grid: Sequence[int]) -> Config:
        """The same model with no more Fourier modes than `grid` carries; a model without modes is returned as it is."""
        return self

    def recommended(self: Config, *, periodic: bool | Sequence[bool]) -> Config:
        """The same model with the settings our recipe found best for data whose axes are `periodic`, or not."""
        return self

    def frames_seen(self) -> int:
        """How many frames the model looks at: its memory, or the frames it takes as channels."""
        return getattr(self, "frames_as_channels", 0) or getattr(self, "memory_window", 1)

    @classmethod
    def tiny(cls, **fields: Any) -> "OperatorConfig":
        """The smallest useful size, with `fields` changed: for tests and first tries."""
        return cls(**fields)

    def to_json(self) -> dict[str, Any]:
        """Plain values, complete, with the model's name."""
        return {"model": self.name, **dataclasses.asdict(self)}

    @classmethod
    def from_json(cls: type[Config], values: Mapping[str, Any]) -> Config:
        """The inverse of `to_json`. Unknown names, values of a wrong type, and absurd sizes are refused."""
        values = dict(values)
        name = values.pop("model", cls.name)
        if name != cls.name:
            raise ValueError(f"The configuration is of a {name!r} model, but {cls.__name__} describes {cls.name!r}.")
        return description_from_json(cls, values)


# How a model sees the past: descriptions that all models with a choice share.
#
#     memory            a causal S4D block over the last K frames      memory_window=K
#     Markovian         the newest frame only                          memory_window=0
#     frames as channels the last K frames stacked into one input      frames_as_channels=K, memory_window=0
#
# The calling convention of the three is the same (`ssno.models.operator`).


@dataclass(frozen=True, kw_only=True)
class FramesConfig(OperatorConfig):
    """A model that may take several frames as channels of one input."""

    frames_as_channels: int = 0
    """Stack this many frames, oldest first, into one input and predict one frame; 0 maps frame by frame."""
    coordinates: bool = True
    """Append grid coordinates to the input; without them a periodic model commutes with translations."""
    coordinate_axes: tuple[int, ...] | None = None
    """Append those of these axes only, counted from 0; None for all."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.frames_as_channels < 0:
            raise ValueError(
                "`frames_as_channels` must be 0 (frame by frame) or the number of frames to stack, "
                f"got {self.frames_as_channels}."
            )

        for axis in self.coordinate_axes or ():
            if not 0 <= axis < self.n_dims:
                raise ValueError(f"`coordinate_axes` must lie in 0 ... {self.n_dims - 1}, got {self.coordinate_axes}.")

    def located_axes(self) -> tuple[int, ...]:
        """The axes whose coordinates enter the model."""
        if not self.coordinates:
            return ()
        return tuple(range(self.n_dims)) if self.coordinate_axes is None else self.coordinate_axes

    def lifted_channels(self) -> int:
        """Channels that enter the first layer: fields of all stacked frames, and coordinates."""
        return self.in_channels * max(1, self.frames_as_channels) + len(self.located_axes())


@dataclass(frozen=True, kw_only=True)
class MemoryConfig(FramesConfig):
    """A model with memory between its spatial layers, or without."""

    memory_window: int = 4
    """How many frames memory sees, the newest included; 0 for no memory."""
    memory_d_state: int = 64
    """States per channel of the temporal memory; even."""
    memory_kernel: MemoryKernel = "s4d"
    """The system that remembers: diagonal (s4d) or diagonal plus low rank (s4)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_pairs("memory_d_state", self.memory_d_state)
        require_one_of("memory_kernel", self.memory_kernel, get_args(MemoryKernel))
        if self.memory_window < 0:
            raise ValueError(f"`memory_window` must be 0 (no memory) or more, got {self.memory_window}.")
        if self.memory_window and self.frames_as_channels:
            raise ValueError(
                f"`frames_as_channels={self.frames_as_channels}` leaves one slot, so there is nothing to remember over "
                f"`memory_window={self.memory_window}` of them. Set one of the two to 0."
            )

    def memory(self, channels: int) -> TemporalMemory | None:
        """The memory of a model whose features have `channels` channels; None without memory."""
        if not self.memory_window:
            return None
        return TemporalMemory(
            channels, window=self.memory_window, d_state=self.memory_d_state, kernel=self.memory_kernel
        )
