"""How a model sees the past: descriptions that all models with a choice share.

    memory            a causal S4D block over the last K frames      memory_window=K
    Markovian         the newest frame only                          memory_window=0
    frames as channels the last K frames stacked into one input      frames_as_channels=K, memory_window=0

The calling convention of the three is the same (`ssno.models.operator`).
"""

from dataclasses import dataclass
from typing import get_args

from ssno.base import require_one_of, require_pairs
from ssno.layers.memory import MemoryKernel, TemporalMemory
from ssno.models.config import OperatorConfig


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
