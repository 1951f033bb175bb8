"""What a run minimises, and how: the loss, then the optimiser.

The loss is the mean over steps of the relative l2 error of one step, in normalised units.

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
import math
from collections.abc import Callable, Iterator, Mapping
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
from ssno.runs.checkpoint import Progress
from ssno.runs.options import Compile, Schedule, TrainOptions
from ssno.training.batches import Prepared
from ssno.training.matrix_optimisers import MatrixOptimiser, Muon, Soap, is_matrix

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


# The optimiser of a run, with state-space dynamics set apart, its schedule, and an average of the weights.
#
# Damping, frequency, step and input weight of every state-space layer get no weight decay and may have their own rate:
# decaying them towards zero would pull the dynamics towards one particular system. SOAP and Muon are in
# `ssno.training.matrix_optimisers`.


def state_space_parameters(model: nn.Module) -> Iterator[nn.Parameter]:
    """Parameters of all layers that declare some of theirs to be state-space dynamics."""
    for module in model.modules():
        declared = getattr(module, "state_space_parameters", None)
        if callable(declared):
            yield from declared()


def make_optimiser(model: nn.Module, options: TrainOptions) -> torch.optim.Optimizer:
    """AdamW, SOAP or Muon with state-space dynamics as their own group; `peak` is the rate that the schedule scales."""
    dynamics = list(dict.fromkeys(state_space_parameters(model)))
    apart = set(map(id, dynamics))
    others = [p for p in model.parameters() if p.requires_grad and id(p) not in apart]
    ssm_rate = options.learning_rate if options.ssm_learning_rate is None else options.ssm_learning_rate
    common = {"weight_decay": options.weight_decay, "peak": options.learning_rate}
    groups: list[dict[str, Any]] = [
        {"params": others, **common},
        {"params": [p for p in dynamics if p.requires_grad], "weight_decay": 0.0, "peak": ssm_rate},
    ]
    if options.optimizer == "soap":
        groups = [{**group, "method": Soap(every=options.precondition_every)} for group in groups]
    elif options.optimizer == "muon":
        matrices = [p for p in others if is_matrix(p)]
        vectors = [p for p in others if not is_matrix(p)]
        groups = [{"params": matrices, **common, "method": Muon()}, {"params": vectors, **common}, groups[1]]
    groups = [group for group in groups if group["params"]]
    if options.optimizer == "adamw":
        return torch.optim.AdamW(groups, lr=options.learning_rate)
    return MatrixOptimiser(groups, lr=options.learning_rate)


def optimiser_bytes(model: nn.Module, options: TrainOptions) -> int:
    """How much an optimiser stores from its first step on."""
    optimiser = make_optimiser(model, options)
    parameters = [p for group in optimiser.param_groups for p in group["params"]]
    return sum(
        shape.numel() * torch.finfo(p.dtype).bits // 8
        for p in parameters
        for slot, shape in _state_shapes(optimiser, p).items()
        if slot != "step"
    )


def set_rate(optimiser: torch.optim.Optimizer, factor: float) -> None:
    """Scale every group's peak rate."""
    for group in optimiser.param_groups:
        group["lr"] = group["peak"] * factor


class WeightAverage:
    """Exponential moving average of the parameters, without bias towards the random start."""

    def __init__(self, model: nn.Module, decay: float):
        self.decay = decay
        self.values = {name: p.detach().clone() for name, p in model.named_parameters()}

    @torch.no_grad()
    def update(self, model: nn.Module, step: int) -> None:
        """Take in the weights after `step` optimiser steps."""
        pull = 1 - min(self.decay, step / (step + 9))
        for name, parameter in model.named_parameters():
            self.values[name].lerp_(parameter, pull)

    @torch.no_grad()
    def swap(self, model: nn.Module) -> None:
        """Exchange the model's weights with the average; a second call undoes the first."""
        for name, parameter in model.named_parameters():
            held: Tensor = self.values[name].clone()
            self.values[name].copy_(parameter)
            parameter.copy_(held)


# Learning rate as a function of the step: no state, so a resumed run needs none.
#
# cosine     linear rise over `warmup` of the run, then half a cosine down to 0
# one-cycle  half a cosine up from 1/25, then half a cosine down to 1e-4 of the peak
# constant   1

ONE_CYCLE_START, ONE_CYCLE_END = 1 / 25, 1e-4


def rate_factor(step: int, total: int, *, schedule: Schedule, warmup: float) -> float:
    """Learning rate at `step` of `total`, as a fraction of the peak."""
    rising = round(warmup * total)
    if schedule == "constant":
        return 1.0
    if schedule == "cosine":
        if step < rising:
            return (step + 1) / rising
        return _half_cosine(1.0, 0.0, (step - rising) / max(1, total - rising))
    if step < rising:
        return _half_cosine(ONE_CYCLE_START, 1.0, step / rising)
    return _half_cosine(1.0, ONE_CYCLE_END, (step - rising) / max(1, total - 1 - rising))


