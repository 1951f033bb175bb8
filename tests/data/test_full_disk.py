"""A full disk: named at once, and nothing that was whole is lost. The system's limit on file sizes plays the disk."""

import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ssno.data.generate import generate
from ssno.data.plan import Plan
from ssno.data.verify import verify
from ssno.files.whole import write_whole
from ssno.pde.advection_diffusion import Heat


@pytest.fixture
def limit_files() -> Iterator[Callable[[int], None]]:
    """A function that makes the system refuse files above so many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda largest: resource.setrlimit(resource.RLIMIT_FSIZE, (largest, hard))
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_named_and_keeps_the_old_file(tmp_path: Path, limit_files: Callable[[int], None]) -> None:
    write_whole(tmp_path / "shard.h5", b"old")
    limit_files(1000)
    with pytest.raises(OSError, match="No room to write 2000 bytes to .*shard.h5 .* run the same command again"):
        write_whole(tmp_path / "shard.h5", bytes(2000))
    assert os.listdir(tmp_path) == ["shard.h5"]
    assert (tmp_path / "shard.h5").read_bytes() == b"old"


def test_a_generation_that_ran_out_of_disk_continues_when_there_is_room(
    tmp_path: Path, limit_files: Callable[[int], None]
) -> None:
    origin = {"ssno": "test", "commit": "test"}
    plan = Plan(Heat(points=64, frames=21), {"train": 1, "test": 16}, per_shard=16)  # the second file is larger
    folder = tmp_path / "heat"
    limit_files(100)
    with pytest.raises(OSError, match=r"No room to write .*recipe\.json"):
        generate(plan, folder, workers=1, origin=origin)
    limit_files(50_000)
    with pytest.raises(OSError, match=r"No room to write .*test/shard-000\.h5"):
        generate(plan, folder, workers=1, origin=origin)
    assert list(folder.rglob("*.h5")) == [folder / "train/shard-000.h5"]
    limit_files(10_000_000)
    outcome = generate(plan, folder, workers=1, origin=origin)
    assert (outcome.made, outcome.kept, outcome.complete) == (1, 1, True)
    assert verify(folder).fine
