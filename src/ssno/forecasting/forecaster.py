"""A forecaster: a model, the units it works in, and the grid it was trained on.

Models see normalised fields. A forecaster normalises what goes in, turns the model's answer into the next frame and
brings it back to physical units. The answer is the next frame itself, or, with `predict_increment`, the change since
the last frame in units of its usual size:

    next = last + scale * model(frames)          scale = standard deviation of one-step changes in training data

Between `encode` and `decode` everything is in normalised units; `ssno.forecasting.rollout` does whole forecasts. On
disk a forecaster is a model folder (`ssno.models.pretrained`) whose config.json also holds units and window; what
training adds to it, and how it is read again, is in `ssno.runs.load`.

Axes: b trajectory, t time step, c state field, k context field, then the grid.
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
from ssno.forecasting.metrics import Mask, State, apply_mask, find_mask
from ssno.models.config import OperatorConfig
from ssno.models.operator import OperatorState, Spacing
from ssno.models.pretrained import CONFIG, FORMAT, VERSION, save_weights
from ssno.native.engine import Precision, check_precision, computing
from ssno.transforms.periodic import resample

ContextFields = Float[Tensor, "b t k *grid"]
Frame = Float[Tensor, "b c *grid"]


class Windowed(nn.Module):
    """Gives `start` and `step` to a module of the user's with `forward(frames) -> frames` alone.

    The last `size` frames are kept and passed to `forward`; our own models stream with cached features instead.
    """

    def __init__(self, module: nn.Module, *, size: int):
        super().__init__()
        self.module = module
        self.size = max(1, size)

    def forward(self, frames: Tensor, **options: Any) -> Tensor:
        return self.module(frames, **options)

    def start(self, first_frames: Tensor, *, spacing: Spacing = None) -> OperatorState:
        """Keep all input frames but the newest."""
        return OperatorState(first_frames[:, :-1][:, -self.size :], spacing)

    def step(self, frame: Tensor, state: OperatorState) -> tuple[Tensor, OperatorState]:
        """Append the newest frame, predict, drop the oldest."""
        frames = torch.cat([state.buffer, frame[:, None]], dim=1)[:, -self.size :]
        options = {} if state.spacing is None else {"spacing": state.spacing}
        return self.module(frames, **options)[:, -1], OperatorState(frames, state.spacing)


class Forecaster(nn.Module):
    """A model with its normalisation, trained or to be trained.

    Args:
        model: any module with the calling convention of `ssno.models.operator.NeuralOperator`.
        normalisers: of the state and the context fields, fitted on training data.
        predict_increment: the model predicts changes instead of frames.
        conserve_mean: every forecast keeps the mean of each field over the grid.
        window: how many frames it sees and from which it starts.
        context_time: the context of a time step is that of its input frame ("input") or of the next ("target").
        spacing: the grid spacing of the training data, which the weights refer to.
        spacings: those of all grids it is trained on, if there are several: it works on them as they are.
        precision: of the model's activations (`ssno.native.engine`); frames keep their dtype.
        mask: the context field that is 1 where there are no data.
        envelope: the range of the training data, with which forecasts are compared (`ssno.forecasting.divergence`).
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        normalisers: Normalisers,
        predict_increment: bool = False,
        conserve_mean: bool = False,
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
            raise ValueError(f"`mask` must be one of the context fields {normalisers.context.fields}, got {mask!r}.")
        if conserve_mean and mask is not None:
            raise ValueError("`conserve_mean` needs data on the whole grid; here some points have none (`mask`).")
        self.model, self.precision, self.mask, self.envelope = model, precision, mask, envelope
        self.window = window or Window()
        streams = hasattr(model, "start") and hasattr(model, "step")
        # Not registered: the parameters belong to `model` and must not appear twice.
        object.__setattr__(self, "streaming", model if streams else Windowed(model, size=self.window.size))
        self.normalisers = normalisers
        self.predict_increment, self.conserve_mean = predict_increment, conserve_mean
        self.context_time: ContextTime = context_time
        self.spacing = tuple(spacing) if spacing is not None else None
        self.spacings = tuple(tuple(steps) for steps in spacings)
        scale = torch.tensor(normalisers.state.encoded_increment, dtype=torch.get_default_dtype())
        self.register_buffer(
            "increment_scale", scale if predict_increment else torch.zeros_like(scale), persistent=False
        )

    increment_scale: Tensor
    streaming: Any

    def of(self, model: nn.Module) -> "Forecaster":
        """Another model in the same units."""
        other = Forecaster(
            model,
            normalisers=self.normalisers,
            predict_increment=self.predict_increment,
            conserve_mean=self.conserve_mean,
            window=self.window,
            context_time=self.context_time,
            spacing=self.spacing,
            spacings=self.spacings,
            precision=self.precision,
            mask=self.mask,
            envelope=self.envelope,
        )
        other.increment_scale.data = self.increment_scale.data
        return other

    @property
    def frames_as_channels(self) -> int:
        """K if the model takes its last K frames as channels, 0 if it takes them along the time axis."""
        return getattr(self.model, "frames_as_channels", 0)

    @property
    def trained_steps(self) -> int | None:
        """Steps of the training trajectories after the input frames, if that is recorded."""
        return None if self.envelope is None else len(self.window.plan(self.envelope.frames).predicted)

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        return self.increment_scale.device

    @property
    def dtype(self) -> torch.dtype:
        """Of the model's weights, and of frames while they pass through it."""
        kinds = (parameter.dtype for parameter in self.model.parameters() if parameter.is_floating_point())
        return next(kinds, self.increment_scale.dtype)

    def in_precision(self, precision: Precision) -> "Forecaster":
        """Compute in this precision from now on: weights become float64 for "float64", else float32."""
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

    def units(self, first_frames: State) -> AffineMap:
        """The normalisation of these trajectories, which may depend on their input frames."""
        return self.normalisers.state.bind(
            first_frames if self.normalisers.state.method == "per_sample_minmax" else None
        )

    def encode_context(self, context: ContextFields) -> ContextFields:
        """Context fields in normalised units."""
        return self.normalisers.context.encode(context) if context.shape[2] else context

    def find_mask(self, context: ContextFields) -> Mask:
        """Where there are no data, from context fields in either units."""
        return find_mask(context, None if self.mask is None else self.normalisers.context.fields.index(self.mask))

    def forward(
        self, state: State, context: ContextFields, *, spacing: Sequence[float] | None = None
    ) -> Float[Tensor, "b s c *grid"]:
        """The next frame after every input frame, in normalised units (teacher forcing).

        Models that take K frames as channels predict after frame K - 1 and later ones only.
        """
        grid, taken = state.shape[3:], self.frames_as_channels
        working = self.working_grid(grid, spacing=spacing)
        if spacing is not None and working != tuple(grid):
            finer = self(resample(state, working), resample(context, working), spacing=rescaled(spacing, grid, working))
            return resample(finer, grid)
        inputs = torch.cat([state, context], dim=2)
        other = self.spacing_for_model(spacing)
        options = {} if other is None else {"spacing": other}  # a module of the user's may not take it
        inputs = inputs.to(self.dtype)
        if not taken:
            with self.computing():
                answer = self.model(inputs, **options)
            return self._next(state, answer)
        windows = sliding_windows(inputs, taken)  # b w K c *grid
        with self.computing():
            answer = self.model(windows.flatten(0, 1), **options)[:, -1].unflatten(0, windows.shape[:2])
        return self._next(state[:, taken - 1 :], answer)

    def start(self, state: State, context: ContextFields, *, spacing: Sequence[float] | None = None) -> OperatorState:
        """Begin streaming from normalised input frames; the newest is passed to the first `step`."""
        inputs = torch.cat([state, context], dim=2).to(self.dtype)
        with self.computing():
            return self.streaming.start(inputs, spacing=self.spacing_for_model(spacing))

    def step(
        self, frame: Frame, context: Float[Tensor, "b k *grid"], state: OperatorState
    ) -> tuple[Frame, OperatorState]:
        """One step in normalised units: the newest frame in, the next one out, 0 where there are no data."""
        mask = self.find_mask(context[:, None])
        if self.context_time == "input":  # context fields are those of the input frame
            frame = apply_mask(frame[:, None], mask)[:, 0]
        with self.computing():
            answer, state = self.streaming.step(torch.cat([frame, context], dim=1).to(self.dtype), state)
        following = self._next(frame[:, None], answer[:, None])
        return (following if self.context_time == "input" else apply_mask(following, mask))[:, 0], state

    def working_grid(self, grid: Sequence[int], *, spacing: Sequence[float] | None = None) -> tuple[int, ...]:
        """The grid on which frames on `grid` are forecast: the same, unless the model prefers another one."""
        other = self.spacing_for_model(spacing)
        wanted = getattr(self.model, "working_grid", None)
        known = spacing is not None and any(
            all(math.isclose(a, b, rel_tol=1e-6) for a, b in zip(spacing, steps, strict=True))
            for steps in self.spacings
        )
        return tuple(grid) if other is None or wanted is None or known else wanted(grid, spacing=other)

    def copies(self, grid: Sequence[int], *, spacing: Sequence[float] | None = None) -> tuple[int, ...]:
        """How many interleaved copies of the training grid a forecast on `grid` has along each axis."""
        other, counted = self.spacing_for_model(spacing), getattr(self.model, "copies", None)
        return (1,) * len(grid) if other is None or counted is None else counted(grid, spacing=other)

    def spacing_for_model(self, spacing: Sequence[float] | None) -> Sequence[float] | None:
        """The spacing in units of the model's own reference; None on the grid that its weights refer to."""
        if spacing is None or self.spacing is None or tuple(spacing) == self.spacing:
            return None
        config = getattr(self.model, "config", None)
        own = getattr(config, "reference_spacing", self.spacing) or (1.0,) * len(spacing)
        return [
            step if unit == ours else step / ours * unit
            for step, ours, unit in zip(spacing, self.spacing, own, strict=True)
        ]

    def describe(self) -> dict[str, Any]:
        """Everything but the weights, as JSON values; a module without a `config` of ours by the name of its class."""
        config = getattr(self.model, "config", None)
        described: dict[str, Any] = {"model": type(self.model).__name__}
        if isinstance(config, OperatorConfig):
            described = config.to_json()
        if described.get("reference_spacing", "unknown") is None:  # so that the model alone knows its grid too
            described["reference_spacing"] = self.spacing
        # Stated once: here only if the model's own config does not say it.
        has_reference = self.spacing is not None and described.get("reference_spacing") == self.spacing
        units = {
            "state": self.normalisers.state.to_json(),
            "context": self.normalisers.context.to_json(),
            "predict_increment": self.predict_increment,
            "conserve_mean": self.conserve_mean,
            "window": dataclasses.asdict(self.window),
            "context_time": self.context_time,
            **({} if has_reference else {"spacing": self.spacing}),
            "spacings": self.spacings,
            "mask": self.mask,
            "envelope": None if self.envelope is None else dataclasses.asdict(self.envelope),
        }
        return {"config": described, "forecaster": units}

    def save(self, folder: str | Path, **sections: Any) -> None:
        """Write config.json and model.safetensors; `ssno.load_forecaster(folder)` reads them.

        `sections` are added to config.json. Of a module of your own only the weights are written: read them with
        `load_forecaster(folder, model=module)`, or register how to build it (`ssno.register_model`).
        """
        self.save_config(folder, **sections)
        save_weights(Path(folder), self.model.state_dict())

    def save_config(self, folder: str | Path, **sections: Any) -> None:
        """Write config.json alone."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        write_document(Path(folder) / CONFIG, {**self.describe(), **sections}, format=FORMAT, version=VERSION)

    def _next(self, last: Tensor, answer: Tensor) -> Tensor:
        following = answer.to(last.dtype)
        if self.predict_increment:
            following = last + self.increment_scale.view(-1, *(1,) * (answer.ndim - 3)) * following
        if not self.conserve_mean:
            return following
        drift, space = (following - last).flatten(3).mean(3), getattr(self.model, "space", None)
        drift = drift if space is None else space.mean(drift)
        return following - drift.view(*drift.shape, *(1,) * (following.ndim - 3))


def rescaled(spacing: Sequence[float], grid: Sequence[int], other: Sequence[int]) -> tuple[float, ...]:
    """The spacing of another grid of the same box."""
    return tuple(step * points / wanted for step, points, wanted in zip(spacing, grid, other, strict=True))
