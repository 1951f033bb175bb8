"""`ssno train --help` against what real runs get."""

import json
import re

import numpy as np
import pytest

from ssno.cli.main import main
from ssno.models.registry import MODELS
from ssno.runs.run import leaves

FLAGS = re.MULTILINE | re.DOTALL
WORDS = re.compile(
    r"\((?:default: (?P<value>[^)]*)|by the recipe(?:: (?P<values>[^)]*?))?(?:, depending on the data)?|from .*)\)$"
)


@pytest.fixture
def told(monkeypatch, capsys):
    """What help says of each option, by its dotted name: its last words in brackets."""
    monkeypatch.setenv("COLUMNS", "100")  # one column of options

    def read(*words: str) -> dict[str, str]:
        with pytest.raises(SystemExit):
            main(["train", *words, "--help"])
        shown = "\n".join(line.strip(" │") for line in capsys.readouterr().out.splitlines())
        found = {}
        for option in re.finditer(
            r"^--((?:model|train|window)\.[\w.-]+|context_time)\b[^\n]*\n(.*?)(?=^--|\Z)", shown, FLAGS
        ):
            text = " ".join(option[2].split("\n\n")[0].split())
            last = re.search(r"\((default|by|from)[^()]*\)", text)
            assert last, option[0]
            if not option[1].endswith("largest-step"):  # told with smallest-step
                assert last.start() > 10, f"{option[1]} has no text"
            found[option[1].replace("-", "_")] = last[0]
        return found

    return read


def agrees(words: str, value: object) -> bool:
    """Whether the words for a default are true of the value that a run has."""
    match = WORDS.match(words)
    assert match, words
    parts = [f"{part:.3g}" if isinstance(part, float) else str(part) for part in flat(value)]
    if match["values"] is not None:
        return set(parts) <= set(match["values"].split(" or "))
    if match["value"] is None:
        return True  # by the recipe or the data, without a word about which
    shown = match["value"].split() if isinstance(value, list) else [match["value"]]
    return shown == [str(part) for part in flat(value)]


def flat(value: object) -> list[object]:
    return list(value) if isinstance(value, list) else [value]


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ((16, 8, 16), []),
        ((16, 8, 16), ["--data.periodic", "none"]),
        ((16, 6, 8, 8), []),
        ((16, 6, 8, 8), ["--data.periodic", "x"]),
        ((16, 8, 16), ["--recipe", "paper"]),
        ((16, 6, 8, 8), ["--recipe", "paper"]),
        ((16, 8, 16), ["--model", "ffno"]),
        ((16, 8, 16), ["--model", "fno"]),
    ],
    ids=str,
)
def test_help_is_true_of_real_runs(tmp_path, monkeypatch, told, shape, words) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("noise.npy", np.random.default_rng(0).standard_normal(shape, dtype=np.float32))
    help_words = told(*words)
    small = ["--model.hidden-channels", "4", "--model.n-layers", "1", "--train.epochs", "1", "--data.valid", "1"]
    given = {"model.hidden_channels", "model.n_layers", "train.epochs", "data.valid", "data.axes", "data.name"}
    given |= {"data.periodic", "data.train"}
    axes = f"batch time {'x y'[: 2 * len(shape) - 5]}"
    main(["train", "noise.npy", "--data.axes", axes, "--data.train", "2", *small, *words])
    run = json.loads(next((tmp_path / "runs").glob("*/config.json")).read_text())["run"]
    got = {name: value for name, value in leaves(run) if name not in given}
    assert {name for name in got if re.match(r"(model|train|window)\.", name)} - {"model.model"} <= set(help_words)
    wrong = {
        name: (help_words[name], got[name])
        for name in set(got) & set(help_words)
        if not agrees(help_words[name], got[name])
    }
    assert not wrong


@pytest.mark.parametrize("model", sorted(MODELS))
def test_help_says_what_comes_from_the_data_and_the_recipe(told, model) -> None:
    said = told("--model", model)
    assert said["model.in_channels"] == "(from the data)"
    if model == "ssno":
        assert said["model.modes.initialisation"] == "(by the recipe: grid)"
        assert said["model.modes.kernel_init_norm"] == "(by the recipe: 2 or 1 or 0.667, depending on the data)"
        assert said["model.n_layers"] == "(default: 4)"
        assert told("--model", model, "--recipe", "paper")["model.modes.initialisation"] == "(default: legs)"
