"""A forecaster: a model, the units it works in, and the grid it was trained on.

Models see normalised fields. A forecaster normalises what goes in, turns the model's answer into the next frame and
brings it back to physical units. The answer is the next frame itself, or, with `predict_increment`, the change since
the last frame in units of its usual size:

    next = last + scale * model(frames)          scale = standard deviation of one-step changes in training data

Between `encode` and `decode` everything is in normalised units; `ssno.forecasting.rollout` does whole forecasts. On
disk a forecaster is a model folder (`ssno.models.pretrained`) whose config.json also holds units and window; what
training adds to it, and how it is read again, is in `ssno.runs.load`.

Axes: b trajectory, t time slot, c state field, k context field, then the grid.
"""

import dataclasses
import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ssno.base import write_document
from ssno.base.device import WITHOUT_FLOAT64
from ssno.data.envelope import Envelope
from ssno.data.normalise import AffineMap, Normalisers
from ssno.data.windows import ContextTime, Window, sliding_windows
from ssno.forecasting.quadrature_weights import Outside, find_outside, hold
from ssno.models.config import OperatorConfig
from ssno.models.operator import OperatorState, Spacing
from ssno.models.pretrained import CONFIG, FORMAT, VERSION, save_weights
from ssno.native.engine import Precision, check_precision, computing
from ssno.transforms.periodic import resample

# Streaming for any module: keep the last K inputs and call `forward` on them.
#
# Our own models stream with cached features. A module of the user's needs only
# `forward(frames (b, t, c, *grid)) -> (b, t, c_out, *grid)`; this gives it `start` and `step`.


class Windowed(nn.Module):
    """A module with `forward` alone, made to stream over a window of the last `size` frames."""

    def __init__(self, module: nn.Module, *, size: int):
        super().__init__()
        self.module = module
        self.size = max(1, size)

    def forward(self, frames: Tensor, **options: Any) -> Tensor:
        return self.module(frames, **options)

    def start(self, first_frames: Tensor, *, spacing: Spacing = None) -> OperatorState:
        """Keep the given frames but the newest."""
        return OperatorState(first_frames[:, :-1][:, -self.size :], spacing)

    def step(self, frame: Tensor, state: OperatorState) -> tuple[Tensor, OperatorState]:
        """Append the newest frame, predict, forget the oldest."""
        frames = torch.cat([state.buffer, frame[:, None]], dim=1)[:, -self.size :]
        options = {} if state.spacing is None else {"spacing": state.spacing}
        return self.module(frames, **options)[:, -1], OperatorState(frames, state.spacing)


# A forecaster: a model, the units it works in, and the grid it was trained on.


