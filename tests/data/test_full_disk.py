"""A full disk: named at once, and nothing that was whole is lost. The system's limit on file sizes plays the disk."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ssno.base.atomic_write import write_whole
from ssno.data.datasets import Plan
from ssno.data.generation import generate
from ssno.data.manifest import verify
from ssno.pde.problems.heat import Heat


@contextmanager
def files_limited_to(largest: int) -> Iterator[None]:
    """The system refuses files above so many bytes: only inside, for pytest itself may be writing to a file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_named_and_keeps_the_old_file(tmp_path: Path) -> None:
    write_whole(tmp_path / "shard.h5", b"old")
    refusal = "No room to write 2000 bytes to .*shard.h5 .* run the same command again"
    with pytest.raises(OSError, match=refusal), files_limited_to(1000):
        write_whole(tmp_path / "shard.h5", bytes(2000))
    assert os.listdir(tmp_path) == ["shard.h5"]
    assert (tmp_path / "shard.h5").read_bytes() == b"old"


def test_a_generation_that_ran_out_of_disk_continues_when_there_is_room(tmp_path: Path) -> None:
    origin = {"ssno": "test", "commit": "test"}
    plan = Plan(Heat(points=64, frames=21), {"train": 1, "test": 16}, per_shard=16)  # the second file is larger
    folder = tmp_path / "heat"
    with pytest.raises(OSError, match=r"No room to write .*recipe\.json"), files_limited_to(100):
        generate(plan, folder, jobs=1, origin=origin)
    with pytest.raises(OSError, match=r"No room to write .*test/shard-000\.h5"), files_limited_to(50_000):
        generate(plan, folder, jobs=1, origin=origin)
    assert list(folder.rglob("*.h5")) == [folder / "train/shard-000.h5"]
    outcome = generate(plan, folder, jobs=1, origin=origin)
    assert (outcome.made, outcome.kept, outcome.complete) == (1, 1, True)
    assert verify(folder).fine
