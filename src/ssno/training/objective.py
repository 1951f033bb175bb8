"""The training loss: mean over steps of the relative l2 error of one step, in normalised units.

With teacher forcing every step of a trajectory is predicted from true frames at once; each frame's features are
computed once. Otherwise the model is unrolled from the first window: step by step it takes the true frame or its own
prediction. `ssno.runs.options` says which of the two, how far, and where gradients end.

The parts of a prepared batch are trained one after the other. There is one, or, when the gradient is cut, one per
piece: each has its own backward pass, so that only one piece is ever in memory. Summed over parts,

    loss[b] = 1/S sum_s |answer[b, s] - truth[b, s]| / |truth[b, s]|          s the steps that count, S of them

On clouds of points the loss may be mean squares instead: those off the wall plus `surface_weight` times those on it.

Pushforward replaces inputs by predictions without gradient, all steps at once: after p rounds step s sees frames that
the model predicted min(p, s - first) steps ahead, and the gradient knows only the last step.

Axes: b trajectory, t step, c state field.
"""

import logging
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from ssno.forecasting.cloud_scores import volume_and_surface
from ssno.forecasting.forecaster import Forecaster
from ssno.forecasting.metrics import apply_mask, frame_errors
from ssno.layers.space import SpaceMesh
from ssno.models.operator import OperatorState
from ssno.native.engine import fastest_engine
from ssno.runs.options import Compile
from ssno.training.batches import Prepared

# torch.compile as a switch of a run.
#
# Every shape gets a graph of its own (`dynamic=False`): what is computed for a batch then depends on the batch alone
# and not on the shapes that came before it, so a resumed run computes the same bits. Without a working compiler the run
# goes on in eager mode and says so in one line.
#
#     auto              if `ssno doctor --check` found it fastest on the device; unmeasured, on CUDA alone, where
#                       kernels are many and small
#     True, False       always, never
#     reduce-overhead   always, and on CUDA steps are recorded once and replayed (CUDA graphs)

MOST_SHAPES = 64
"""Graphs per function; beyond that torch would go on without compiling, which changes the last bits."""

log = logging.getLogger(__name__)
Function = TypeVar("Function", bound=Callable[..., Any])


def compiles(choice: Compile, device: torch.device) -> bool:
    """Whether a run with this choice compiles on this device."""
    if choice != "auto":
        return bool(choice)
    fastest = fastest_engine(device)
    return device.type == "cuda" if fastest is None else fastest == "compiled"


def compiled(function: Function, *, choice: Compile = True) -> Function:
    """The function through torch.compile, or as it is where that does not work."""
    problem = compiler_problem()
    if problem:
        log.warning("torch.compile does not work here (%s); training goes on without it.", problem)
        return function
    config: Any = torch._dynamo.config
    config.recompile_limit = max(config.recompile_limit, MOST_SHAPES)
    mode = "reduce-overhead" if choice == "reduce-overhead" else None
    return torch.compile(function, dynamic=False, mode=mode)  # type: ignore[return-value]


@cache
def compiler_problem() -> str:
    """Why a small function cannot be compiled on this machine; empty if it can."""
    try:
        torch.compile(_probe, dynamic=False)(torch.zeros(8))
    except Exception as error:  # torch raises its own kinds here, and they differ between versions
        return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return ""


def _probe(values: torch.Tensor) -> torch.Tensor:
    return torch.sin(values) + 1


class Carry(NamedTuple):
    """What one part of a batch leaves to the next, without gradient."""

    frame: Tensor
    state: OperatorState


class Objective(nn.Module):
    """A forecaster that answers with losses: what distributed training wraps.

    Args:
        forecaster: the model with its units.
        compile: whether to run its forward pass through torch.compile (`ssno.training.objective`).
        surface_weight: weight of the wall, where batches tell walls apart.
        area: weight of each grid point in the errors; None if all weigh the same.
        space: the mesh of processes that share a field, if batches are pieces.
    """

    def __init__(
        self,
        forecaster: Forecaster,
        *,
        compile: Compile = "auto",
        surface_weight: float = 1.0,
        area: Tensor | None = None,
        space: SpaceMesh | None = None,
    ):
        super().__init__()
        self.forecaster, self.surface_weight, self.area = forecaster, surface_weight, area
        self.over_pieces = None if space is None else space.norm
        self.predict, self.step = forecaster.forward, forecaster.step
        if compiles(compile, forecaster.device):
            self.predict = compiled(self.predict, choice=compile)
            self.step = compiled(self.step, choice=compile)

    def forward(self, prepared: Prepared, part: int = 0, carry: Carry | None = None) -> tuple[Tensor, Carry | None]:
        """What one part adds to the loss of each trajectory (b), and what the next part goes on from."""
        steps = prepared.parts[part]
        if prepared.teacher_forced is None:
            answers = self._all_steps(prepared, steps.start)[:, : len(steps)]
        else:
            answers, carry = self._unrolled(prepared, prepared.teacher_forced, steps, carry)
        errors = self._errors(answers, prepared.targets[:, steps.start : steps.stop], prepared.wall)
        return errors.sum(dim=1) / sum(map(len, prepared.parts)), carry

    def _errors(self, answers: Tensor, truth: Tensor, wall: Tensor | None) -> Tensor:
        """The loss of every trajectory and time step."""
        if wall is None:
            return frame_errors(answers, truth, area=self.area, over_pieces=self.over_pieces)
        volume, surface = volume_and_surface(answers, truth, wall)
        return volume.mean(dim=2) + self.surface_weight * surface.mean(dim=2)

    def _all_steps(self, prepared: Prepared, first: int) -> Tensor:
        """Outputs of time step `first` and all later ones."""
        inputs = prepared.inputs
        with torch.no_grad():
            for _ in range(prepared.stage.pushforward):
                answers = self._from(first, inputs, prepared)
                inputs = torch.cat([inputs[:, : first + 1], answers[:, :-1]], dim=1)
        return self._from(first, inputs, prepared)

    def _from(self, first: int, inputs: Tensor, prepared: Prepared) -> Tensor:
        answers = self.predict(inputs, prepared.context, spacing=prepared.spacing)
        answers = answers[:, first - (inputs.shape[1] - answers.shape[1]) :]
        return apply_mask(answers, None if prepared.mask is None else prepared.mask[:, first:])

    def _unrolled(self, prepared: Prepared, forced: Tensor, steps: range, carry: Carry | None) -> tuple[Tensor, Carry]:
        inputs, context, input_frames = prepared.inputs, prepared.context, prepared.input_frames
        if carry is None:
            state = self.forecaster.start(inputs[:, :input_frames], context[:, :input_frames], spacing=prepared.spacing)
            carry = Carry(inputs[:, input_frames - 1], state)
        (frame, state), answers = carry, []
        for step in steps:
            if step >= input_frames:
                true = forced[:, step].view(-1, *(1,) * (frame.ndim - 1))
                frame = torch.where(true, inputs[:, step], frame)
            if prepared.stage.gradient_checkpointing:
                frame, state = checkpoint(self.step, frame, context[:, step], state, use_reentrant=False)
            else:
                frame, state = self.step(frame, context[:, step], state)
            if prepared.mask is not None:
                frame = apply_mask(frame[:, None], prepared.mask[:, step : step + 1])[:, 0]
            answers.append(frame)
        return torch.stack(answers, dim=1), Carry(frame.detach(), state.detached())
