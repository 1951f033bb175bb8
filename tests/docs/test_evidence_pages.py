"""The pages of docs/evidence say what results/reproduce says, and the command that fills them does."""

import json
import shutil
from pathlib import Path

import pytest

from benchmarks import contest
from ssno.base import write_document
from ssno.cli.main import main
from ssno.paper.page import FORMAT, VERSION, filled, find_places, read_finding, stored_name

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results" / "reproduce"


PAGES = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs" / "evidence").glob("*.md"))}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_every_table_of_the_page_is_the_stored_one(page: Path) -> None:
    made = filled(PAGES[page], RESULTS, places=find_places(PAGES))
    assert made == PAGES[page], "run `ssno reproduce --page docs/evidence`"


def test_the_contest_shows_the_stored_trials() -> None:
    assert contest.block() in PAGES[ROOT / "docs" / "evidence" / "contest.md"], contest.__doc__


def test_the_verdict_of_the_contest_counts_problems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contest, "STORE", tmp_path / "contest.jsonl")
    assert contest.verdict() == "Verdict: not measured yet."
    errors = {
        ("torus-li", "ssno-warp"): [0.10, 0.11, 0.10],
        ("torus-li", "ffno"): [0.20, 0.21, 0.22],
        ("torus-li", "unet"): [0.5],
        ("swe", "ssno-sphere-product"): [0.15, 0.15, 0.14],
        ("swe", "sfno"): [0.10, 0.12, 0.11],
        ("burgers", "ssno-warp"): [0.1],
    }
    lines = [
        {"dataset": problem, "entry": model, "seed": seed, "rel_l2": value}
        for (problem, model), values in errors.items()
        for seed, value in enumerate(values)
    ]
    contest.STORE.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert "on 1 of 2 problems our best model's mean error is below" in contest.verdict()
    assert "(decided on 1), 1.5 times or more on 1." in contest.verdict()
    assert contest.verdict().endswith("nowhere more than 1.1 times above: swe is.")
    assert (
        "| torus-li | 60 | ssno-warp 0.1, 0.11, 0.1 | **ffno 0.2, 0.21, 0.22**; unet 0.5 | 2.03 | " in contest.table()
    )
    assert "burgers" not in contest.table()


def test_every_stored_result_has_its_verdict_in_the_first_lines_of_a_page_and_is_in_the_summary() -> None:
    stored = {path.relative_to(RESULTS).with_suffix("").as_posix() for path in RESULTS.rglob("*.json")}
    assert find_places(PAGES).keys() == stored
    index = PAGES[ROOT / "docs" / "evidence" / "index.md"]
    for name, page in find_places(PAGES).items():
        assert "<!-- verdict " in "".join(PAGES[ROOT / "docs" / "evidence" / page].splitlines()[:4])
        assert f"| [`{name.rpartition('/')[2]}`]({page}), {name.rpartition('/')[0] or 'cpu'} |" in index


@pytest.mark.parametrize("written", ["page.md", "docs/evidence/page.md"])
def test_the_command_collects_and_fills(tmp_path: Path, capsys: pytest.CaptureFixture[str], written: str) -> None:
    made = tmp_path / "made" / "cpu" / "headline"
    made.mkdir(parents=True)
    shutil.copyfile(RESULTS / "headline.json", made / "finding.json")
    for picture in ("dots.png", "shown-nowhere.png"):
        (made / picture).write_bytes(b"picture")
    page = tmp_path / written
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(
        "![](reproduce-dots.png)\n<!-- summary -->\nold\n<!-- end -->\n"
        "<!-- verdict headline -->\n**perhaps**\n<!-- end -->\n"
        "<!-- verdicts headline -->\n| **perhaps** |\n<!-- end -->\n"
        "<!-- repeat headline -->\nperhaps\n<!-- end -->\n"
    )
    main(["reproduce", "--page", str(page.parent if "evidence" in written else page), "--out", str(tmp_path / "made")])
    assert "headline" in capsys.readouterr().out
    assert "| [`headline`](page.md), cpu | 7 | 0 | 1 | 0 | 5 of 7 | SS-NO lowest" in page.read_text()
    assert (
        "**7 of 8 claims hold**, 1 not decidable at this scale (`headline`, scale cpu). 5 of 7 decided"
        in page.read_text()
    )
    assert "Trained with AdamW, as recipe `fast` was before SOAP" in page.read_text()
    assert "ssno reproduce headline\n" in page.read_text()
    assert "| KS 0.1: SS-NO below FFNO | **holds** |" in page.read_text()
    assert "perhaps" not in page.read_text()
    (picture,) = (tmp_path / "docs" / "images").iterdir()
    assert (picture.name, picture.read_bytes()) == ("reproduce-dots.png", b"picture")
    assert (tmp_path / "results" / "reproduce" / "headline.json").is_file()


def test_another_scale_has_its_own_place(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    for scale in ("cpu", "tenth"):
        made = tmp_path / "made" / scale / "cost"
        made.mkdir(parents=True)
        content = {"scale": scale, "verdicts": [], "tables": [{"title": scale, "headings": ["a"], "rows": [["1"]]}]}
        write_document(made / "finding.json", content, format=FORMAT, version=VERSION)
        (made / "cost.png").write_bytes(scale.encode())
        with page.open("a") as text:
            text.write(f"![](reproduce-{stored_name('cost.png', scale).replace('/', '-')})\n")
            text.write(f"<!-- table {stored_name('cost', scale)} 0 -->\n<!-- end -->\n<!-- summary -->\n<!-- end -->\n")
        main(["reproduce", "--page", str(page), "--out", str(tmp_path / "made"), "--scale", scale])
    assert "<!-- table cost 0 -->\ncpu\n" in page.read_text()
    assert "<!-- table tenth/cost 0 -->\ntenth\n" in page.read_text()
    assert page.read_text().count("| `cost`, cpu |") == page.read_text().count("| `cost`, tenth |") == 2
    assert (tmp_path / "docs" / "images" / "reproduce-cost.png").read_bytes() == b"cpu"
    assert (tmp_path / "docs" / "images" / "reproduce-tenth-cost.png").read_bytes() == b"tenth"


def test_a_finding_without_tables_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cost.json").write_text('{"format": "ssno-finding", "version": 1, "verdicts": []}')
    with pytest.raises(
        ValueError, match="cost.json lacks its verdicts, tables or scale. Make it again with `ssno reproduce`"
    ):
        read_finding(tmp_path / "cost.json")
