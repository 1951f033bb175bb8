"""Values, logs and arguments that are unusual but nobody's bug: they work, or end with code 2 and a sentence."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from ssno.cli.main import main
from ssno.runs.open import open_run

TRAIN = ["train", "mine.npz", "--data.axes", "batch time x", "--model", "ssno:tiny", "--train.epochs", "1"]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def store(scale: float = 1.0, *, still: bool = False) -> None:
    values = np.random.default_rng(0).normal(size=(10, 6, 16)).astype(np.float32)
    np.savez("mine.npz", u=scale * (np.repeat(values[:, :1], 6, axis=1) if still else values))


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    return " ".join(capsys.readouterr().err.split())


def metrics(name: str, capsys: pytest.CaptureFixture[str]) -> dict[str, float]:
    main([*TRAIN, "--name", name])
    capsys.readouterr()
    main(["evaluate", f"runs/{name}", "--json"])
    (found,) = json.loads(capsys.readouterr().out)
    return found["scores"]["means"]


def test_huge_and_tiny_values_have_the_errors_of_ordinary_ones(capsys: pytest.CaptureFixture[str]) -> None:
    store()
    usual = metrics("usual", capsys)
    absolute = {"vrmse"}  # The Well adds 1e-7 to the variance
    for name, power in (("tiny", -100), ("huge", 110)):
        store(2.0**power)
        found = metrics(name, capsys)
        for metric in usual.keys() - (absolute if power < 0 else set()):
            assert found[metric] == pytest.approx(usual[metric], rel=1e-4), metric
    main(["rollout", "runs/huge", "--no-animate"])
    main(["report", "runs/huge"])


def test_data_that_stand_still_have_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    store(still=True)
    main([*TRAIN, "--name", "still"])
    main(["report", "runs/still"])
    assert "The best trivial forecast (persistence) has 0\u00a0%." in Path("runs/still/report.html").read_text()
    store(0.0)
    main([*TRAIN, "--name", "zero"])
    main(["report", "runs/zero"])


def test_a_log_that_is_lost_or_strange_stops_nobody(capsys: pytest.CaptureFixture[str]) -> None:
    store()
    main([*TRAIN, "--name", "run"])
    log = Path("runs/run/metrics.jsonl")
    *lines, last = log.read_text().splitlines()
    capsys.readouterr()
    for change in ({"best": False}, {"rel_l2": "x", "rel_l2/u": [1], "rel_l2_\x1b[2J": 1.0}, None):
        if change is None:
            log.unlink()
        else:
            log.write_text("\n".join([*lines, json.dumps(json.loads(last) | change)]) + "\n")
        main([*TRAIN, "--name", "run", "--resume"])
        main([*TRAIN, "--name", "run", "--resume", "--json"])
        told = capsys.readouterr()
        assert "\x1b" not in told.out
        assert ("does not name a best epoch" in told.err) == (change is None or "best" in change)
    main(["report", "runs/run"])
    log.write_text("\n".join([*lines, json.dumps(json.loads(last) | {"rel_l2": 10**400}), last]) + "\n")
    assert "metrics.jsonl is damaged. Delete that line" in refused(["report", "runs/run"], capsys)


def test_a_seed_that_no_generator_takes_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    store()
    huge = str(10**23)
    told = "`seed` must be at most 9223372036854775807, got 100000000000000000000000"
    assert told in refused([*TRAIN, "--train.seed", huge], capsys)
    assert told in refused(["data", "generate", "heat", "--preset", "tiny", "--seed", huge], capsys)
    main([*TRAIN, "--name", "run"])
    config = Path("runs/run/config.json")
    document = json.loads(config.read_text())
    document["run"]["train"]["seed"] = 10**23
    config.write_text(json.dumps(document))
    assert open_run("runs/run").seed is None
    main(["inspect", "runs/run", "--no-draw"])
    assert told in refused([*TRAIN, "--name", "run", "--resume"], capsys)


def test_a_nul_in_an_argument_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    told = refused([*TRAIN, "--name", "a\0b"], capsys)
    assert "'a\\x00b' holds a NUL character, which no name of a file or option does. Leave it out." in told


def test_a_grid_in_other_units_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    store()
    main([*TRAIN, "--name", "run"])
    shutil.copy("mine.npz", "other.npz")
    told = refused(["evaluate", "runs/run", "--data", "other.npz", "--lengths", "1e9"], capsys)
    assert "1e+09 times as far apart as those of training, more than 1024. Give lengths in the units of" in told
