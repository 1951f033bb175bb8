"""The README and every page under docs do what they say.

Blocks of a page share one empty folder and one set of Python names, from top to bottom. `python` and `sh` run as they
stand, lines of `text` must have been printed by the block before, and commands in `bash` blocks (too long to run here,
or for other machines) must parse.
"""

import functools
import importlib
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from ssno.cli.main import find_verb, main
from ssno.data.datasets import DATASETS, build_problem
from ssno.models import registry
from ssno.paper.reference import PAPER
from ssno.runs.run import Run

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FOLDERS = (".", "manual", "design", "evidence")
GENERATED = ("gallery", "reference", "live")
PAGES = [ROOT / "README.md", *(page for folder in FOLDERS for page in sorted((DOCS / folder).glob("*.md")))]
SLOW = {"looking.md"}
PRINTED = {
    "devices.md": "True\n",
    "evaluation.md": "Not separable in rel_l2: a (0.2 ± 0.25) and b",
    "own-models.md": "stencil",  # in the table of `ssno models`
    "theory.md": "ssno True 100%\nssno-uni False 52%\n",
    "unrolling.md": "[(1.0, 1), (0.5, 2), (0.0, 4)]\n",
}
LEFT = {
    "README.md": [],
    "data.md": ["data/ks-0.1-mine/manifest.json", "data/heat-array/manifest.json"],
    "evaluation.md": ["results.tex", "runs/seed0/evaluation-128.json"],
    "looking.md": ["next.h5", "far.h5", "runs/look/report.html", "runs/look/inspect/modes-x.png"],
    "own-models.md": ["runs/stencil/report.html"],
    "own-data.md": ["tracer-inspect.png"],
    "formats.md": ["tracer/manifest.json"],
}


