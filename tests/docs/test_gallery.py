"""Pages of the gallery: every dataset, model and checkpoint has what its page needs, and commands on them parse."""

import json
import re
import shlex
from pathlib import Path
from xml.etree import ElementTree

import pytest
from docs.scripts.pages import checkpoints, choices, datasets, markdown, models, stored
from docs.scripts.pages.diagrams import MARGIN, WIDTH, diagram, stages

from benchmarks import contest
from ssno.cli import train as train_command
from ssno.cli.main import find_verb
from ssno.data.datasets import DATASETS, PRESETS
from ssno.models import bundled_folders, known_models, model_config
from ssno.runs import open_run, reported_metrics

LETTER = 8.2
"""Pixels of a wide letter of 16 pixel type."""


def parses(command: str) -> bool:
    words = shlex.split(command, comments=True)[1:]
    _, verb, rest = find_verb(words)
    if verb.module == "train":
        train_command.parse(rest).run()
    return bool(verb.module)


def test_a_page_of_a_dataset_is_written_with_its_picture_once(tmp_path: Path) -> None:
    page = datasets.dataset_page("heat-box", tmp_path, preset="tiny")
    text = page.read_text()
    assert "u_t = \\kappa\\,\\Delta u" in text
    assert "| `x` | walls or open | 1 | 32 |" in text
    assert "[ffno](../models/ffno.md)" in text
    assert (tmp_path / "heat-box.gif").read_bytes().startswith(b"GIF8")
    before = (tmp_path / "heat-box.gif").stat().st_mtime_ns
    datasets.dataset_page("heat-box", tmp_path, preset="tiny")
    assert (tmp_path / "heat-box.gif").stat().st_mtime_ns == before
    assert markdown.draw_once(tmp_path / "heat-box.gif", "other inputs", lambda path: path.write_bytes(b"new"))


def test_a_page_of_a_model_is_written_with_its_diagram(tmp_path: Path) -> None:
    text = models.model_page("ffno", tmp_path).read_text()
    assert "![ffno: frame, then lift" in text
    assert "| commutes with shifts (periodic) | yes |" in text
    assert "Tran et al." in text
    assert (tmp_path / "ffno.svg").is_file()


@pytest.mark.parametrize("name", list(DATASETS))
def test_every_dataset_has_the_facts_of_its_page(name: str) -> None:
    formula = DATASETS[name].problem.formula
    assert formula
    assert formula.count("{") == formula.count("}")
    assert not re.search(r"[^\\]%|\$", formula)
    assert stored.generation_seconds()[name].keys() == set(PRESETS)
    commands = datasets.commands(name).splitlines()[1:-1]
    assert len(commands) == 3
    assert all(map(parses, commands))


@pytest.mark.parametrize("name", known_models())
def test_every_model_has_the_facts_of_its_page(name: str) -> None:
    assert models.WHEN[name]
    assert models.REFERENCES[name]
    assert parses(models.train_command(name))
    for box in stages(models.largest_default(name)):  # words fit into their boxes
        room = (WIDTH - 2 * MARGIN) * box.share
        assert len(box.title) * LETTER * 1.15 < room, box
        assert len(box.detail) * LETTER * 0.85 < room, box
    root = ElementTree.fromstring(diagram(name, model_config(name)))
    assert root.find("{http://www.w3.org/2000/svg}title") is not None


def test_pages_know_no_model_that_is_not_there() -> None:
    assert set(models.WHEN) == set(models.REFERENCES) == set(known_models())


@pytest.mark.parametrize(
    ("name", "ability", "found"),
    [
        ("unet", "other grids, same weights", "multiples of 16"),
        ("sfno", "other grids, same weights", "built for one grid"),
        ("ssno-selective", "export (ONNX, `torch.export`, AOTI)", "no"),
        ("ssno-vm", "commutes with shifts (periodic)", "no"),
        ("fno-r", "commutes with shifts (periodic)", "without coordinates"),
        ("ssno", "boundaries of its own, per axis", "zero, periodic, periodic-truncated, neumann, dirichlet, learned"),
    ],
)
def test_abilities_are_tried_out(name: str, ability: str, found: str) -> None:
    assert models.capabilities(name)[ability] == found


GROUPS = (choices.of_contest(), *choices.WHICH_MODEL.values(), choices.WHICH_OPTIONS)
QUESTIONS = tuple(one for group in GROUPS for one in group)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda one: f"{one.asked}, {one.file}")
def test_every_question_is_answered_by_a_stored_experiment(question: choices.Question) -> None:
    asked, take, error, *_ = choices.answer(question).row()
    assert asked == question.asked
    assert re.match(r"[\d.]", error)
    assert take in question.settings.values()


@pytest.mark.parametrize(
    ("errors", "take", "others", "decided"),
    [
        (([0.100, 0.101, 0.102], [0.2, 0.21, 0.22]), "`ffno`", "worse: `ssno` 0.21 ± 0.01 (3)", True),
        (([0.10, 0.12, 0.11], [0.11, 0.13, 0.12]), "`ssno`", "as good: `ffno` 0.11 ± 0.01 (3)", False),
        (([0.1], [0.3, 0.31]), "`ffno`", "next, not decided: `ssno` 0.305 ± 0.0071 (2)", False),
    ],
)
def test_where_seeds_do_not_decide_the_default_is_the_answer(monkeypatch, errors, take, others, decided) -> None:
    question = choices.Question("Fast or slow", "f", "c", {"FFNO": "`ffno`", "SS-NO": "`ssno`"})
    rest = ("cpu", "ks", "c", "m")
    columns = [
        stored.Cell("f", *rest, label, 64, 1, 1, 1, {"rel_l2": values}, {})
        for label, values in zip(question.settings, errors, strict=True)
    ]
    monkeypatch.setattr(choices, "cells", lambda: columns)
    found = choices.answer(question)
    assert (found.take, found.others, found.decided) == (take, others, decided)
    word = "decided" if decided else "not decided"
    assert choices.in_short([found]) == f"Take {take} ({word} by the seeds)."


