"""Damaged and hostile files of every kind that ssno opens: each ends in data or in one of our own errors.

Whatever is opened here is opened in a forked process whose memory the system limits. An audit hook of Python sees every
file that is opened for writing or outside the named folder, every program started, every module of the network used and
every class that a pickle asks for: any of them is a failure, except the child process in which foreign files are read.
"""

import contextlib
import json
import os
import random
import resource
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
from scipy.io import savemat
from tests.data import public_files
from tests.data.airfrans_files import write_airfrans
from tests.data.open_files import close_files

from ssno.cli.main import is_mistake
from ssno.data.datasets import build_plan
from ssno.data.generation import generate
from ssno.data.load import load_dataset
from ssno.data.manifest import read_manifest
from ssno.data.manifest import verify as verify_dataset
from ssno.data.readers.airfrans import case_fields, read_piece
from ssno.data.sandbox.parent import _examined
from ssno.evaluation.record import read_evaluation
from ssno.export.read import open_exported
from ssno.native.build import load
from ssno.paper.sweep import read_sweep
from ssno.runs.checkpoint import load_checkpoint
from ssno.runs.log import read_log
from ssno.runs.open import open_run
from ssno.runs.run import read_run
from verify.campaign import Counts
from verify.commands import inputs
from verify.mutations import mutate, mutated, reworded, splice

SECONDS = 5.0  # of computing, here and in child processes
START = 2.5  # of computing that starting a child process may take, on a busy machine
MEMORY = 2**30 + 512 * 2**20  # above what this process has: 1 GiB, and the largest array that is read whole
ARRAYS = {"axes": "batch time x"}
CANARY = "executed"


@dataclass(frozen=True)
class Target:
    """A kind of file: what lies in its folder, which file of it is damaged, and what opens it."""

    name: str
    damaged: str
    read: Callable[[Path], object]
    weight: int = 4
    """How often its turn comes."""


def read_all(path: Path, **options: Any) -> None:
    """All numbers of a data file."""
    load_dataset(path, "all", **options).read(slice(None), finite=False)


def read_named(path: Path) -> None:
    read_all(path, **ARRAYS)


def read_vtk_case(path: Path) -> None:
    case_fields.cache_clear()
    read_piece(path, path.parent)


def read_whole_run(path: Path) -> None:
    """Everything that is read of a run folder."""
    folder = path if path.is_dir() else path.parent
    read_run(folder)
    read_log(folder)
    open_run(folder, device="cpu")


def read_manifest_of(path: Path) -> None:
    read_manifest(path.parent)
    verify_dataset(path.parent)
    load_dataset(path.parent, "valid").read(slice(None), finite=False)


TARGETS = (
    *(Target(name, name, read_all) for name in ("burgers.hdf5", "KS_train.h5", "wake.hdf5", "four.nc", "three.nc")),
    *(Target(name, name, read_named) for name in ("stored.npz", "packed.npz", "array.npy")),
    *(Target(name, name, read_all) for name in ("plain.mat", "packed.mat", "solution.nc", "shard.h5", "table.csv")),
    Target("tensors.pt", "tensors.pt", read_named),
    Target("case.vtu", "airfrans/{case}/{case}_internal.vtu", read_vtk_case),
    Target("wall.vtp", "airfrans/{case}/{case}_aerofoil.vtp", read_vtk_case),
    Target("airfrans/manifest.json", "airfrans/manifest.json", lambda path: load_dataset(path.parent, "train")),
    Target("dataset/manifest.json", "heat/manifest.json", read_manifest_of, weight=2),
    Target("run/config.json", "model/config.json", read_whole_run),
    Target("run/model.safetensors", "model/model.safetensors", read_whole_run),
    Target("run/metrics.jsonl", "model/metrics.jsonl", lambda path: read_log(path.parent)),
    Target("checkpoint.json", "model/last/checkpoint.json", lambda path: load_checkpoint(path.parent)),
    Target("checkpoint tensors", "model/last/{tensors}", lambda path: load_checkpoint(path.parent)),
    Target("climatology", "model/climatology.safetensors", lambda path: open_run(path.parent, device="cpu"), 1),
    Target("evaluation.json", "evaluation.json", read_evaluation),
    Target("sweep.json", "sweep.json", lambda path: read_sweep(path).trials()),
    Target("sweep.toml", "sweep.toml", lambda path: read_sweep(path).trials()),
    Target("sweep.yaml", "sweep.yaml", lambda path: read_sweep(path).trials(), 2),
    Target("exported.onnx", "exported.onnx", open_exported, 1),
)
TURNS = [target for turn in range(1, 5) for target in TARGETS if target.weight >= turn]
TOML = """seeds = [0, 1]\ntested = 2\n[run]\n"data.name" = "waves.npz"\n"model.model" = "ssno:tiny"
[run.train]\nepochs = 1\n[grid]\n"train.learning_rate" = [1e-3, 3e-3]\n[[runs]]\n"model.model" = "ffno:tiny"\n"""


