"""Which device computes: the one place that decides. Everything else follows the tensors it is given.

    auto              what SSNO_DEVICE says, else CUDA if there is one, else Apple's MPS, else the CPU
    cpu, mps          that one
    cuda, cuda:N      the first NVIDIA (or ROCm) device, or number N

A `torch.device` is taken as it is. Under `torchrun` each process takes the CUDA device of its own number, or computes
on the CPU.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from ssno.base.distributed_env import number_here, processes_here
from ssno.base.provenance import processor_name

# How many threads PyTorch computes with, for a while.


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Compute with so many threads inside; None leaves them as they are."""
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


CHOICES = "auto, cpu, cuda, cuda:N or mps"
WITHOUT_FLOAT64 = ("mps",)
SWITCH = "SSNO_DEVICE"


def choose_device(wanted: str | torch.device = "auto") -> torch.device:
    """The device that `wanted` means on this machine, in this process."""
    if isinstance(wanted, torch.device):
        return wanted
    if wanted == "auto":
        wanted = os.environ.get(SWITCH, wanted)
    found = available_devices()
    kind, _, number = wanted.partition(":")
    if kind not in ("auto", "cpu", "cuda", "mps") or (number and not (kind == "cuda" and number.isdecimal())):
        raise ValueError(f"`device` must be {CHOICES}, got {wanted!r}.")
    several = processes_here() > 1
    if several and (number or kind == "mps"):
        raise ValueError(f"`device={wanted!r}` names one device for several processes; say 'cuda', 'cpu' or 'auto'.")
    if kind == "auto":
        usable = [name for name in found if not (several and name == "mps")]
        kind = usable[0].partition(":")[0]
    chosen = f"cuda:{number or number_here()}" if kind == "cuda" else kind
    if chosen not in found:
        raise ValueError(f"`device` is {wanted!r}, but there is no {chosen}; available: {', '.join(found)}.")
    return torch.device(chosen)


def available_devices() -> list[str]:
    """What this machine computes on, the fastest first."""
    gpus = [f"cuda:{index}" for index in range(torch.cuda.device_count())] if torch.cuda.is_available() else []
    return [*gpus, *(["mps"] if torch.backends.mps.is_available() else []), "cpu"]


def device_name(device: torch.device) -> str:
    """The device with the name of its hardware, for people."""
    if device.type == "cuda":
        return f"{device} ({torch.cuda.get_device_name(device)})"
    return f"{device} ({processor_name()})"


def synchronise(device: torch.device) -> None:
    """Wait until the device has done what it was asked for, as a clock must."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def float64(values: Tensor) -> Tensor:
    """The values in double precision, where they are if their device has it."""
    return values.to(device_with_float64(values.device)).double()


def device_with_float64(device: torch.device) -> torch.device:
    """The device itself, or the CPU in place of one without double precision."""
    return torch.device("cpu") if device.type in WITHOUT_FLOAT64 else device
