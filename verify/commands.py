"""Commands that campaigns interrupt, and the proof that nothing was lost: whole and cut folders compared byte by byte.

A command is what a user types. It runs in forked copies of this process, in which the library is imported already and
nothing has been computed, so that one costs half a second. What an undisturbed one leaves behind is made once.
"""

import filecmp
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch._dynamo
import torch.distributed.fsdp  # noqa: F401  forked processes find them imported

import ssno.cli.data_files
import ssno.cli.data_generate
import ssno.cli.export
import ssno.cli.predict
import ssno.cli.sweep
import ssno.cli.train
from ssno.base.provenance import provenance
from ssno.cli.main import main
from ssno.data.manifest import MANIFEST
from ssno.data.manifest import verify as verify_dataset
from ssno.runs.checkpoint import INDEX, LOG, load_checkpoint
from ssno.runs.log import read_lines

NOT_THE_SAME = {
    "seconds",
    "created",
    "manifest_sha256",
    "read_mb_per_s",
    "waited",
    "resumed",
    "seconds_per_step",
    "train_seconds",
}
"""Of JSON files: clocks, and the remark of a run that it was resumed."""
TABLES = {"comparison.csv", "comparison.md"}  # they have a column of seconds
EXIT_LOST = 1


@dataclass(frozen=True)
class Command:
    """What is typed, in how many processes, and how long it may take."""

    words: str
    processes: int = 1
    makes: str = ""
    """What it makes and, being asked again, does not replace."""
    limit: float = 600.0


WAVES = "train waves.npy --data.axes batch,time,x --model ssno:tiny --train.batch-size 4 --train.epochs 4"
PLANE = "train plane.npy --data.axes batch,time,x,y --model ssno:tiny --train.batch-size 4 --train.epochs 2"
OFTEN = "--train.save-seconds 0 --train.keep-every 2 --resume auto --name run"
UNROLL = "--train.unroll.teacher-forcing 1 0.5 0 --train.unroll.frames 1 2 2"

COMMANDS: Mapping[str, Command] = {
    "train, 1D, SOAP, EMA, noise": Command(f"{WAVES} --train.ema 0.9 --train.noise-std 0.01 {OFTEN}"),
    "train, 1D, unrolled": Command(f"{WAVES} {UNROLL} {OFTEN}"),
    "train, 1D, AdamW": Command(f"{WAVES} --train.optimizer adamw {OFTEN}"),
    "train, 1D, Muon": Command(f"{WAVES} --train.optimizer muon {OFTEN}"),
    "train, 1D, bf16": Command(f"{WAVES} --train.precision bf16 {OFTEN}"),
    "train, 1D, workers": Command(f"{WAVES} --train.num-workers 2 --train.shuffle-buffer 8 {OFTEN}"),
    "train, 1D, two grids": Command(f"{WAVES} --train.grids 8 16 {OFTEN}"),
    "train, 2D": Command(f"{PLANE} {OFTEN}"),
    "train, 2D, mesh": Command(f"{PLANE} --mesh data=1,space=2 {OFTEN}", processes=2),
    "train, 2D, FSDP2": Command(f"{PLANE} --train.optimizer adamw --fsdp {OFTEN}", processes=2),
    "train, 1D, two processes": Command(f"{WAVES} {OFTEN}", processes=2),
    "train, sphere": Command(
        f"train swe --data.preset tiny --model ssno-sphere:tiny --train.epochs 2 --data.time-index 0:6 {OFTEN}",
    ),
    "train, points": Command(
        "train kt-foil --data.preset tiny --model ssno-slices:tiny --train.epochs 2 --train.points-per-step 64 "
        f"--train.batch-size 4 {OFTEN}",
    ),
    "generate": Command("data generate heat --preset tiny --out heat"),
    "convert": Command("data convert waves.npy made --axes batch,time,x", makes="made"),
    "predict": Command(
        "predict model --input waves.npy --output forecast.h5 --axes batch,time,x --steps 400 --overwrite"
    ),
    "export": Command("export model --format torch --output made.pt2 --overwrite"),
    "sweep": Command("sweep rates.json --out made"),
}
SWEEP = {
    "seeds": [0, 1],
    "tested": 1,
    "run": {
        "data": {"name": "waves.npy", "axes": "batch time x"},
        "model": {"model": "ssno:tiny"},
        "train": {"epochs": 1, "batch_size": 4},
    },
    "grid": {"train.learning_rate": [1e-3, 3e-3]},
}