def prepare() -> None:
    """Healthy files; and the native library, for which forks would otherwise ask the compiler."""
    load()
    originals()


@cache
def originals() -> Path:
    """One small healthy file of every kind."""
    place = inputs().parent / "hostile"
    if not place.exists():
        making = Path(tempfile.mkdtemp(dir=inputs().parent))
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
            write_originals(making)
        making.rename(place)
    return place


def write_originals(folder: Path) -> None:
    generate(build_plan("heat", "tiny"), folder / "heat", jobs=1)
    (folder / "shard.h5").write_bytes((folder / "heat" / "valid" / "shard-000.h5").read_bytes())
    public_files.pdebench_burgers(folder / "burgers.hdf5")
    public_files.lpsda_ks(folder / "KS_train.h5", "train", samples=2, frames=6, points=8)
    public_files.the_well(folder / "wake.hdf5")
    public_files.netcdf4(folder / "four.nc")
    public_files.netcdf3(folder / "three.nc")
    values = np.random.default_rng(0).normal(size=(3, 4, 8))
    np.savez(folder / "stored.npz", u=values, x=np.arange(8.0))
    np.savez_compressed(folder / "packed.npz", u=values)
    np.save(folder / "array.npy", values)
    torch.save({"u": torch.from_numpy(values)}, folder / "tensors.pt")
    rows = [f"{t},{x},{np.sin(t + x):.6f}" for t in range(6) for x in range(8)]
    (folder / "table.csv").write_text("\n".join(["time,x,u", *rows]) + "\n")
    for name, compressed in (("plain.mat", False), ("packed.mat", True)):
        vorticity = values.repeat(4, axis=1).reshape(3, 4, 4, 8).astype("<f4")
        variables = {"a": vorticity[..., 0], "u": vorticity, "t": np.arange(1.0, 9.0)}
        savemat(folder / name, variables, do_compression=compressed)
    with h5py.File(folder / "solution.nc", "w") as file:  # Poseidon's layout of CE-RM
        file["solution"] = np.random.default_rng(1).normal(size=(2, 21, 5, 4, 4)).astype("<f4")
    write_airfrans(folder / "airfrans")
    shutil.copytree(inputs() / "model", folder / "model", ignore=shutil.ignore_patterns(".lock"))
    (folder / "sweep.json").write_bytes((inputs() / "rates.json").read_bytes())
    (folder / "sweep.toml").write_text(TOML)
    (folder / "sweep.yaml").write_text("seeds: [0, 1]\nrun:\n  data.name: waves.npz\ngrid:\n  train.epochs: [1, 2]\n")
    evaluate_and_export(folder)


def evaluate_and_export(folder: Path) -> None:
    """An evaluation and an ONNX file of the model, made by their commands in a process of their own."""
    from verify.commands import Command, finish_well

    (folder / "waves.npy").symlink_to(inputs() / "waves.npy")
    told = inputs().parent / "told.txt"
    finish_well(Command("evaluate model --split test --device cpu"), folder, told)
    shutil.copy(next((folder / "model").glob("evaluation*.json")), folder / "evaluation.json")
    finish_well(Command("export model --format onnx --output exported.onnx"), folder, told)


def located(target: Target) -> Path:
    """The file of a target among the originals."""
    case = next(path.name for path in (originals() / "airfrans").iterdir() if path.is_dir())
    tensors = next((originals() / "model" / "last").glob("tensors-*")).name
    return originals() / target.damaged.format(case=case, tensors=tensors)


