"""The processes of a training: several that train one model, and how one is interrupted without losing anything.

    ssno train ks --nproc 2                            on one machine (`ssno.training.processes`)
    torchrun --nproc-per-node 2 -m ssno train ks           on several

A process that was not launched with others (`ssno.base.distributed_env`) has nothing to do.
Gradients are averaged by DistributedDataParallel, or every process holds a shard of each weight (FSDP2). Ctrl-C,
SIGTERM and a set time let the current batch finish.
"""

import logging
import os
import signal
import threading
import time
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import FrameType, TracebackType
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel

from ssno.base import available_cores
from ssno.base.device import choose_device
from ssno.base.distributed_env import is_launched
from ssno.data.trajectories import Trajectories
from ssno.layers.space import MeshShape, SpaceMesh
from ssno.models.operator import NeuralOperator

EXIT_INTERRUPTED = 75
"""Exit code of a run that was interrupted and saved: start it again with `--resume always`."""
EXIT_LOST = 1
"""Exit code of a process whose fellow ended without a word: killed, or on a machine that is gone."""
EXIT_DIVERGED = 3
"""Exit code of a run that met a non-finite loss or gradient."""
ECHO_SECONDS = 2.0
"""Under torchrun, Ctrl-C comes from the terminal and again from the launcher."""


@dataclass(frozen=True)
class Process:
    """Which process this is, of how many, and where it computes."""

    rank: int = 0
    world_size: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    space: SpaceMesh | None = None
    """The mesh, if several processes share a field."""

    @property
    def pieces(self) -> int:
        """Processes that share a field."""
        return 1 if self.space is None else self.space.shape.pieces

    @property
    def data_rank(self) -> int:
        """Which share of a batch this process takes, of `data_size`."""
        return self.rank if self.space is None else self.space.data_rank

    @property
    def data_size(self) -> int:
        return self.world_size // self.pieces

    @property
    def is_main(self) -> bool:
        """One process writes files and talks."""
        return self.rank == 0

    def meshed(self, shape: MeshShape | None, model: nn.Module, data: Trajectories) -> "Process":
        """This process in a mesh of that shape, whose fields are those of the data; itself without one."""
        if shape is None:
            return self
        if shape.processes != self.world_size:
            raise ValueError(
                f"`mesh` {shape} is made of {shape.processes} processes, but {self.world_size} were started. Start "
                f"`ssno train --nproc {shape.processes}`, or `torchrun --nproc-per-node {shape.processes}`."
            )
        if not isinstance(model, NeuralOperator):
            raise ValueError(f"`mesh` splits fields of models of this library, not of {type(model).__name__}.")
        if shape.pieces == 1:
            return self
        data.geometry.require_box("mesh", data.name)
        axes = model.axis_scans([axis.points for axis in data.axes])
        return replace(self, space=SpaceMesh(axes, shape=shape, device=self.device))

    def total(self, values: list[float]) -> list[float]:
        """Sum over processes, in float64."""
        if self.world_size == 1:
            return values
        summed = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.all_reduce(summed)
        return summed.tolist()

    def agree(self, value: float) -> float:
        """The main process's value, for all."""
        return self.total([value if self.is_main else 0.0])[0]

    def wrap(self, module: nn.Module, *, idle: Collection[str] | None, sharded: bool = False) -> nn.Module:
        """Average gradients over processes during backward; those of shards are by themselves.

        `idle` names the parameters that no gradient reaches by design, which are left out; if it is not known (None),
        PyTorch looks for them in every step.
        """
        if self.world_size == 1 or sharded:
            return module
        DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(module, list(idle or ()))
        devices = [self.device.index] if self.device.type == "cuda" else None
        wrapped = DistributedDataParallel(module, device_ids=devices, find_unused_parameters=idle is None)
        if self.world_size > 2:  # of two terms the order does not matter
            wrapped.register_comm_hook(None, average_in_order)
        return wrapped

    def shard(self, model: nn.Module) -> None:
        """Leave to every process a shard of each weight, with its gradient and optimiser state (PyTorch's FSDP2).

        Those of a spatial block are put together while it is computed, the others while the model is.
        """
        if self.world_size == 1:
            raise ValueError("`fsdp` splits weights over processes, but there is one. Start several with `--nproc`.")
        if not isinstance(model, NeuralOperator):
            raise ValueError(f"`fsdp` splits models of this library, not {type(model).__name__}.")
        from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method

        blocks = model.spatial_blocks()
        for value in model.state_dict().values():
            dist.broadcast(value, 0)
        mesh = init_device_mesh(self.device.type, (self.world_size,))
        for module in (*blocks, model):
            fully_shard(module, mesh=mesh)
        warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view")  # nothing is done in place
        for name in ("start", "step"):
            register_fsdp_forward_method(model, name)
        model.sharded = True

    def collecting(self, wrapped: nn.Module, *, last: bool) -> AbstractContextManager[None]:
        """Around one of several backward passes of a step: processes average once, in the last."""
        return nullcontext() if last or not isinstance(wrapped, DistributedDataParallel) else wrapped.no_sync()


