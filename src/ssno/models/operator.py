"""What every model can do: predict along a trajectory, and stream.

    forward(frames) -> next frames            (b, t, c_in, *grid) -> (b, t, c_out, *grid): step t predicts frame t + 1
    state = model.start(first_frames)         computes what is needed of all frames but the newest
    frame, state = model.step(frame, state)   takes the newest frame, returns the next one

so that a rollout reads

    state, frame = model.start(first_frames), first_frames[:, -1]
    for _ in range(n_steps):
        frame, state = model.step(frame, state)

`MemoryOperator` is the interface of learned models with memory (as in MemNO): spatial layers, memory over time, spatial
layers. Memory may be missing (a Markovian model), and frames may instead be stacked as channels: then the model takes
at least K frames, uses the last K, and returns one time step.

Axes: b trajectory, t time step, n = (b t) frame, c field, h channel, k earlier frame.
"""

import abc
import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from ssno.layers.block import DiscretisedKernels
from ssno.layers.memory import TemporalMemory
from ssno.layers.space import AxisScan, SpaceMesh
from ssno.models.config import GridConfig, OperatorConfig
from ssno.native.engine import fused, plain

# Counting parameters the way the paper does: complex numbers count as two, frozen ones count, buffers do not.

FILLING = (nn.init.uniform_, nn.init.normal_, nn.init.kaiming_uniform_)
"""Initialisers of large weights; not the truncated normal, which draws again until its values fit."""


def count_parameters(model: nn.Module, *, learnable_only: bool = False) -> int:
    """Number of real parameters of a model."""
    return sum(
        parameter.numel() * (2 if parameter.is_complex() else 1)
        for parameter in model.parameters()
        if parameter.requires_grad or not learnable_only
    )


def parameters_of(config: OperatorConfig) -> int:
    """Number of real parameters of the model that is described, without allocating them."""
    with torch.random.fork_rng(devices=[]), Unfilled():
        return count_parameters(config.build())


class Unfilled(TorchFunctionMode):
    """Weights are not filled with random numbers: what is never written takes no memory.

    The meta device would do as well, but its first sum imports PyTorch's compiler, which takes a second.
    """

    def __torch_function__(self, function: Any, types: Any, arguments: Any = (), options: Any = None) -> Any:
        if function in FILLING:
            return options["tensor"]
        return function(*arguments, **(options or {}))


# A cache of what a model computes from its weights and a grid alone, valid until a weight changes.
#
# It is used in evaluation mode without gradients. An entry is valid as long as every parameter and buffer is the same
# tensor, in the same memory, with the same version: PyTorch counts every operation that writes to a tensor, so in-place
# edits, optimiser steps, `load_state_dict`, moves and replaced parameters are all noticed. **Not noticed** are writes
# past PyTorch: through `parameter.data`, a NumPy view, or another process's shared memory. Call `model.train()`, or
# `clear`, after such a write.
#
# A copy of a model starts with an empty cache. Threads may share a model: entries are replaced, never changed.

MOST_ENTRIES = 4
"""Most recent pairs of a grid and a number of frames in the cache."""


class _Entry(NamedTuple):
    tensors: tuple[Tensor, ...]
    """Aliases of the weights: they share versions, and hold the memory so that no other tensor can take its place."""
    versions: tuple[int, ...]
    value: Any


class GridWeightCache:
    """A small cache beside a module; the comment above says which changes of weights it notices."""

    def __init__(self) -> None:
        self.entries: dict[Hashable, _Entry] = {}

    def get(self, module: nn.Module, key: Hashable, make: Callable[[], Any]) -> Any:
        """The cached value of `key` if no weight of `module` has changed since, else a new one."""
        tensors: list[Tensor] = []
        _collect(module, tensors)
        try:
            versions = tuple(tensor._version for tensor in tensors)
            entry = self.entries.get(key)
            if entry is not None and entry.versions == versions and _same_memory(entry.tensors, tensors):
                return entry.value
            aliases = tuple(tensor.detach() for tensor in tensors)
            _same_memory(aliases, tensors)
        except RuntimeError:  # no versions (inference mode) or no memory (fake tensors): nothing can be checked
            return make()
        value = make()
        kept = {name: other for name, other in self.entries.items() if name != key and other.versions == versions}
        self.entries = {**dict(list(kept.items())[1 - MOST_ENTRIES :]), key: _Entry(aliases, versions, value)}
        return value

    def clear(self) -> None:
        """Drop all entries."""
        self.entries = {}

    def __deepcopy__(self, memo: Any) -> "GridWeightCache":
        return GridWeightCache()

    def __reduce__(self) -> Any:
        return GridWeightCache, ()


