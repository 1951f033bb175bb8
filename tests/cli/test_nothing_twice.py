"""How often `ssno train` and `ssno evaluate` open files, read trajectories and parse descriptions."""

import sys
from collections import Counter, OrderedDict
from collections.abc import Iterator
from pathlib import Path

import h5py
import pytest

from ssno.cli.main import main
from ssno.data.readers import arrays
from ssno.data.trajectories import Trajectories
from ssno.training import task

TRAIN = ["train", "heat", "--data.preset", "tiny", "--data.resolution", "16", "--model", "ssno:tiny"]
COUNTING: list[Counter[str]] = []


def count_opened(event: str, arguments: tuple) -> None:
    """Hooks into the interpreter cannot be removed again: this one only counts inside a test."""
    if (
        COUNTING and event == "open" and isinstance(arguments[0], str | Path) and arguments[1] is not None
    ):  # not os.open
        COUNTING[-1][Path(arguments[0]).name] += 1


sys.addaudithook(count_opened)


@pytest.fixture
def counted(tmp_path_factory, monkeypatch) -> Iterator[Counter[str]]:
    """Files opened, by name; trajectories read from disk, as "read SHARD ROW"; models checked, as "fit NAME"."""
    monkeypatch.chdir(tmp_path_factory.mktemp("counted"))
    main([*TRAIN, "--generate", "--train.epochs", "1", "--name", "first"])
    found: Counter[str] = Counter()
    read, check_fit = Trajectories.read, task.check_fit

    class CountedFile(h5py.File):
        def __init__(self, name, *arguments, **options) -> None:
            found[f"{Path(name).parent.name}/{Path(name).name}"] += 1
            super().__init__(name, *arguments, **options)

    def counting_read(data, indices, **options):
        for part, row, _ in data.select(indices=indices).rows.tolist():
            if not data.parts[part].in_memory:
                found[f"read {data.parts[part].state[0].array.label} {row}"] += 1
        return read(data, indices, **options)

    def counting_fit(model, data) -> None:
        found[f"fit {id(data)}"] += 1
        check_fit(model, data)

    monkeypatch.setattr(h5py, "File", CountedFile)
    monkeypatch.setattr(Trajectories, "read", counting_read)
    monkeypatch.setattr(task, "check_fit", counting_fit)
    monkeypatch.setattr(arrays, "_open", OrderedDict())  # files that the first training left open
    COUNTING.append(found)
    yield found
    COUNTING.clear()


def most(found: Counter[str], start: str) -> int:
    """The largest of the counts whose names begin so; at least one must be there."""
    return max(count for name, count in found.items() if name.startswith(start))


def test_a_training_opens_every_shard_and_reads_every_trajectory_once(counted) -> None:
    main([*TRAIN, "--train.epochs", "3", "--name", "second"])  # three validations
    assert len([name for name in counted if name.startswith("read ")]) == 8 + 2  # train and valid
    assert most(counted, "read ") == 1
    assert most(counted, "fit ") == 1
    assert most(counted, "train/") <= 2  # its description, then its numbers
    assert most(counted, "valid/") <= 2
    assert not any(name.startswith("test/") for name in counted)
    assert counted["manifest.json"] <= 2  # its seal, then its content


def test_an_evaluation_loads_weights_once_and_reads_test_trajectories_once(counted) -> None:
    main(["evaluate", "runs/first", "--data", "data/heat-tiny", "--periodic", "all", "--resolution", "16"])
    assert counted["config.json"] == counted["climatology.safetensors"] == 1
    assert counted["model.safetensors"] == 1
    assert len([name for name in counted if name.startswith("read ")]) == 2
    assert most(counted, "read ") <= 2  # the first few once more: they are forecast for their time
    assert most(counted, "test/") <= 2
    assert counted["manifest.json"] <= 2


def test_an_evaluation_on_another_grid_reads_training_trajectories_once_for_their_mean(counted) -> None:
    main(["evaluate", "runs/first", "--resolution", "32"])
    assert len([name for name in counted if name.startswith("read ") and "/train/" in name]) == 8
    assert max(count for name, count in counted.items() if name.startswith("read ") and "/train/" in name) == 1
