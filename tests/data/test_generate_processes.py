"""Generating in real processes: several workers, and workers or main process killed without warning."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ssno.data.datasets import Plan
from ssno.data.generation import generate, run
from ssno.data.manifest import MANIFEST, verify
from ssno.data.solve_shards import GenerationFailed
from ssno.pde.problems.heat import Heat

ORIGIN = {"ssno": "test", "commit": "test"}
PLAN = Plan(Heat(points=64, frames=31), {"train": 60, "valid": 4}, per_shard=2)
SCRIPT = """
import sys
from pathlib import Path
from ssno.data.generation import generate
from ssno.data.datasets import Plan
from ssno.pde.problems.heat import Heat

if __name__ == "__main__":
    plan = Plan(Heat(points=64, frames=31), {"train": 60, "valid": 4}, per_shard=2)
    generate(plan, Path(sys.argv[1]), jobs=2, origin={"ssno": "test", "commit": "test"})
"""


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*.h5"))}


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The dataset as one process makes it in one go."""
    folder = tmp_path_factory.mktemp("uninterrupted") / "heat"
    assert generate(PLAN, folder, jobs=1, origin=ORIGIN).complete
    return files(folder)


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes() != b""  # empty for a dead one nobody waited for
    except OSError:
        return False


def children_of(process: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def started(tmp_path: Path, *, after: int) -> tuple[subprocess.Popen[bytes], Path]:
    """A generation with two workers in a process of its own that has finished `after` shards."""
    script, folder = tmp_path / "generate_heat.py", tmp_path / "heat"
    script.write_text(SCRIPT)
    process = subprocess.Popen([sys.executable, str(script), str(folder)], stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while len(list(folder.glob(".progress/*-shard-*.json"))) < after:
        assert process.poll() is None, process.stderr.read()  # type: ignore[union-attr]
        assert time.monotonic() < deadline
        time.sleep(0.002)
    return process, folder


def test_two_workers_make_the_same_bits_as_one(uninterrupted: dict[str, bytes], tmp_path: Path) -> None:
    heard: list[float] = []
    outcome = generate(
        PLAN, tmp_path / "heat", jobs=2, origin=ORIGIN, report=lambda done, total: heard.append(done / total)
    )
    assert (outcome.complete, outcome.made, outcome.forecast.jobs) == (True, 32, 2)
    assert files(tmp_path / "heat") == uninterrupted
    assert heard[-1] == pytest.approx(1)


def test_a_killed_generation_continues_to_the_same_bits(uninterrupted: dict[str, bytes], tmp_path: Path) -> None:
    process, folder = started(tmp_path, after=5)
    workers = children_of(process.pid)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    process.stderr.close()  # type: ignore[union-attr]
    assert not (folder / MANIFEST).exists()
    outcome = generate(PLAN, folder, jobs=1, origin=ORIGIN)  # at once, while the orphaned workers may still write
    assert outcome.kept >= 5
    assert outcome.made >= 1
    assert files(folder) == uninterrupted
    assert verify(folder).fine
    deadline = time.monotonic() + 20
    while any(is_alive(worker) for worker in workers):
        assert time.monotonic() < deadline, "workers outlive the main process"
        time.sleep(0.02)


@pytest.mark.verify
def test_twenty_kills_at_random_moments_change_no_bit(uninterrupted: dict[str, bytes], tmp_path: Path) -> None:
    rng = random.Random(0)
    for _ in range(20):
        kept = len(list((tmp_path / "heat").glob(".progress/*-shard-*.json")))
        if kept >= 31 or (tmp_path / "heat" / MANIFEST).exists():
            shutil.rmtree(tmp_path / "heat")
            kept = 0
        process, folder = started(tmp_path, after=kept + 1)
        time.sleep(rng.uniform(0, 0.03))
        process.kill()
        process.communicate()
    generate(PLAN, folder, jobs=2, origin=ORIGIN)
    assert files(folder) == uninterrupted
    assert verify(folder).fine


def test_a_killed_worker_is_named_and_the_rest_is_kept(tmp_path: Path) -> None:
    process, folder = started(tmp_path, after=3)
    worker = next(
        child for child in children_of(process.pid) if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()
    )
    os.kill(worker, signal.SIGKILL)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert b"A worker process died (exit code -9)" in errors
    assert len(list(folder.rglob("*.h5"))) >= 3
    assert not (folder / MANIFEST).exists()


@pytest.mark.parametrize(
    ("provenance", "error", "story"),
    [
        (ORIGIN, FileNotFoundError, "train/shard-000"),  # the folder of the split is not there
        ({"forgotten": "versions"}, GenerationFailed, r"(?s)A worker process failed.*KeyError: 'ssno'"),
    ],
)
def test_what_goes_wrong_in_a_worker_reaches_the_caller(
    tmp_path: Path, provenance: dict[str, str], error: type[Exception], story: str
) -> None:
    one = PLAN.shards()[:1]
    with pytest.raises(error, match=story):
        run(
            PLAN,
            tmp_path,
            one,
            jobs=2,
            batch=2,
            provenance=provenance,
            report=lambda _: None,
            stored=lambda _: None,
        )
