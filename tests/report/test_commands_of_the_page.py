"""The commands under "How to make it again", from the page into an empty folder: the same numbers come out."""

import base64
import html
import re
import shlex
from pathlib import Path

import pytest

from ssno.cli.main import main
from ssno.evaluation.record import read_evaluation


def test_the_commands_of_a_page_make_its_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, again = tmp_path / "first", tmp_path / "again"
    for folder in (first, again):
        folder.mkdir()
    monkeypatch.chdir(first)
    given = ["--data.points", "16", "--train.epochs", "2", "--train.seed", "3", "--train.noise", "0.01"]
    main(["train", "ks", "--generate", "--data.preset", "tiny", "--model", "ssno:tiny", *given, "--name", "one"])
    main(["evaluate", "runs/one", "--split", "valid"])
    evaluated = next((first / "runs" / "one").glob("evaluation*.json"))
    main(["report", "runs/one", "--split", "valid"])
    page = (first / "runs" / "one" / "report.html").read_text()
    link = re.search(r'download="run.json" href="data:application/json;base64,([^"]+)"', page)
    (again / "run.json").write_bytes(base64.b64decode(link[1]))
    shown = re.search(r"How to make it again</h3>.*?<pre[^>]*>(.*?)</pre>", page, flags=re.DOTALL)
    lines = html.unescape(re.sub(r"<[^>]+>", "", shown[1])).splitlines()
    commands = [shlex.split(line, comments=True) for line in lines]
    monkeypatch.chdir(again)
    for words in filter(None, commands):
        assert words[0] == "ssno"
        if words[1] != "report":  # the page itself is what we have
            main(words[1:])
    one, other = (read_evaluation(folder / "runs" / "one" / evaluated.name) for folder in (first, again))
    assert one.scores.means == other.scores.means