def _half_cosine(start: float, end: float, progress: float) -> float:
    return end + (start - end) * (1 + math.cos(math.pi * min(1.0, progress))) / 2


# The tensors of a training run, by name, as they go into a checkpoint (`ssno.runs.checkpoint`) and come back.


def whole(value: Tensor) -> Tensor:
    """The whole of a tensor of which each process holds a shard; any other as it is."""
    return found() if (found := getattr(value, "full_tensor", None)) else value  # of a DTensor, whose import is slow


def whole_weights(model: nn.Module) -> dict[str, Tensor]:
    """The weights of a model by name, in whole."""
    return {name: whole(value.detach()) for name, value in model.state_dict().items()}


def like(value: Tensor, held: Tensor) -> Tensor:
    """A copy of a whole tensor where and, if that is a shard, as another one is held."""
    moved = value.clone().to(held.device)
    if not hasattr(held, "full_tensor"):
        return moved
    from torch.distributed.tensor import DTensor, distribute_tensor  # half a second, which `--help` does not pay

    assert isinstance(held, DTensor)
    return distribute_tensor(moved, held.device_mesh, held.placements, src_data_rank=None)


def run_tensors(model: nn.Module, optimiser: torch.optim.Optimizer, average: WeightAverage | None) -> dict[str, Tensor]:
    """All tensors of a run by name: model/..., optimiser/<parameter>/<slot>, average/..."""
    tensors = {f"model/{name}": value.detach() for name, value in model.state_dict().items()}
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    for parameter, slots in optimiser.state.items():
        for slot, value in slots.items():
            tensors[f"optimiser/{names[id(parameter)]}/{slot}"] = torch.as_tensor(value)
    if average is not None:
        tensors |= {f"average/{name}": value for name, value in average.values.items()}
    return {name: whole(tensors[name]) for name in sorted(tensors)}  # in one order: restored slots have none


def restore(
    tensors: Mapping[str, Tensor],
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    average: WeightAverage | None,
    progress: Progress,
) -> dict[str, Tensor]:
    """Put the tensors of `run_tensors` back and return the best weights so far.

    Raises `ValueError` if they are not those of such a run after such progress.
    """
    parameters = dict(model.named_parameters())
    trained = [p for group in optimiser.param_groups for p in group["params"]]
    names = {id(parameter): name for name, parameter in parameters.items()}
    shapes = {names[id(parameter)]: _state_shapes(optimiser, parameter) for parameter in trained}
    moved: dict[str, dict[str, Tensor]] = {name: {} for name in parameters}
    for key, value in _below(tensors, "optimiser/").items():
        name, _, slot = key.rpartition("/")
        if name not in shapes or value.shape != shapes[name].get(slot):
            raise ValueError(f"its optimiser state {key} belongs to no parameter of the model")
        if not value.is_floating_point() or (slot != "step" and value.dtype != parameters[name].dtype.to_real()):
            raise ValueError(f"its optimiser state {key} has another type, {value.dtype}")
        moved[name][slot] = value.clone() if slot == "step" else like(value, parameters[name])
    for name, slots in moved.items():
        if slots and (missing := [slot for slot in shapes[name] if slot not in slots]):
            raise ValueError(f"its optimiser state lacks {name}/{missing[0]}")
    if progress.step and not any(moved.values()):
        raise ValueError(f"it has no optimiser state after {progress.step} steps")
    state = {name: value.shape for name, value in model.state_dict().items()} if progress.best_epoch >= 0 else {}
    if {name: value.shape for name, value in _below(tensors, "best/").items()} != state:
        raise ValueError("its best weights are not those of the model")
    averaged = _below(tensors, "average/")
    if {name: value.shape for name, value in averaged.items()} != (
        {} if average is None else {name: value.shape for name, value in parameters.items()}
    ):
        raise ValueError("its averaged weights are not those of the model")
    held, weights = model.state_dict(), _below(tensors, "model/")
    try:
        model.load_state_dict({name: like(value, held.get(name, value)) for name, value in weights.items()})
    except RuntimeError as error:
        raise ValueError(str(error)) from None
    for name, slots in moved.items():
        if slots:
            optimiser.state[parameters[name]] = slots
    if average is not None:
        average.values = {name: like(value, parameters[name]) for name, value in averaged.items()}
    return _below(tensors, "best/")


def _state_shapes(optimiser: torch.optim.Optimizer, parameter: nn.Parameter) -> dict[str, torch.Size]:
    """Shapes of the tensors that an optimiser stores for a parameter."""
    if isinstance(optimiser, MatrixOptimiser):
        return optimiser.state_shapes(parameter)
    return {"step": torch.Size(), "exp_avg": parameter.shape, "exp_avg_sq": parameter.shape}


def _below(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
