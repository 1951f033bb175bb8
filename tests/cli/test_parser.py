"""Types in help, and --device: one option of every command that computes."""

import os
import re

import pytest

from ssno.base.device import SWITCH, choose_device
from ssno.cli.main import VERBS, main
from ssno.cli.parser import computing_on, parse, with_device
from ssno.data.load import DataOptions

COMPUTING = ["train", "evaluate", "predict", "rollout", "inspect", "report", "publish", "bench", "reproduce", "sweep"]
COMPUTING += ["demo"]


@pytest.mark.parametrize("verb", COMPUTING)
def test_every_command_that_computes_offers_it(verb, capsys) -> None:
    with pytest.raises(SystemExit):
        main([verb, "--help"])
    assert "--device" in capsys.readouterr().out


def test_the_list_above_is_whole() -> None:
    assert {name for name, verb in VERBS.items() if verb.computes} == set(COMPUTING) - {"train"}


@pytest.mark.parametrize("verb", ["evaluate", "train"])
def test_a_device_that_is_not_there_is_a_mistake_in_the_call(verb, capsys, tmp_path) -> None:
    with pytest.raises(SystemExit) as left:
        main([verb, str(tmp_path), "--device", "cuda:7"])
    assert left.value.code == 2
    assert "there is no cuda:7; available:" in capsys.readouterr().err


def test_auto_says_what_it_chose_and_the_command_follows(monkeypatch, capsys) -> None:
    monkeypatch.delenv(SWITCH, raising=False)
    seen = []
    with_device(lambda: seen.append(choose_device()))(device="auto")
    assert [device.type for device in seen] == [choose_device().type]
    assert capsys.readouterr().err.startswith(f"ssno: computing on {seen[0]} (")


def test_a_named_device_holds_for_the_command_and_what_it_starts(monkeypatch) -> None:
    monkeypatch.setenv(SWITCH, "mps")
    with computing_on("cpu"):
        assert os.environ[SWITCH] == "cpu"
        assert choose_device("auto").type == "cpu"
    assert os.environ[SWITCH] == "mps"


@pytest.mark.parametrize("verb", VERBS)
def test_help_shows_types_that_people_know(verb, capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit):
        main([*verb.split(), *(["ks"] if verb == "data generate" else []), "--help"])
    shown = capsys.readouterr().out
    assert "{None" not in shown
    assert not re.search(r"\[(\w+) \[\1", shown)  # [INT [INT ...]]
    assert "--periodic" not in shown or "all|none|AXIS ..." in shown


def test_options_that_may_be_none_still_take_it() -> None:
    options = parse(
        DataOptions, ["--resolution", "None", "--segment", "3", "--splits", "0.5", "0.5", "--periodic", "x"]
    )
    assert (options.resolution, options.segment, options.splits, options.periodic) == (None, 3, (0.5, 0.5), ("x",))