class Forecaster(nn.Module):
    """A trained (or to be trained) model with its normalisers.

    Args:
        model: any module with the calling convention of `ssno.models.operator.NeuralOperator`.
        normalisers: of the state and the context fields, fitted on training data.
        predict_increment: the model predicts changes instead of frames.
        window: how many frames it sees and from which it starts.
        context_time: context of a slot is that of its own frame ("input") or of the one it predicts ("target").
        spacing: the grid spacing that the weights refer to, that of the training data.
        spacings: those of all grids that it is trained on, if they are several: it works on them as they are.
        precision: of the model's activations (`ssno.native.engine`); frames come back as they were given.
        mask: the known field that says where there are no data (`ssno.forecasting.quadrature_weights`).
        envelope: what the training data looked like, to which forecasts are held (`ssno.forecasting.watch`).
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        normalisers: Normalisers,
        predict_increment: bool = False,
        window: Window | None = None,
        context_time: ContextTime = "input",
        spacing: Sequence[float] | None = None,
        spacings: Sequence[Sequence[float]] = (),
        precision: Precision = "float32",
        mask: str | None = None,
        envelope: Envelope | None = None,
    ):
        super().__init__()
        check_precision(precision)
        if mask is not None and mask not in normalisers.context.fields:
            raise ValueError(f"`mask` must be one of the known fields {normalisers.context.fields}, got {mask!r}.")
        self.model, self.precision, self.mask, self.envelope = model, precision, mask, envelope
        self.window = window or Window()
        streams = hasattr(model, "start") and hasattr(model, "step")
        # Not registered: the parameters belong to `model` and must not appear twice.
        object.__setattr__(self, "streaming", model if streams else Windowed(model, size=self.window.size))
        self.normalisers = normalisers
        self.predict_increment = predict_increment
        self.context_time: ContextTime = context_time
        self.spacing = tuple(spacing) if spacing is not None else None
        self.spacings = tuple(tuple(steps) for steps in spacings)
        scale = torch.tensor(normalisers.state.encoded_increment, dtype=torch.get_default_dtype())
        self.register_buffer(
            "increment_scale", scale if predict_increment else torch.zeros_like(scale), persistent=False
        )

    increment_scale: Tensor
    streaming: Any

    @property
    def frames_as_channels(self) -> int:
        """K if the model takes its last K frames as channels, 0 if it maps slot by slot."""
        return getattr(self.model, "frames_as_channels", 0)

    @property
    def trained_steps(self) -> int | None:
        """How many steps its training trajectories go on after the given frames, if that is recorded."""
        return None if self.envelope is None else len(self.window.plan(self.envelope.frames).predicted)

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        return self.increment_scale.device

    @property
    def dtype(self) -> torch.dtype:
        """What the weights of the model are kept in, and frames while they pass through it."""
        kinds = (parameter.dtype for parameter in self.model.parameters() if parameter.is_floating_point())
        return next(kinds, self.increment_scale.dtype)

    def in_precision(self, precision: Precision) -> "Forecaster":
        """Compute in this precision from now on: weights become float32, or float64 if that is asked for."""
        check_precision(precision)
        if precision == "float64" and self.device.type in WITHOUT_FLOAT64:
            raise ValueError(f"`precision` is 'float64', which {self.device.type} does not have. Use `device='cpu'`.")
        self.precision = precision
        return self.double() if precision == "float64" else self.float()

    @contextmanager
    def at(self, precision: Precision) -> Iterator[None]:
        """Activations of this precision inside the `with` block; weights stay as they are."""
        before, self.precision = self.precision, precision
        try:
            yield
        finally:
            self.precision = before

    def computing(self) -> AbstractContextManager[None]:
        """Inside, the model computes in the forecaster's precision."""
        return computing(self.model, self.precision, device=self.device)

    def units(self, given: Float[Tensor, "b t c *grid"]) -> AffineMap:
        """The normalisation of these trajectories; it may look at given frames only."""
        return self.normalisers.state.bind(given if self.normalisers.state.method == "per_sample_minmax" else None)

    def encode_context(self, context: Float[Tensor, "b t k *grid"]) -> Float[Tensor, "b t k *grid"]:
        """Known fields in normalised units."""
        return self.normalisers.context.encode(context) if context.shape[2] else context

    def outside(self, context: Float[Tensor, "b t k *grid"]) -> Outside:
        """Where there are no data, from known fields in either units."""
        return find_outside(context, None if self.mask is None else self.normalisers.context.fields.index(self.mask))

    def forward(
        self,
        state: Float[Tensor, "b t c *grid"],
        context: Float[Tensor, "b t k *grid"],
        *,
        spacing: Sequence[float] | None = None,
    ) -> Float[Tensor, "b s c *grid"]:
        """The next frame of every slot, in normalised units (teacher forcing).

        Models that take K frames as channels answer for slots K - 1 and later only.
        """
        grid, taken = state.shape[3:], self.frames_as_channels
        working = self.working_grid(grid, spacing=spacing)
        if spacing is not None and working != tuple(grid):
            finer = self(resample(state, working), resample(context, working), spacing=rescaled(spacing, grid, working))
            return resample(finer, grid)
        inputs = torch.cat([state, context], dim=2)
        other = self.spacing_for_model(spacing)
        options = {} if other is None else {"spacing": other}  # a module of the user's may not know the word
        inputs = inputs.to(self.dtype)
        if not taken:
            with self.computing():
                answer = self.model(inputs, **options)
            return self._next(state, answer)
        windows = sliding_windows(inputs, taken)  # b w K c *grid
        with self.computing():
            answer = self.model(windows.flatten(0, 1), **options)[:, -1].unflatten(0, windows.shape[:2])
        return self._next(state[:, taken - 1 :], answer)

    def start(
        self,
        state: Float[Tensor, "b t c *grid"],
        context: Float[Tensor, "b t k *grid"],
        *,
        spacing: Sequence[float] | None = None,
    ) -> OperatorState:
        """Begin streaming from given frames, normalised; the newest is for the first `step` to take."""
        inputs = torch.cat([state, context], dim=2).to(self.dtype)
        with self.computing():
            return self.streaming.start(inputs, spacing=self.spacing_for_model(spacing))

    def step(
        self, frame: Float[Tensor, "b c *grid"], context: Float[Tensor, "b k *grid"], state: OperatorState
    ) -> tuple[Float[Tensor, "b c *grid"], OperatorState]:
        """One step in normalised units: the newest frame in, the next one out, held where there are no data."""
        outside = self.outside(context[:, None])
        if self.context_time == "input":  # known fields are those of the frame that comes in
            frame = hold(frame[:, None], outside)[:, 0]
        with self.computing():
            answer, state = self.streaming.step(torch.cat([frame, context], dim=1).to(self.dtype), state)
        following = self._next(frame[:, None], answer[:, None])
        return (following if self.context_time == "input" else hold(following, outside))[:, 0], state

    def working_grid(self, grid: Sequence[int], *, spacing: Sequence[float] | None = None) -> tuple[int, ...]:
        """The grid on which to forecast frames given on `grid`: the same, unless the model prefers another one."""
        other = self.spacing_for_model(spacing)
        wanted = getattr(self.model, "working_grid", None)
        known = spacing is not None and any(
            all(math.isclose(a, b, rel_tol=1e-6) for a, b in zip(spacing, steps, strict=True))
            for steps in self.spacings
        )
        return tuple(grid) if other is None or wanted is None or known else wanted(grid, spacing=other)

    def copies(self, grid: Sequence[int], *, spacing: Sequence[float] | None = None) -> tuple[int, ...]:
        """Of how many interleaved copies of the trained grid a forecast on `grid` consists along each axis."""
        other, counted = self.spacing_for_model(spacing), getattr(self.model, "copies", None)
        return (1,) * len(grid) if other is None or counted is None else counted(grid, spacing=other)

    def spacing_for_model(self, spacing: Sequence[float] | None) -> Sequence[float] | None:
        """The spacing as the model takes it, None on the grid that its weights refer to.

        A model measures it in units of its own reference; what counts is the ratio to `self.spacing`, the one owner.
        """
        if spacing is None or self.spacing is None or tuple(spacing) == self.spacing:
            return None
        config = getattr(self.model, "config", None)
        own = getattr(config, "reference_spacing", self.spacing) or (1.0,) * len(spacing)
        return [
            step if unit == ours else step / ours * unit
            for step, ours, unit in zip(spacing, self.spacing, own, strict=True)
        ]

    def describe(self) -> dict[str, Any]:
        """Everything but the weights, as JSON values. A module without a `config` of ours is called by its class."""
        config = getattr(self.model, "config", None)
        described: dict[str, Any] = {"model": type(self.model).__name__}
        if isinstance(config, OperatorConfig):
            described = config.to_json()
        if described.get("reference_spacing", "unknown") is None:  # so that the model alone knows its grid too
            described["reference_spacing"] = self.spacing
        units = {
            "state": self.normalisers.state.to_json(),
            "context": self.normalisers.context.to_json(),
            "predict_increment": self.predict_increment,
            "window": dataclasses.asdict(self.window),
            "context_time": self.context_time,
            "spacing": self.spacing,
            "spacings": self.spacings,
            "mask": self.mask,
            "envelope": None if self.envelope is None else dataclasses.asdict(self.envelope),
        }
        return {"config": described, "forecaster": units}

    def save(self, folder: str | Path, **sections: Any) -> None:
        """Write config.json and model.safetensors; `ssno.load_forecaster(folder)` reads them.

        `sections` are added to config.json. A module of your own is not written, only its weights: give one to fill,
        `load_forecaster(folder, model=module)`, or register how to build it (`ssno.register_model`).
        """
        self.save_config(folder, **sections)
        save_weights(Path(folder), self.model.state_dict())

    def save_config(self, folder: str | Path, **sections: Any) -> None:
        """Write config.json alone."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        write_document(Path(folder) / CONFIG, {**self.describe(), **sections}, format=FORMAT, version=VERSION)

    def _next(self, last: Tensor, answer: Tensor) -> Tensor:
        answer = answer.to(last.dtype)
        if not self.predict_increment:
            return answer
        scale = self.increment_scale.view(-1, *(1,) * (answer.ndim - 3))
        return last + scale * answer


def rescaled(spacing: Sequence[float], grid: Sequence[int], other: Sequence[int]) -> tuple[float, ...]:
    """The spacing of another grid of the same box."""
    return tuple(step * points / wanted for step, points, wanted in zip(spacing, grid, other, strict=True))
