"""Several forecasters as one: the mean of their forecasts, with their spread as uncertainty.

Members forecast on their own, each from its own frames; the ensemble's frame is the mean of theirs at every step. So an
`Ensemble` can be rolled out and scored like a `Forecaster`; `rollout` of each of its `forecasters` gives the spread.
`ssno.evaluation.record` compares the spread with the error (calibration).

Axes: m member, b trajectory, t time step, c state field, k context field, then the grid.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ssno.data.normalise import AffineMap
from ssno.forecasting.forecaster import ContextFields, Forecaster, Frame
from ssno.forecasting.metrics import Mask, State
from ssno.models.operator import OperatorState
from ssno.native.engine import Precision

SHARED = ("normalisers", "window", "context_time", "spacing", "precision", "mask")


class EnsembleState(NamedTuple):
    """The streaming state of every member, and its newest frame once it has made one."""

    members: tuple[OperatorState, ...]
    frames: tuple[Tensor, ...]


class Ensemble(nn.Module):
    """The mean of several forecasters, such as seeds of one model, with the same units, window and grid."""

    def __init__(self, members: Sequence[Forecaster]):
        super().__init__()
        if len(members) < 2:
            raise ValueError(f"`members` must have at least 2 forecasters, got {len(members)}.")
        first = members[0]
        for number, member in enumerate(members[1:], start=2):
            for name in SHARED:
                if getattr(member, name) != getattr(first, name):
                    raise ValueError(
                        f"Members of an ensemble must share {', '.join(SHARED)}; the `{name}` of member {number} "
                        "differs from that of member 1. Train all on the same data with the same options."
                    )
        self.members = nn.ModuleList(members)
        self.normalisers, self.window = first.normalisers, first.window
        self.context_time, self.spacing, self.mask = first.context_time, first.spacing, first.mask
        self.envelope, self.trained_steps = first.envelope, first.trained_steps

    @property
    def forecasters(self) -> list[Forecaster]:
        """The members."""
        return list(self.members)  # type: ignore[arg-type]

    @property
    def model(self) -> nn.Module:
        """All models together."""
        return nn.ModuleList(member.model for member in self.forecasters)

    @property
    def frames_as_channels(self) -> int:
        """The most frames that a member takes as channels."""
        return max(member.frames_as_channels for member in self.forecasters)

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        return self.forecasters[0].device

    @property
    def precision(self) -> Precision:
        """Of its members' activations."""
        return self.forecasters[0].precision

    @property
    def dtype(self) -> torch.dtype:
        """What frames are while they pass through it."""
        return self.forecasters[0].dtype

    def units(self, first_frames: State) -> AffineMap:
        """The normalisation of these trajectories, the same for all members."""
        return self.forecasters[0].units(first_frames)

    def encode_context(self, context: ContextFields) -> ContextFields:
        """Context fields in normalised units."""
        return self.forecasters[0].encode_context(context)

    def find_mask(self, context: ContextFields) -> Mask:
        """Where there are no data."""
        return self.forecasters[0].find_mask(context)

    def copies(self, grid: Sequence[int], *, spacing: Sequence[float] | None = None) -> tuple[int, ...]:
        """How many interleaved copies of the training grid a forecast of the first member has along each axis."""
        return self.forecasters[0].copies(grid, spacing=spacing)

    def working_grid(self, grid: Sequence[int], *, spacing: Sequence[float] | None = None) -> tuple[int, ...]:
        """The finest grid that a member prefers to `grid`."""
        wanted = [member.working_grid(grid, spacing=spacing) for member in self.forecasters]
        return tuple(max(points) for points in zip(*wanted, strict=True))

    def forward(
        self, state: State, context: ContextFields, *, spacing: Sequence[float] | None = None
    ) -> Float[Tensor, "b s c *grid"]:
        """The mean of the next frames, at the time steps that all members predict."""
        answers = [member(state, context, spacing=spacing) for member in self.forecasters]
        steps = min(answer.shape[1] for answer in answers)
        return torch.stack([answer[:, answer.shape[1] - steps :] for answer in answers]).mean(0)

    def start(self, state: State, context: ContextFields, *, spacing: Sequence[float] | None = None) -> EnsembleState:
        """Begin streaming with every member."""
        return EnsembleState(tuple(m.start(state, context, spacing=spacing) for m in self.forecasters), ())

    def step(
        self, frame: Frame, context: Float[Tensor, "b k *grid"], state: EnsembleState
    ) -> tuple[Frame, EnsembleState]:
        """One step of every member from its own newest frame (at first `frame`), and their mean."""
        newest = state.frames or (frame,) * len(self.members)
        stepped = [
            member.step(own, context, inner)
            for member, own, inner in zip(self.forecasters, newest, state.members, strict=True)
        ]
        frames, states = zip(*stepped, strict=True)
        return torch.stack(frames).mean(0), EnsembleState(states, frames)