def damaged(path: Path, other: Path, number: int) -> bytes:
    """The bytes of a file, damaged in one of the ways that suit it."""
    content, rng = path.read_bytes(), np.random.default_rng([3, number])
    way = rng.random()
    if path.suffix == ".json" and way < 0.6:
        return json.dumps(mutated(json.loads(content), random.Random(number))).encode()
    if path.suffix in (".vtu", ".vtp", ".csv", ".toml", ".yaml") and way < 0.5:
        return reworded(content, random.Random(number))
    return splice(content, other.read_bytes(), rng) if way > 0.85 else mutate(content, rng)


def mutation(number: int, place: Path) -> Counts:
    """One damaged file, beside whatever belongs to it."""
    target = TURNS[number % len(TURNS)]
    original, other = located(target), located(TURNS[(7 * number + 3) % len(TURNS)])
    home = original.relative_to(originals()).parts[0]
    if (originals() / home).is_dir():
        shutil.copytree(originals() / home, place / home)
    path = place / original.relative_to(originals())
    path.write_bytes(damaged(original, other, number))
    return {f"{outcome(lambda: target.read(path), place)}": 1, target.name: 1}


# What must not happen.

WATCH: dict[str, Any] = {"place": None, "seen": []}
STARTED = {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "pty.spawn"}
CHANGED = {"os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.chmod", "os.link", "os.symlink", "os.truncate"}
SAFE = tuple(
    {os.path.realpath(path) for path in (sys.prefix, sys.base_prefix, *sys.path[1:], Path(__file__).parents[1])}
)


def audit(event: str, arguments: tuple[Any, ...]) -> None:
    """Note what no file may make us do."""
    place = WATCH["place"]
    if place is None:
        return
    if event in STARTED and not (event == "subprocess.Popen" and arguments[0] == sys.executable):
        WATCH["seen"].append(f"{event} {arguments[:2]}")
    elif event == "pickle.find_class" or event.startswith("socket.connect"):
        WATCH["seen"].append(f"{event} {arguments}")
    elif event in CHANGED:
        WATCH["seen"].append(f"{event} {arguments[0]}")
    elif event == "open" and isinstance(arguments[0], str | bytes):
        path, mode = os.path.realpath(os.fsdecode(arguments[0])), arguments[1]
        writes = isinstance(mode, str) and bool({"w", "a", "+", "x"} & set(mode))
        inside = path.startswith(os.path.realpath(place))
        known = path.startswith((*SAFE, "/proc", "/sys", "/dev", "/etc", "/usr"))
        if (writes and path != os.devnull) or not (inside or known):
            WATCH["seen"].append(f"open {path} {mode!r}")


@cache
def limit_this_process() -> None:
    """The system ends what asks for too much; from now on the audit hook listens. Once in a process."""
    status = Path("/proc/self/status").read_text()
    taken = 1024 * int(status.split("VmData:")[1].split()[0])
    resource.setrlimit(resource.RLIMIT_DATA, (taken + MEMORY, resource.RLIM_INFINITY))
    sys.addaudithook(audit)


def computed() -> float:
    """Processor seconds of this process and of the children that have ended."""
    return sum(os.times()[:4])


def outcome(read: Callable[[], object], place: Path) -> str:
    """What opening ends in: "data" or "refused"; anything else is an error."""
    limit_this_process()
    _examined.cache_clear()
    began = computed()
    WATCH["seen"].clear()
    WATCH["place"] = str(place)
    try:
        with warnings_ignored():
            read()
        found = "data"
    except Exception as error:
        if isinstance(error, MemoryError) or not is_mistake(error):
            raise
        found = "refused"
    finally:
        WATCH["place"] = None
        close_files()
    seconds = computed() - began
    assert seconds < SECONDS + START, f"computed for {seconds:.1f} s"
    assert not WATCH["seen"], f"did what no file may ask for: {WATCH['seen'][:3]}"
    assert not list(place.rglob(CANARY)), "a file was executed"
    return found


@contextlib.contextmanager
def warnings_ignored() -> Any:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
