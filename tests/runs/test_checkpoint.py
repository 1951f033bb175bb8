"""Checkpoints: exact, verified, and never half there."""

import json

import pytest
import torch

from ssno.runs.checkpoint import Progress, load_checkpoint, save_checkpoint

TENSORS = {"model/weight": torch.arange(6.0).reshape(2, 3), "optimiser/weight/step": torch.tensor(3.0)}


def test_checkpoints_come_back_exactly(tmp_path) -> None:
    progress = Progress(epoch=2, batch=1, step=9, loss_sum=0.1 + 0.2, best=1 / 3)
    save_checkpoint(tmp_path / "last", TENSORS, progress)
    tensors, back = load_checkpoint(tmp_path / "last")
    assert back == progress
    assert all(torch.equal(tensors[name], value) for name, value in TENSORS.items())


def test_a_best_of_infinity_survives_json(tmp_path) -> None:
    save_checkpoint(tmp_path, TENSORS, Progress())
    assert load_checkpoint(tmp_path)[1].best == float("inf")


def test_a_new_checkpoint_replaces_the_old_one(tmp_path) -> None:
    save_checkpoint(tmp_path, TENSORS, Progress(step=1))
    save_checkpoint(tmp_path, TENSORS, Progress(step=2))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint.json", "tensors-00000002.safetensors"]


def test_a_kill_before_the_index_leaves_the_old_checkpoint(tmp_path, monkeypatch) -> None:
    save_checkpoint(tmp_path, TENSORS, Progress(step=1))
    import ssno.runs.checkpoint as module

    write = module.write_whole

    def killed_before_the_index(path, data):
        if path.name == "checkpoint.json":
            raise KeyboardInterrupt
        write(path, data)

    monkeypatch.setattr(module, "write_whole", killed_before_the_index)
    with pytest.raises(KeyboardInterrupt):
        save_checkpoint(tmp_path, {"model/weight": torch.zeros(1)}, Progress(step=2))
    tensors, progress = load_checkpoint(tmp_path)
    assert progress.step == 1
    assert torch.equal(tensors["model/weight"], TENSORS["model/weight"])


def test_a_flipped_bit_is_noticed(tmp_path) -> None:
    save_checkpoint(tmp_path, TENSORS, Progress())
    path = next(tmp_path.glob("*.safetensors"))
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="does not match its checksum"):
        load_checkpoint(tmp_path)


def test_missing_checkpoints_are_named(tmp_path) -> None:
    with pytest.raises(FileNotFoundError, match="There is no checkpoint in"):
        load_checkpoint(tmp_path)
    save_checkpoint(tmp_path, TENSORS, Progress())
    next(tmp_path.glob("*.safetensors")).unlink()
    with pytest.raises(FileNotFoundError, match=r"lacks tensors-00000000\.safetensors"):
        load_checkpoint(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "is not a checkpoint of ssno"),
        ({"version": 7}, "has format version 7; this ssno reads version 1"),
        ({"tensors": {}}, "is not complete"),
        ({"progress": {"epoch": 1, "surprise": 2}}, "is not readable .*surprise"),
    ],
)
def test_foreign_indexes_are_refused(tmp_path, change, message) -> None:
    save_checkpoint(tmp_path, TENSORS, Progress())
    index = tmp_path / "checkpoint.json"
    index.write_text(json.dumps(json.loads(index.read_text()) | change))
    with pytest.raises(ValueError, match=message):
        load_checkpoint(tmp_path)


def test_a_broken_index_is_refused(tmp_path) -> None:
    (tmp_path / "checkpoint.json").write_text("{")
    with pytest.raises(ValueError, match="is not valid JSON"):
        load_checkpoint(tmp_path)


def test_an_index_cannot_point_outside_its_folder(tmp_path) -> None:
    save_checkpoint(tmp_path / "outside", TENSORS, Progress())
    save_checkpoint(tmp_path / "last", TENSORS, Progress())
    index = tmp_path / "last" / "checkpoint.json"
    content = json.loads(index.read_text())
    content["tensors"]["file"] = "../outside/tensors-00000000.safetensors"
    (tmp_path / "last" / "tensors-00000000.safetensors").unlink()
    index.write_text(json.dumps(content))
    with pytest.raises(FileNotFoundError, match="lacks tensors"):
        load_checkpoint(tmp_path / "last")