HEAVY = {name for name, command in COMMANDS.items() if command.processes > 1} | {"export", "sweep", "train, sphere"}
HEAVY |= {"train, 1D, workers"}  # each of them imports PyTorch
ORDER = [*[name for name in COMMANDS if name not in HEAVY] * 3, *[name for name in COMMANDS if name in HEAVY]]
"""Commands in turns; those that take long come once where others come three times."""


@cache
def warm_up() -> None:
    """Do in this process, on one thread, what every fork would do first: imports, parsing, looking at data."""
    parse = cache(lambda words: parsed(list(words)))
    parsed = ssno.cli.train.parse
    ssno.cli.train.parse = lambda words: parse(tuple(words))  # type: ignore[assignment]
    before, said = Path.cwd(), sys.stderr
    with tempfile.TemporaryDirectory() as place, open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        sys.stderr = nowhere
        try:
            for name in ("train, 1D, SOAP, EMA, noise", "generate", "convert", "predict"):
                supply(COMMANDS[name], Path(place))
                os.chdir(place)
                main(COMMANDS[name].words.split())
                os.chdir(before)
            for command in COMMANDS.values():
                if command.words.startswith("train "):
                    ssno.cli.train.parse(command.words.split()[1:])
        finally:
            sys.stderr = said
            os.chdir(before)


# In forked processes.