def _collect(module: nn.Module, into: list[Tensor]) -> None:
    """All parameters and buffers; `module.parameters()` takes ten times as long."""
    for own in (module._parameters, module._buffers):
        into.extend(tensor for tensor in own.values() if tensor is not None)
    for child in module._modules.values():
        if child is not None:
            _collect(child, into)


def _same_memory(some: Sequence[Tensor], others: Sequence[Tensor]) -> bool:
    return len(some) == len(others) and all(a.data_ptr() == b.data_ptr() for a, b in zip(some, others, strict=True))


def can_cache(module: nn.Module) -> bool:
    """Whether predictions of this module may use cached weights."""
    return not (module.training or torch.is_grad_enabled())


# What every model can do: predict along a trajectory, and stream.

Spacing = float | Sequence[float] | None
"""Grid spacing: one number, one per axis, or None for that of the weights."""


class PrecomputedWeights(NamedTuple):
    """What a model computes from its weights and a grid alone, once for many frames."""

    memory: DiscretisedKernels | None
    """Kernels of the memory."""
    blocks: Sequence[Sequence[DiscretisedKernels]] = ()
    """Kernels of every scan of every spatial block."""
    coordinates: Float[Tensor, "axes *grid"] | None = None
    """Coordinates of the grid points, for a model that appends them."""
    relative: tuple[float, ...] = ()
    """The spacing in units of the reference one, for blocks that sample their kernels themselves."""

    def prepared(self, frames: int, grid: Sequence[int]) -> "PrecomputedWeights":
        """The same, prepared for repeated scans of `frames` frames."""
        points = frames * math.prod(grid)
        blocks = [[w.prepared(points // w.taps.shape[-1]) if w.taps is not None else w for w in b] for b in self.blocks]
        return self._replace(blocks=blocks)


class OperatorState(NamedTuple):
    """The state of a streaming model: a buffer of at most K - 1 earlier frames, and the grid spacing.

    `weights` were computed from the parameters when streaming began; after a change of parameters, start again.
    """

    buffer: Float[Tensor, "k ..."]
    spacing: Spacing = None
    weights: PrecomputedWeights | None = None

    def detached(self) -> "OperatorState":
        """The same without gradients; the next step computes `weights` again."""
        return OperatorState(self.buffer.detach(), self.spacing)


class NeuralOperator(nn.Module, abc.ABC):
    """Interface of every model. Trajectories are (batch, time, channel, *grid)."""

    config: OperatorConfig
    space: SpaceMesh | None = None
    """While it is set, frames are pieces of larger ones (`SpaceMesh.inside`)."""
    gradient_checkpointing: bool = False
    """Whether spatial blocks are computed again in the backward pass, for which their inputs alone are kept."""
    sharded: bool = False
    """Whether every process holds a shard of each weight (`Process.shard`): a block's are whole inside it alone."""

    @property
    def native_bf16(self) -> bool:
        """Whether `forward` casts its features for native bf16 code by itself (`ssno.native.engine`)."""
        return False

    @property
    def frames_as_channels(self) -> int:
        """K if the model takes its last K frames as channels and returns one time step; 0 if it maps step by step."""
        return 0

    @abc.abstractmethod
    def forward(self, frames: Tensor, *, spacing: Spacing = None) -> Tensor:
        """Predict the frame after each time step. `spacing` is the grid spacing (per axis); None: the reference."""

    @abc.abstractmethod
    def start(self, first_frames: Tensor, *, spacing: Spacing = None) -> OperatorState:
        """Prepare a rollout from frames (b, t, c_in, *grid); the newest is for the first `step` to take."""

    @abc.abstractmethod
    def step(self, frame: Tensor, state: OperatorState) -> tuple[Tensor, OperatorState]:
        """Take the newest frame (b, c_in, *grid), return the next one (b, c_out, *grid)."""

    def working_grid(self, grid: Sequence[int], *, spacing: Spacing = None) -> tuple[int, ...]:
        """The grid on which to forecast frames given on `grid`, if another one of the same box serves better."""
        return tuple(grid)

    def predict_next(self, frames: Tensor, *, spacing: Spacing = None) -> Tensor:
        """Predict only the frame after the newest one, (b, c_out, *grid)."""
        return self.forward(frames, spacing=spacing)[:, -1]

    def axis_scans(self, grid: Sequence[int]) -> list[AxisScan]:
        """What is scanned along each axis of a grid, for models whose fields may be split over processes."""
        raise ValueError(
            f"`mesh` splits the fields of models that scan one axis after the other: ssno, ssno-uni, ssno-ff, "
            f"ssno-product and ssno-selective, not {self.config.name!r}. Leave out space, and give every process whole "
            "trajectories with --nproc."
        )

    def spatial_blocks(self) -> list[nn.Module]:
        """The blocks that may be computed again, and have whole weights one at a time."""
        raise ValueError(
            f"`fsdp` and `gradient_checkpointing` work on the spatial blocks of ssno, ssno-uni, ssno-vm, ssno-ff, "
            f"ssno-product and ssno-selective, not of {self.config.name!r}. Leave them out."
        )

    def idle_parameters(self) -> list[str]:
        """Names of learnable parameters that no gradient reaches by design."""
        return []

    def check_frames(self, frames: Tensor) -> None:
        """Refuse anything but (b, t, c_in, *grid) of floating-point numbers."""
        config = self.config
        expected = ("batch", "time", "channel", "x", "y", "z")[: 3 + config.n_dims]
        if not isinstance(frames, Tensor) or not frames.is_floating_point():
            kind = str(frames.dtype) if isinstance(frames, Tensor) else type(frames).__name__
            raise ValueError(f"`frames` must be a floating-point tensor, got {kind}. Convert it with `.float()`.")
        if frames.ndim != len(expected):
            raise ValueError(
                f"`frames` must be ({', '.join(expected)}), got shape {tuple(frames.shape)}: {frames.ndim - 3} grid "
                f"axes where this model has {config.n_dims}. Build it with `n_dims={max(1, frames.ndim - 3)}`, or "
                "add the missing axis."
            )
        if frames.shape[2] != config.in_channels:
            raise ValueError(
                f"`frames` has {frames.shape[2]} channels, shape {tuple(frames.shape)}, but this model takes "
                f"{config.in_channels} (state and context fields; coordinates are added inside). "
                f"Build it with `in_channels={frames.shape[2]}`, or check the axis order (batch, time, channel, *grid)."
            )
        if 0 in frames.shape:
            raise ValueError(f"`frames` is empty: shape {tuple(frames.shape)}.")


class MemoryOperator(NeuralOperator):
    """Interface of models with spatial layers, memory over the last K frames, and spatial layers.

    A model defines its two halves, `before` and `after`. Between them features are channel-first with frames
    last, (h, *grid, n): there memory is a matrix product.
    """

    config: GridConfig
    memory: TemporalMemory | None

    def __init__(self) -> None:
        super().__init__()
        self._weight_cache = GridWeightCache()

    @abc.abstractmethod
    def before(self, frames: Float[Tensor, "n c *grid"], weights: PrecomputedWeights) -> tuple[Tensor, Any]:
        """The first half, frame by frame: features (h, *grid, n) for the memory block, and a skip around it."""

    @abc.abstractmethod
    def after(self, features: Tensor, skip: Any, weights: PrecomputedWeights) -> Float[Tensor, "n c *grid"]:
        """The second half, frame by frame: from the features that memory returns to predicted fields."""

    def forward(self, frames: Tensor, *, spacing: Spacing = None) -> Tensor:
        """Predict the frame after each time step of (b, t, c_in, *grid); only one step if frames are channels."""
        frames = self.time_steps(frames)
        weights = self.weights_for(len(frames) * frames.shape[1], frames.shape[3:], spacing=spacing)
        features, skip = self.before(frames.flatten(0, 1), weights)
        features = self.remember(features, frames.shape[1], weights)
        return self.after(features, skip, weights).unflatten(0, frames.shape[:2])

    def time_steps(self, frames: Tensor) -> Tensor:
        """The frames, checked; where frames are channels, the last K of them as one step, (b, 1, (k c), *grid)."""
        self.check_frames(frames)
        return self._last(frames).flatten(1, 2)[:, None] if self.frames_as_channels else frames

    def remember(self, features: Float[Tensor, "h *grid n"], steps: int, weights: PrecomputedWeights) -> Tensor:
        """Mix the features of every trajectory over its last K time steps; without memory, leave them as they are."""
        if self.memory is None:
            return features
        return self.memory.columns(features.unflatten(-1, (-1, steps)), weights=weights.memory).flatten(-2)

    def grid_weights(self, grid: Sequence[int], *, spacing: Spacing = None) -> PrecomputedWeights:
        """What the model computes from its weights and the grid alone, such as kernels."""
        return PrecomputedWeights(self.memory.weights() if self.memory is not None else None)

    def weights_for(self, frames: int, grid: Sequence[int], *, spacing: Spacing = None) -> PrecomputedWeights:
        """`grid_weights` for `frames` frames at a time: cached between predictions, computed anew in training."""
        if not can_cache(self) or plain() or self.space is not None:
            return self.grid_weights(grid, spacing=spacing)
        each = tuple(spacing) if isinstance(spacing, Sequence) else spacing
        key = (frames, tuple(grid), each, fused())
        return self._weight_cache.get(
            self, key, lambda: self.grid_weights(grid, spacing=spacing).prepared(frames, grid)
        )

    def train(self, mode: bool = True) -> "MemoryOperator":
        """As for any module; training clears the cached weights."""
        if mode:
            self._weight_cache.clear()
        return super().train(mode)

    # Streaming: every frame's features are computed once and kept for as long as memory sees them.

    @property
    def frames_as_channels(self) -> int:
        return self.config.frames_as_channels

    @property
    def _earlier(self) -> int:
        """How many earlier frames a step needs."""
        return self.memory.window - 1 if self.memory is not None else 0

    def start(self, first_frames: Tensor, *, spacing: Spacing = None) -> OperatorState:
        """Compute the features that memory needs of all frames but the newest."""
        self.check_frames(first_frames)
        if self.frames_as_channels:
            return OperatorState(self._last(first_frames)[:, :-1].transpose(0, 1), spacing)
        weights = self.weights_for(len(first_frames), first_frames.shape[3:], spacing=spacing)
        earlier = first_frames[:, :-1][:, -self._earlier :] if self._earlier else first_frames[:, :0]
        if earlier.shape[1] == 0:
            return OperatorState(first_frames.new_zeros(0), spacing, weights)
        features, _ = self.before(earlier.flatten(0, 1), weights)
        features = features.to(first_frames.dtype)  # the buffer has full precision
        buffer = features.unflatten(-1, earlier.shape[:2]).movedim(-1, 0).contiguous()
        return OperatorState(buffer, spacing, weights)

    def step(self, frame: Tensor, state: OperatorState) -> tuple[Tensor, OperatorState]:
        """Take the newest frame (b, c_in, *grid), return the next one."""
        self.check_frames(frame[:, None])
        buffer, spacing, weights = state
        if self.frames_as_channels:
            stacked = torch.cat([buffer, frame[None]])
            prediction = self.forward(stacked.transpose(0, 1), spacing=spacing)[:, 0]
            return prediction, OperatorState(stacked[1:], spacing)
        if weights is None:
            weights = self.weights_for(len(frame), frame.shape[2:], spacing=spacing)
        features, skip = self.before(frame, weights)
        if self.memory is not None:
            features = features.to(frame.dtype)
            buffer = torch.cat([buffer, features[None]]) if buffer.numel() else features[None]
            features = self.memory.newest(buffer, weights=weights.memory)
            buffer = buffer[-self._earlier :] if self._earlier else buffer[:0]
        return self.after(features, skip, weights), OperatorState(buffer, spacing, weights)

    def predict_next(self, frames: Tensor, *, spacing: Spacing = None) -> Tensor:
        """Only the frame after the newest one: the second half of the model runs once, not once per time step."""
        if self.frames_as_channels:
            return self.forward(frames, spacing=spacing)[:, -1]
        self.check_frames(frames)
        if self.memory is None:
            return self.forward(frames[:, -1:], spacing=spacing)[:, -1]
        frames = frames[:, -self.memory.window :]
        trajectories, steps = frames.shape[:2]
        weights = self.weights_for(trajectories * steps, frames.shape[3:], spacing=spacing)
        features, skip = self.before(frames.flatten(0, 1), weights)
        history = features.to(frames.dtype).unflatten(-1, (trajectories, steps)).movedim(-1, 0)
        newest = self.memory.newest(history, weights=weights.memory)
        return self.after(newest, None if skip is None else skip[steps - 1 :: steps], weights)

    def _last(self, frames: Tensor) -> Tensor:
        count = self.frames_as_channels
        if frames.shape[1] < count:
            raise ValueError(
                f"`frames` has {frames.shape[1]} time steps, shape {tuple(frames.shape)}, but this model takes its "
                f"last {count} frames as channels. Give it at least {count}."
            )
        return frames[:, -count:]
