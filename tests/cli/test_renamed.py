"""Options of before 0.2 end with an error that names the new one."""

import re

import pytest

from ssno.cli.main import VERBS, main
from ssno.cli.renamed import RENAMED

OLD = [(verb, old, new) for verb, names in RENAMED.items() for old, new in names.items()]


@pytest.mark.parametrize(("verb", "old", "new"), OLD)
def test_an_old_option_names_the_new_one(verb, old, new, capsys) -> None:
    for words in ([old, "2"], [f"{old}=2"]):
        with pytest.raises(SystemExit, match="2"):
            main([*verb.split(), "runs/any", *words])
        assert f"has no `{old}` any more: use `{new}`." in capsys.readouterr().err


@pytest.mark.parametrize(("verb", "old", "new"), OLD)
def test_the_new_option_stands_in_the_help_and_the_old_one_does_not(verb, old, new, capsys) -> None:
    verb_of = [*verb.split(), "ks"] if verb == "data generate" else verb.split()
    with pytest.raises(SystemExit):
        main([*verb_of, "--help"])
    shown = capsys.readouterr().out
    assert re.search(rf"{new}(?![\w-])", shown), VERBS[verb]
    assert not re.search(rf"(?<![\w-]){old}(?![\w-])", shown)


def test_the_old_name_of_a_scale_names_the_new_one(capsys) -> None:
    for words in (["--scale", "night"], ["--scale=night"]):
        with pytest.raises(SystemExit, match="2"):
            main(["reproduce", "window", *words])
        assert "The scale 'night' is called 'tenth' now" in capsys.readouterr().err
