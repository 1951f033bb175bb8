"""The commands under "Reproduce this run", from the page into an empty folder: the same numbers come out."""

import base64
import html
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from ssno.cli.main import main
from ssno.evaluation.record import read_evaluation


def test_the_commands_of_a_page_make_its_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, again = tmp_path / "first", tmp_path / "again"
    for folder in (first, again):
        folder.mkdir()
    monkeypatch.chdir(first)
    given = ["--data.resolution", "16", "--train.epochs", "2", "--train.seed", "3", "--train.noise-std", "0.01"]
    main(["train", "ks", "--generate", "--data.preset", "tiny", "--model", "ssno:tiny", *given, "--name", "one"])
    main(["evaluate", "runs/one", "--split", "valid"])
    evaluated = next((first / "runs" / "one").glob("evaluation*.json"))
    main(["report", "runs/one", "--split", "valid"])
    page = (first / "runs" / "one" / "report.html").read_text()
    link = re.search(r'download="run.json" href="data:application/json;base64,([^"]+)"', page)
    (again / "run.json").write_bytes(base64.b64decode(link[1]))
    shown = re.search(r"Reproduce this run</h3>.*?<pre[^>]*>(.*?)</pre>", page, flags=re.DOTALL)
    lines = html.unescape(re.sub(r"<[^>]+>", "", shown[1])).splitlines()
    commands = [shlex.split(line, comments=True) for line in lines]
    monkeypatch.chdir(again)
    for words in filter(None, commands):
        assert words[0] == "ssno"
        main(words[1:])
    one, other = (read_evaluation(folder / "runs" / "one" / evaluated.name) for folder in (first, again))
    assert one.scores.means == other.scores.means
    heading = re.search(r"<title>.*?</title>", page)[0]
    repeated = (again / "runs" / "one" / "report.html").read_text()
    assert (heading in repeated, "valid" in repeated) == (True, True)
    assert lines[-1] in html.unescape(repeated), "the page is about the same split"


def test_a_page_about_other_data_names_them_in_its_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("mine.npy", "other.npy"):
        np.save(name, np.random.default_rng(len(name)).normal(size=(20, 6, 8)))
    described = ["--data.axes", "batch time x", "--data.dt", "0.1"]
    main(["train", "mine.npy", *described, "--model", "ssno:tiny", "--train.epochs", "1", "--name", "own"])
    main(["report", "runs/own", "--data", "other.npy"])
    page = (tmp_path / "runs" / "own" / "report.html").read_text()
    assert "ssno evaluate runs/own --split test --data other.npy" in page
    assert "ssno report runs/own --split test --data other.npy" in page
    np.save("turned.npy", np.load("other.npy").transpose(0, 2, 1))
    main(["report", "runs/own", "--data", "turned.npy", "--axes", "batch x time"])
    said = "--data turned.npy --axes 'batch x time' --dt 0.1"
    page = html.unescape((tmp_path / "runs" / "own" / "report.html").read_text())
    assert f"ssno evaluate runs/own --split test {said}" in page