def blocks(page: Path) -> list[tuple[str, str]]:
    """Language and text of every block of code."""
    return re.findall(r"^```(\w*)\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def run_block(kind: str, block: str, names: dict[str, object], *, page: str) -> None:
    """Run a block of Python, or the commands of a block for a shell, in this process."""
    if kind == "python":
        exec(compile(block, page, "exec"), names)
    elif kind == "sh":
        for line in block.strip().splitlines():
            words = shlex.split(line, comments=True)[1:]
            with suppress_success():
                main(
                    [
                        found
                        for word in words
                        for found in (sorted(map(str, Path().glob(word))) if "*" in word else [word])
                    ]
                )


@contextmanager
def suppress_success() -> Iterator[None]:
    """Several processes end with their exit code, also with 0."""
    try:
        yield
    except SystemExit as left:
        if left.code:
            raise


def check_parses(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parse a command of ours with the real parser, without running it."""
    words = shlex.split(command, comments=True)
    _, verb, rest = find_verb(words)
    module = importlib.import_module(f"ssno.cli.{verb.module}")
    if verb.raw:
        monkeypatch.setattr(module, "read_run", lambda path: Run())  # the file of --config is the user's
        monkeypatch.setattr(module, "read_description", lambda path: {})
        first, _ = module.first_options(rest)
        assert module.parse(rest).run().model.name == (first.model or "ssno").partition(":")[0]
        return
    called: list[dict[str, object]] = []
    function = functools.wraps(getattr(module, verb.function))(lambda *_, **options: called.append(options))
    monkeypatch.setattr(module, verb.function, function)
    main(words)
    assert len(called) == 1


def squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.name, marks=[pytest.mark.verify] if page.name in SLOW else [])
        for page in PAGES
        if {"python", "sh"} & {kind for kind, _ in blocks(page)}
    ],
)
def test_every_block_runs_and_prints_what_the_page_shows(page: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(registry, "REGISTERED", {})
    monkeypatch.setitem(DATASETS, "kdv", DATASETS["ks"])  # forget afterwards what the page registers
    del DATASETS["kdv"]
    names: dict[str, object] = {"__name__": "__main__"}
    everything = printed = ""
    for kind, block in blocks(page):
        if kind == "text":
            for line in filter(None, map(squeezed, block.splitlines())):
                assert line.startswith("──") or line in squeezed(printed), line
            continue
        run_block(kind, block, names, page=page.name)
        printed = capsys.readouterr().out
        everything += printed
    assert PRINTED.get(page.name, "") in everything
    if page.name == "README.md":
        assert 0 < float(everything.split()[-1]) < 0.03, "the error that the page promises"
    assert [path for path in LEFT.get(page.name, []) if not (tmp_path / path).is_file()] == []


def commands_on(page: Path) -> list[str]:
    """The commands of ours in blocks for a shell."""
    shell = "\n".join(block for kind, block in blocks(page) if kind in ("bash", "sh"))
    return [
        line.removesuffix(" &") for line in re.findall(r"^(?:\w+=\S+ |torchrun .* -m )?ssno (.+)$", shell, re.MULTILINE)
    ]


@pytest.mark.parametrize(
    ("page", "command"),
    [(page, command) for page in PAGES for command in commands_on(page)],
    ids=lambda part: str(part)[-60:],
)
def test_every_command_parses(page: Path, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check_parses(command, monkeypatch)


def test_the_readme_looks_at_the_run_that_it_trains() -> None:
    commands = commands_on(ROOT / "README.md")
    (dataset,) = (line.split()[1] for line in commands if line.startswith("train "))
    looked_at = {name for line in commands for name in re.findall(r"runs/([\w.-]+)", line) if "compare" not in line}
    assert looked_at == {f"{dataset}-ssno"}


def test_the_readme_scores_trajectories_that_it_did_not_train_on(monkeypatch: pytest.MonkeyPatch) -> None:
    train, evaluate = MagicMock(), MagicMock()
    monkeypatch.setattr("ssno.train", train)
    monkeypatch.setattr("ssno.evaluate", evaluate)
    monkeypatch.setattr("ssno.rollout", MagicMock())
    (program,) = (block for kind, block in blocks(ROOT / "README.md") if kind == "python")
    exec(program, {})
    trained, scored = train.call_args.args[1], evaluate.call_args.args[1]
    assert not set(trained.rows[:, 1]) & set(scored.rows[:, 1])
    assert len(program.strip().splitlines()) <= 12


@pytest.mark.parametrize("page", sorted(DOCS.glob("*/*.md")), ids=lambda p: f"{p.parent.name}-{p.name}")
def test_pages_are_short(page: Path) -> None:
    """A page of the manual is one idea; others may be longer, generated tables excepted."""
    limit = 150 if page.parent.name == "manual" else 300
    assert page.parent.name in GENERATED or len(page.read_text(encoding="utf-8").splitlines()) <= limit


def test_every_dataset_is_on_the_page_with_its_sizes() -> None:
    page = (ROOT / "docs" / "manual" / "data.md").read_text(encoding="utf-8").partition("## Datasets and sizes")[2]
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| `") and "/" in line]
    listed = {name: row for row in rows for name in re.findall(r"`([\w-]+)`", row[0]) if len(row) == 6}
    assert listed.keys() == DATASETS.keys()
    for name, row in listed.items():
        for preset, cell in zip(("tiny", "small", "paper"), row[2:5], strict=True):
            size = DATASETS[name].sizes[preset]
            assert cell.split()[0] == f"{size.train}/{size.valid or '-'}/{size.test}", (name, preset)
        problem = build_problem(name, "paper")
        grid = " x ".join(str(axis.points) for axis in problem.axes)
        assert row[5] == (f"{grid} points" if name == "kt-foil" else f"{len(problem.times)} x {grid}"), name


@pytest.mark.parametrize("page", [*PAGES, *ROOT.glob("[A-QS-Z]*.md")], ids=lambda p: f"{p.parent.name}-{p.name}")
def test_links_lead_to_files_and_pictures_are_small(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        generated = any((page.parent / target).resolve().is_relative_to(DOCS / folder) for folder in GENERATED)
        if "://" not in target and not generated:
            assert (page.parent / target).exists(), target
            if target.endswith((".png", ".gif")):
                assert 5_000 < (page.parent / target).stat().st_size < 2e6, target


@pytest.mark.parametrize(
    "name", ["README.md", "docs/evidence/index.md", "docs/design/theory.md", "docs/manual/models.md"]
)
def test_the_paper_is_cited_as_the_citation_file_says(name: str) -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8").partition("preferred-citation")[2]
    known = dict(re.findall(r'^ +(title|journal|year|url): "?(.*?)"?$', citation, re.MULTILINE))
    page = " ".join((ROOT / name).read_text(encoding="utf-8").split())
    assert known["title"] in page
    assert known["url"] in page
    assert known["year"] in page
    assert (known["title"] in PAPER, known["journal"] in PAPER, known["year"] in PAPER) == (True, True, True)
