"""Models that learn nothing, to compare with: persistence and linear extrapolation.

    persistence:  u[t+1] = u[t]              linear:  u[t+1] = 2 u[t] - u[t-1]

State fields come first among the input channels, so the first `out_channels` channels of a frame are what is predicted.
The first frame of a trajectory has no earlier frame; there linear extrapolation persists. Any number of grid axes.

Axes: b trajectory, t time step, c field.
"""

import abc
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from ssno.models.config import OperatorConfig
from ssno.models.operator import NeuralOperator, OperatorState, Spacing
from ssno.models.pretrained import Pretrained


@dataclass(frozen=True, kw_only=True)
class TrivialConfig(OperatorConfig):
    """A rule on the last frames. There is nothing to choose but the fields."""

    origin: ClassVar[str] = "arithmetic"
    geometries: ClassVar[tuple[str, ...]] = ("cartesian", "sphere", "points")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.out_channels > self.in_channels:
            raise ValueError(
                "`out_channels` must not exceed `in_channels`: a rule without parameters predicts fields it is given, "
                f"got {self.out_channels} from {self.in_channels}."
            )


@dataclass(frozen=True, kw_only=True)
class PersistenceConfig(TrivialConfig):
    """Persistence: the newest frame again."""

    model_name: ClassVar[str] = "persistence"

    def build(self) -> "Persistence":
        return Persistence(self)


@dataclass(frozen=True, kw_only=True)
class LinearConfig(TrivialConfig):
    """Linear extrapolation from the last two frames."""

    model_name: ClassVar[str] = "linear"

    def build(self) -> "Linear":
        return Linear(self)


class TrivialOperator(NeuralOperator, Pretrained):
    """What the two rules share: both see the newest frame and the one before."""

    config_type: ClassVar[type[TrivialConfig]]
    config: TrivialConfig

    def __init__(self, config: TrivialConfig | None = None, **fields: Any):
        super().__init__()
        self.config = replace(config or self.config_type(), **fields)

    def forward(self, frames: Tensor, *, spacing: Spacing = None) -> Tensor:
        """Predict the frame after each time step of (b, t, c_in, *grid)."""
        self.check_frames(frames)
        state = frames[:, :, : self.config.out_channels]
        earlier = torch.cat([state[:, :1], state[:, :-1]], dim=1)
        return self.next_frame(state, earlier)

    def start(self, first_frames: Tensor, *, spacing: Spacing = None) -> OperatorState:
        """Remember the frame before the newest, where there is one."""
        self.check_frames(first_frames)
        earlier = first_frames[:, -2:-1] if first_frames.shape[1] > 1 else first_frames[:, -1:]
        return OperatorState(earlier.transpose(0, 1), spacing)

    def step(self, frame: Tensor, state: OperatorState) -> tuple[Tensor, OperatorState]:
        """Take the newest frame (b, c_in, *grid), give the next one."""
        self.check_frames(frame[:, None])
        channels = self.config.out_channels
        prediction = self.next_frame(frame[:, :channels], state.buffer[0][:, :channels])
        return prediction, OperatorState(frame[None], state.spacing)

    @abc.abstractmethod
    def next_frame(self, newest: Tensor, earlier: Tensor) -> Tensor:
        """The rule."""


class Persistence(TrivialOperator):
    """The newest frame again."""

    config_type = PersistenceConfig

    def next_frame(self, newest: Tensor, earlier: Tensor) -> Tensor:
        return newest.clone()


class Linear(TrivialOperator):
    """As much change as between the last two frames."""

    config_type = LinearConfig

    def next_frame(self, newest: Tensor, earlier: Tensor) -> Tensor:
        return 2 * newest - earlier
