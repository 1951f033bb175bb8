"""Checkpoints: exact, verified, and never half there."""

import hashlib
import json
import os

import pytest
import torch

from ssno.runs.checkpoint import Progress, load_checkpoint, read_progress, save_checkpoint

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
    index, tensors = sorted(path.name for path in tmp_path.iterdir())
    assert index == "checkpoint.json"
    assert tensors.startswith("tensors-00000002-")
    assert read_progress(tmp_path) == Progress(step=2)


@pytest.mark.parametrize("step", [1, 2])  # an epoch's end saves the step again that was saved a moment ago
def test_a_kill_before_the_index_leaves_the_old_checkpoint(tmp_path, monkeypatch, step) -> None:
    save_checkpoint(tmp_path, TENSORS, Progress(step=1))

    def killed_before_the_index(path, data, **format):
        raise KeyboardInterrupt

    monkeypatch.setattr("ssno.runs.checkpoint.write_document", killed_before_the_index)
    with pytest.raises(KeyboardInterrupt):
        save_checkpoint(tmp_path, {"model/weight": torch.zeros(1)}, Progress(step=step))
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


def test_tensors_that_are_none_and_pipes_are_refused(tmp_path) -> None:
    save_checkpoint(tmp_path, TENSORS, Progress())
    path = next(tmp_path.glob("*.safetensors"))
    path.write_bytes(b"no tensors")
    index = tmp_path / "checkpoint.json"
    content = json.loads(index.read_text())
    content["tensors"]["sha256"] = hashlib.sha256(b"no tensors").hexdigest()
    index.write_text(json.dumps(content))
    with pytest.raises(ValueError, match="is not a readable safetensors file"):
        load_checkpoint(tmp_path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(ValueError, match="is not a regular file"):
        load_checkpoint(tmp_path)


def test_missing_checkpoints_are_named(tmp_path) -> None:
    with pytest.raises(FileNotFoundError, match="There is no checkpoint in"):
        load_checkpoint(tmp_path)
    save_checkpoint(tmp_path, TENSORS, Progress())
    next(tmp_path.glob("*.safetensors")).unlink()
    with pytest.raises(FileNotFoundError, match=r"lacks tensors-00000000-.*\.safetensors"):
        load_checkpoint(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "does not have the format 'ssno-checkpoint'"),
        ({"version": 7}, "has format version 7; this ssno reads version 1"),
        ({"tensors": {}}, "is not complete"),
        ({"progress": {"epoch": "one"}}, "The progress .* is damaged: `progress.epoch` must be int, got 'one'"),
        ({"progress": {"best": [1]}}, r"The progress .* is damaged: `progress.best` must be float, got \[1\]"),
        ({"progress": {"step": -1}}, "The progress .* is damaged: `progress.step` must be at least 0, got -1"),
        (
            {"progress": {"best_epoch": 2**70}},
            "`progress.best_epoch` must be at least -1, got 11805916",
        ),
        ({"progress": {"epoch": 1, "surprise": 2}}, "The progress .* is damaged: Unknown name `progress.surprise`"),
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
    file = content["tensors"]["file"]
    content["tensors"]["file"] = f"../outside/{file}"
    (tmp_path / "last" / file).unlink()
    index.write_text(json.dumps(content))
    with pytest.raises(FileNotFoundError, match="lacks tensors"):
        load_checkpoint(tmp_path / "last")