def test_problems_of_the_contest_are_questions_once_they_are_stored(tmp_path: Path, monkeypatch) -> None:
    """And their models are in the tables of datasets and models; a training that failed has no error."""
    trial = {"dataset": "ks-0.1", "seconds": 30.0, "parameters": 7, "rel_l2": 0.02, "rel_l2_onestep": 0.01}
    sphere = trial | {"dataset": "swe", "entry": "sfno", "seed": 0}
    lines = [trial | {"entry": "ssno-warp", "seed": seed} for seed in (0, 0, 1)]
    lines += [trial | {"entry": "ffno", "seed": 0, "rel_l2": 0.05}, sphere]
    failed = {"dataset": "swe", "entry": "ssno-sphere-product", "seconds": 60.0, "seed": 0, "failed": "diverged"}
    monkeypatch.setattr(stored, "CONTEST", tmp_path / "contest.jsonl")
    stored.CONTEST.write_text("".join(json.dumps(line) + "\n" for line in [*lines, failed]))
    found = stored._contest_cells()
    monkeypatch.setattr(choices, "cells", lambda: found)
    chaos, ball = map(choices.answer, choices.of_contest())
    assert chaos.row()[1:] == (
        "`ssno-warp`",
        "0.02 ± 0 (2)",
        "next, not decided: `ffno` 0.05 (1)",
        "`contest.jsonl`, ks-0.1",
    )
    assert (ball.take, ball.error, ball.others) == (
        "`sfno`",
        "0.02 (1)",
        "next, not decided: `ssno-sphere-product` diverged",
    )
    assert {cell.dataset for cell in found} == {"ks", "swe"}


def test_every_problem_of_the_contest_has_words() -> None:
    assert choices.PROBLEMS.keys() == contest.ENTRIES.keys()


def test_links_to_the_manual_lead_there(tmp_path: Path) -> None:
    """Files of the same name are elsewhere below docs, too."""
    link = markdown.page_link("x", "evaluation.md", near=markdown.DOCS / "gallery" / "which.md")
    assert link == "[x](../manual/evaluation.md)"
    assert markdown.page_link("x", "nowhere.md", near=tmp_path) == "x"


def test_every_option_in_an_answer_exists() -> None:
    options = {option for question in QUESTIONS for option in question.settings.values()}
    spans = {span for option in options for span in re.findall(r"`(.+?)`", option)}
    assert len(spans) > 20
    for span in spans:
        assert parses(f"ssno train ks {span if span.startswith('--') else f'--model {span}'}")


def test_pages_say_which_results_are_of_the_recipe_before_soap(monkeypatch: pytest.MonkeyPatch) -> None:
    finding = {"settings": {"a": {"data": {"name": "ks"}, "train": {"epochs": 1}}}}
    cloud = {"settings": {"a": {"data": {"name": "kt-foil"}, "train": {"epochs": 1}}}}  # clouds have AdamW still
    now = {"settings": {"a": {"data": {"name": "ks"}, "train": {"optimizer": "soap"}}}}
    known = {"old": finding, "cloud": cloud, "now": now, "cost": {"settings": {}}}
    monkeypatch.setattr(stored, "findings", lambda: known)
    assert "Results of `ssno reproduce`: trained with AdamW" in stored.older_recipe(["now", "old"])
    assert stored.older_recipe(["now", "cloud", "cost", "design.jsonl"]) == ""


def test_stored_cells_have_the_numbers_of_the_printed_table() -> None:
    finding = json.loads((stored.REPRODUCE / "navier-stokes.json").read_text())
    printed = {row[0]: row[3] for row in finding["tables"][0]["rows"]}
    column = stored.comparisons("torus-li")["reproduce/navier-stokes.json", "TorusLi"]
    assert len(column) == 6
    for cell in column:
        assert markdown.over_seeds(cell.summary("rel_l2")).rpartition(" (")[0] == printed[cell.label]
    assert column[0].persistence["rel_l2"] == float(printed["persistence"])


@pytest.mark.parametrize("name", bundled_folders())
def test_every_checkpoint_carries_the_facts_of_its_card(name: str) -> None:
    run = open_run(name)
    assert reported_metrics(run.config) is not None
    assert checkpoints.dataset_name(run) in DATASETS
    assert all(map(parses, checkpoints.usage(name, run).splitlines()))


def test_a_card_is_that_of_publish_measured_beside_trivial_forecasts(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(checkpoints, "TESTED", 2)
    text = checkpoints.checkpoint_page("ks-0.1-64", tmp_path / "checkpoints").read_text()
    assert "Reported with the weights, on 256 test trajectories of ks-0.1-paper, 64 points" in text
    assert "Measured on 2 test trajectories" in text
    assert re.search(r"\| rel\\_l2 \| 0\.0[\d.]+ \| 0\.9", text), "the model's error beside that of persistence"
    assert "The mean error stays below that of the trivial forecasts in every predicted frame." in text
    assert "- Forecasts of 110 steps (5 times as many), two trajectories:" in text
    assert "\n## Units and normalisation\n" in text, "a section of the card of `ssno publish`"
    assert (tmp_path / "checkpoints" / "ks-0.1-64.png").is_file()
    report = (tmp_path / "reports" / "ks-0.1-64.html").read_text()
    assert "2 test trajectories of ks-0.1-paper" in report
    assert not re.search(r"(src|href)=.?https?:", report)