def lost_another(error: RuntimeError) -> bool:
    """Whether processes cannot talk because one of them is gone."""
    return is_launched() and (isinstance(error, dist.DistError) or "gloo" in str(error))


def average_in_order(state: None, bucket: dist.GradBucket) -> torch.futures.Future[Tensor]:
    """The mean over processes of a bucket of gradients, added up in the order of processes.

    A ring adds in an order that depends on where in a bucket a number stands, and DistributedDataParallel lays buckets
    out anew after its first step: a resumed run would differ in the last bits. Sends as much as a ring does.
    """
    flat, world = bucket.buffer(), dist.get_world_size()
    padded = nn.functional.pad(flat, (0, -flat.numel() % world))
    received, whole = torch.empty_like(padded), torch.empty_like(padded)
    dist.all_to_all_single(received, padded)
    first, *others = received.view(world, -1)
    total = sum(others, start=first)
    dist.all_gather(list(whole.view(world, -1)), total / world)
    done: torch.futures.Future[Tensor] = torch.futures.Future(devices=[flat.device] if flat.is_cuda else None)
    done.set_result(whole[: flat.numel()])
    return done


@contextmanager
def join_processes(wanted: str | torch.device = "auto") -> Iterator[Process]:
    """Join the processes that were launched together, if any, on the wanted device; leave them at the end."""
    device = choose_device(wanted)
    if device.type == "cuda":
        torch.cuda.set_device(device)  # what communication between processes goes by
    if not is_launched():
        yield Process(device=device)
        return
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield Process(rank=dist.get_rank(), world_size=dist.get_world_size(), device=device)
    finally:
        dist.destroy_process_group()


# Start the processes of one training on this machine, through PyTorch's own launcher: `ssno train ... --nproc 2`.
#
# As torchrun does, with two differences: an interrupted and saved training exits with code 75 instead of 1, and what
# the training says is not followed by the launcher's own traceback.


def launch(words: Sequence[str], *, processes: int) -> int:
    """Run `python -m WORDS` in so many processes that find each other; the exit code."""
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.run import parse_args, run

    if processes < 1:
        raise ValueError(f"`processes` must be at least 1, got {processes}.")
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, available_cores() // processes)))
    for chatty in ("torch.distributed", "torch.distributed.elastic.agent.server.api", "torch.multiprocessing"):
        logging.getLogger(chatty).setLevel(logging.CRITICAL)
    here = ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"]
    try:
        run(parse_args([*here, "--nproc-per-node", str(processes), "-m", *words]))
    except SignalException:  # the launcher has passed the signal on and waited for the processes to save
        return EXIT_INTERRUPTED
    except ChildFailedError as failed:
        return next((failure.exitcode for failure in failed.failures.values() if failure.exitcode > 0), 1)
    return 0


# Stopping early: the first signal sets a flag that the loop looks at after each batch; a second one, later than a
# launcher would take to pass the first one on again, interrupts at once.


class TrainingInterrupted(Exception):
    """A signal asked the run to stop; it is saved and can be resumed."""


class TrainingDiverged(RuntimeError):
    """A loss or gradient is not finite; the last good checkpoint is kept."""


class Interruption:
    """Inside this context, SIGINT and SIGTERM set `asked` instead of ending the process; so does the time `stop_at`."""

    SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self, *, stop_at: datetime | None = None) -> None:
        self.stop_at = stop_at
        self.signalled = False
        self.asked_at = 0.0
        self._previous: dict[signal.Signals, Any] = {}

    @property
    def asked(self) -> bool:
        """Whether to stop after this batch."""
        return self.signalled or (self.stop_at is not None and datetime.now() >= self.stop_at)

    def __enter__(self) -> "Interruption":
        if threading.current_thread() is threading.main_thread():  # elsewhere Python allows no handlers
            self._previous = {number: signal.signal(number, self._ask) for number in self.SIGNALS}
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.signalled and time.monotonic() - self.asked_at >= ECHO_SECONDS:
            raise KeyboardInterrupt
        if not self.signalled:
            self.signalled, self.asked_at = True, time.monotonic()
