"""`ssno doctor`: what is installed, what the machine has, and what looks wrong."""

import os
import platform
import shutil
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
from rich.table import Table
from rich.text import Text

from ssno.base import to_text
from ssno.base.device import available_devices, device_name
from ssno.base.memory import physical_memory
from ssno.base.provenance import available_cores, processor_name, source_commit
from ssno.base.terminal import Console
from ssno.cli.parser import Device

REQUIRED = ("torch", "numpy", "scipy", "h5py", "safetensors", "einops", "jaxtyping", "matplotlib", "tyro", "rich")
OPTIONAL = ("pyyaml", "tensorboard", "wandb", "zarr")
LEAST_DISK = 2 * 2**30


def doctor(*, check: bool = False, device: Device = "auto", json: bool = False) -> None:
    """Report versions, threads, devices, disk and known problems. Exit code 1 if there are problems.

    Args:
        check: Instead train a tiny model on the CPU and on the device, compare losses, gradients, forecasts and a
            resumed run, time both, and say in five lines whether the device can be trusted. Exit code 1 if not.
        device: Which device `--check` is about: auto, cpu, cuda, cuda:N or mps.
        json: Print everything as JSON.
    """
    if check:
        report_check(device, as_json=json)
        return
    facts = examine(Path.cwd())
    problems = diagnose(facts)
    if json:
        print(to_text({**facts, "problems": problems}, indent=2))
    else:
        table = Table("what", "found", title="ssno doctor", title_justify="left")
        for name, value in facts.items():
            table.add_row(
                name, ", ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, dict) else str(value)
            )
        console = Console()
        console.print(table)
        for problem in problems:
            console.print(Text.assemble(("problem", "bold red"), f" {problem}"))
        if not problems:
            console.print("No problems found.")
    if problems:
        raise SystemExit(1)


def report_check(device: str, *, as_json: bool) -> None:
    """The verdict of `--check`."""
    from ssno.training.checks import ALLOWED, check_machine

    found = check_machine(device)
    trusted = not found.wrong
    print(
        to_text({**asdict(found), "allowed": ALLOWED, "trusted": trusted}, indent=2)
        if as_json
        else "\n".join(found.lines())
    )
    if not trusted:
        raise SystemExit(1)


def examine(folder: Path) -> dict[str, Any]:
    """Facts about this installation and machine."""
    return {
        "ssno": version("ssno"),
        "commit": source_commit(Path(__file__)),
        "python": platform.python_version(),
        "packages": {name: installed(name) for name in REQUIRED},
        "extras": {name: installed(name) for name in OPTIONAL},
        "processor": processor_name(),
        "cores": available_cores(),
        "threads": torch.get_num_threads(),
        "float32_products": torch.get_float32_matmul_precision(),
        "blas": "mkl" if torch.backends.mkl.is_available() else "other",
        "devices": [device_name(torch.device(name)) for name in available_devices()],
        "memory_gib": round(physical_memory() / 2**30, 1),
        "folder": str(folder),
        "writable": os.access(folder, os.W_OK),
        "disk_free_gib": round(shutil.disk_usage(folder).free / 2**30, 1),
    }


def diagnose(facts: dict[str, Any]) -> list[str]:
    """Known problems, each with what to do."""
    problems = []
    for name, found in facts["packages"].items():
        if found == "missing":
            problems.append(f"The package {name} is missing: pip install {name}.")
    if facts["threads"] > facts["cores"]:
        problems.append(
            f"torch uses {facts['threads']} threads on {facts['cores']} cores, which is slow: set OMP_NUM_THREADS."
        )
    if not facts["writable"]:
        problems.append(f"{facts['folder']} is not writable: runs and data cannot be stored here.")
    if facts["disk_free_gib"] * 2**30 < LEAST_DISK:
        problems.append(f"Only {facts['disk_free_gib']} GiB are free in {facts['folder']}: datasets may not fit.")
    return problems


def installed(name: str) -> str:
    """The version of a package, or "missing"."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"
