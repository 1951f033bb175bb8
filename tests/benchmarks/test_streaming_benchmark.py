"""The files of the streaming benchmark are The Well's to our reader, and what is counted is there."""

from pathlib import Path

from benchmarks.streaming import Case, make, memory, processor_seconds

from ssno.data.load import load_dataset


def test_the_files_are_read_in_place_as_windows(tmp_path: Path) -> None:
    make(tmp_path, Case((4, 6), 5, files=2, trajectories=3, frames=11))
    data = load_dataset(tmp_path, "all", segment=5)
    assert data.fields == ("density", "pressure", "velocity_x", "velocity_y")
    assert data.shape == (2 * 3 * 2, 5, 4, 4, 6)
    assert len({int(part) for part in data.rows[:, 0]}) == 2


def test_memory_and_processor_time_are_measured() -> None:
    before = memory()
    filled = bytearray(32 * 2**20)
    assert 0.9 < (memory() - before) / len(filled) < 1.5
    assert processor_seconds() > 0