def in_processes(
    command: Command, place: Path, *, before: Callable[[], object] = lambda: None, told: Path | None = None
) -> list[int]:
    """Start a command in `place`; the numbers of its processes, each the first of a group of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return [_forked(command, place, rank, port, before, told) for rank in range(command.processes)]


def _forked(
    command: Command, place: Path, rank: int, port: int, before: Callable[[], object], told: Path | None
) -> int:
    child = os.fork()
    if child:
        return child
    code = 99
    try:
        os.setpgid(0, 0)
        os.chdir(place)
        silent = os.open(told or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        sys.stdout, sys.stderr = (open(number, "w", buffering=1, closefd=False) for number in (1, 2))  # noqa: SIM115
        if command.processes > 1:
            launched = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": command.processes, "MASTER_PORT": port}
            launched |= {"LOCAL_WORLD_SIZE": command.processes, "MASTER_ADDR": "127.0.0.1"}
            os.environ.update({name: str(value) for name, value in launched.items()})
        before()
        main(command.words.split())
        code = 0
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def ended(child: int, seconds: float) -> int | None:
    """The exit code of a process that ends within so many seconds (minus the signal, if one ended it), or None."""
    end = time.monotonic() + seconds
    while True:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= end:
            return None
        time.sleep(0.002)


def kill(child: int) -> None:
    """End a process, which is no longer awaited, and all that it started."""
    for end in (os.killpg, os.kill):
        try:
            end(child, signal.SIGKILL)
        except ProcessLookupError:
            continue


def finish(command: Command, place: Path, **options: Any) -> list[int]:
    """Run a command to its end; the exit codes of its processes."""
    children = in_processes(command, place, **options)
    codes = [ended(child, command.limit) for child in children]
    for child, code in zip(children, codes, strict=True):
        if code is None:
            kill(child)
            ended(child, 10.0)
    assert None not in codes, f"`ssno {command.words}` did not end within {command.limit:g} s"
    return [code for code in codes if code is not None]


def finish_well(command: Command, place: Path, told: Path, **options: Any) -> None:
    """The same, if it is not done; anything but success is an error that quotes its last lines."""
    if command.makes and (place / command.makes).exists():
        return
    codes = finish(command, place, told=told, **options)
    if any(codes):
        raise AssertionError(f"`ssno {command.words}` ended with {codes}: {told.read_text()[-600:]}")


# What undisturbed commands leave behind.


@dataclass(frozen=True)
class Whole:
    """The folder in which an undisturbed command ran, and how long it took."""

    folder: Path
    inputs: Path
    seconds: float


def home() -> Path:
    """Where undisturbed commands of this commit are kept."""
    return Path(tempfile.gettempdir()) / f"ssno-verify-whole-{os.getuid()}" / str(provenance()["commit"])[:16]


@cache
def whole(name: str) -> Whole:
    """What the command of this name leaves behind; made if nobody has yet."""
    command = COMMANDS[name]
    place = home() / name.replace(", ", "-").replace(" ", "-")
    if not (place / "seconds").exists():
        making = Path(tempfile.mkdtemp(dir=inputs().parent))
        supply(command, making)
        began = time.monotonic()
        finish_well(command, making, home() / "told.txt")
        (making / "seconds").write_text(str(time.monotonic() - began))
        try:
            making.rename(place)
        except OSError:  # another was faster
            shutil.rmtree(making)
    return Whole(place, inputs(), float((place / "seconds").read_text()))


@cache
def inputs() -> Path:
    """Data, a sweep and a trained model for all commands."""
    place = home() / "inputs"
    if place.exists():
        return place
    home().mkdir(parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(dir=home()))
    generator = np.random.default_rng(0)
    np.save(making / "waves.npy", generator.normal(size=(12, 6, 16)).astype(np.float32).cumsum(-1))
    np.save(making / "plane.npy", generator.normal(size=(8, 5, 8, 8)).astype(np.float32).cumsum(1))
    (making / "rates.json").write_text(json.dumps(SWEEP))
    told = home() / "told.txt"
    for dataset in ("swe", "kt-foil"):
        finish_well(Command(f"data generate {dataset} --preset tiny"), making, told)
    finish_well(Command(f"{WAVES} --name model --out ."), making, told)
    try:
        making.rename(place)
    except OSError:
        shutil.rmtree(making)
    return place


def supply(command: Command, place: Path) -> None:
    """Links to what a command reads."""
    for name in ("waves.npy", "plane.npy", "rates.json", "data", "model"):
        if not (place / name).is_symlink():
            (place / name).symlink_to(inputs() / name)


# What must hold after a disturbed command was given once more.


def unreadable(place: Path) -> list[str]:
    """Files of ours that are there and cannot be read: checkpoints, logs, JSON, datasets."""
    bad = []
    for path in own_files(place):
        try:
            if path.name == INDEX:
                load_checkpoint(path.parent)
            elif path.name == LOG:
                read_lines(path)
            elif path.name == MANIFEST:
                assert verify_dataset(path.parent).fine
            elif path.suffix == ".json":
                json.loads(path.read_text())
        except (OSError, ValueError, AssertionError) as error:
            bad.append(f"{path.relative_to(place)}: {error}")
    return bad


def own_files(place: Path) -> list[Path]:
    """What a command wrote, without locks."""
    links = {path for path in place.iterdir() if path.is_symlink()}
    found = [path for path in place.rglob("*") if path.is_file() and not links & {path, *path.parents}]
    return sorted(path for path in found if path.name not in (".lock", "seconds"))


def differences(cut: Path, uncut: Path) -> list[str]:
    """What is not the same in two folders; clocks apart."""
    names = [{str(path.relative_to(place)) for path in own_files(place)} for place in (cut, uncut)]
    found = [f"only in one of them: {name}" for name in sorted(names[0] ^ names[1])]
    return found + [name for name in sorted(names[0] & names[1]) if not same(cut / name, uncut / name)]


def same(left: Path, right: Path) -> bool:
    """Whether two files agree in all bytes, or in all but clocks."""
    if filecmp.cmp(left, right, shallow=False) or left.name in TABLES:
        return True
    if left.name == LOG:
        return timeless(read_lines(left)) == timeless(read_lines(right))
    if left.suffix == ".json":
        return timeless(json.loads(left.read_text())) == timeless(json.loads(right.read_text()))
    return False


def timeless(value: Any) -> Any:
    """JSON without its clocks."""
    if isinstance(value, dict):
        return {name: timeless(inner) for name, inner in value.items() if name not in NOT_THE_SAME}
    return [timeless(inner) for inner in value] if isinstance(value, list) else value


def assert_nothing_was_lost(cut: Path, uncut: Path, *, notes: Sequence[str] = ()) -> None:
    """Every byte as without a disturbance, and nothing half-written beside it."""
    left = [path.name for path in own_files(cut) if path.suffix == ".partial"]
    assert not left, f"left behind: {left[:5]} ({'; '.join(notes)})"
    different = differences(cut, uncut)
    assert not different, f"different: {different[:5]} ({'; '.join(notes)})"
