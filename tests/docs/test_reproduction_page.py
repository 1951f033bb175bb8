"""REPRODUCTION.md says what results/reproduce says, and the command that fills it does."""

import shutil
from pathlib import Path

import pytest

from ssno.base import write_document
from ssno.cli.main import main
from ssno.paper.page import FORMAT, VERSION, filled, read_finding, stored_name

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results" / "reproduce"


@pytest.mark.parametrize("page", ["REPRODUCTION.md", "docs/manual/training.md", "docs/manual/own-data.md"])
def test_every_table_of_the_page_is_the_stored_one(page: str) -> None:
    written = (ROOT / page).read_text(encoding="utf-8")
    assert filled(written, RESULTS) == written, "run `ssno reproduce --page REPRODUCTION.md`"


@pytest.mark.parametrize("written", ["page.md", "docs/page.md"])
def test_the_command_collects_and_fills(tmp_path: Path, capsys: pytest.CaptureFixture[str], written: str) -> None:
    made = tmp_path / "made" / "cpu" / "headline"
    made.mkdir(parents=True)
    shutil.copyfile(RESULTS / "headline.json", made / "finding.json")
    for picture in ("dots.png", "shown-nowhere.png"):
        (made / picture).write_bytes(b"picture")
    page = tmp_path / written
    page.parent.mkdir(exist_ok=True)
    page.write_text(
        "![](reproduce-dots.png)\n<!-- summary -->\nold\n<!-- end -->\n"
        "<!-- verdicts headline -->\n| **perhaps** |\n<!-- end -->\n"
    )
    main(["reproduce", "--page", str(page), "--out", str(tmp_path / "made")])
    assert "headline" in capsys.readouterr().out
    assert "| `headline`, cpu |" in page.read_text()
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
