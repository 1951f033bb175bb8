"""Several processes, through PyTorch's own engine: `torchrun --nproc-per-node 2 -m ssno train ...`.

torchrun tells each process its place by environment variables. Without them there is one process and nothing to do.
"""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
from torch import nn

from ssno.base.device import choose_device


@dataclass(frozen=True)
class Place:
    """Which process this is, of how many."""

    rank: int = 0
    world: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    @property
    def leads(self) -> bool:
        """One process writes files and talks."""
        return self.rank == 0

    def total(self, values: list[float]) -> list[float]:
        """Sum over processes, in float64."""
        if self.world == 1:
            return values
        summed = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.all_reduce(summed)
        return summed.tolist()

    def agree(self, value: float) -> float:
        """The leader's value, for all."""
        return self.total([value if self.leads else 0.0])[0]

    def wrap(self, module: nn.Module) -> nn.Module:
        """Average gradients over processes during backward."""
        if self.world == 1:
            return module
        devices = [self.device.index] if self.device.type == "cuda" else None
        # Idle parameters exist by design in some models, so unused ones must not stall the reduction.
        return nn.parallel.DistributedDataParallel(module, device_ids=devices, find_unused_parameters=True)

    def collecting(self, wrapped: nn.Module, *, last: bool) -> AbstractContextManager[None]:
        """Around one of several backward passes of a step: processes average once, in the last."""
        if last or not isinstance(wrapped, nn.parallel.DistributedDataParallel):
            return nullcontext()
        return wrapped.no_sync()


@contextmanager
def place(wanted: str | torch.device = "auto") -> Iterator[Place]:
    """Join the processes that torchrun started, if it did, on the wanted device; leave them at the end."""
    device = choose_device(wanted)
    if device.type == "cuda":
        torch.cuda.set_device(device)  # what communication between processes goes by
    if "RANK" not in os.environ:
        yield Place(device=device)
        return
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield Place(rank=dist.get_rank(), world=dist.get_world_size(), device=device)
    finally:
        dist.destroy_process_group()
