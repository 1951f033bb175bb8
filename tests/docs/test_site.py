"""The site: every page is in the navigation, nothing is fetched from elsewhere, the front page moves."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from docs.scripts import site
from PIL import Image

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FETCHED = {
    "img": "src",
    "script": "src",
    "link": "href",
    "source": "src",
    "video": "src",
    "iframe": "src",
    "object": "data",
}


def pages_of(entry: object) -> list[str]:
    """The pages of a part of the navigation."""
    if isinstance(entry, str):
        return [entry]
    parts = entry.values() if isinstance(entry, dict) else entry
    return [page for part in parts for page in pages_of(part)]


def test_the_navigation_reaches_every_page_once() -> None:
    written = [path for path in DOCS.rglob("*.md") if path.relative_to(DOCS).parts[0] != "scripts"]
    assert sorted(pages_of(site.navigation(DOCS))) == sorted(path.relative_to(DOCS).as_posix() for path in written)


def test_links_to_files_of_the_repository_lead_to_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site, "STAGED", tmp_path)
    text = "[a](../../pyproject.toml#x) [`b`](data.md) [c](../../src) ![d](../images/play.png) [e](https://e.org)\n"
    code = "```\n[f](../../pyproject.toml)\n```\n"
    assert site.linked(text + code, DOCS / "manual" / "x.md") == (
        text.replace("../../pyproject.toml#x", "../files/pyproject.toml").replace("[c](../../src)", "c") + code
    )
    assert (tmp_path / "files" / "pyproject.toml").is_file()


def test_nothing_is_fetched_by_the_theme_or_by_our_assets() -> None:
    settings = (ROOT / "properdocs.yml").read_text(encoding="utf-8")
    assert "font: false" in settings
    assert "://" not in settings
    for path in (DOCS / "assets").rglob("*.css"):
        for target in re.findall(r"url\(([^)]+)\)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).is_file(), target
    assert "MIT" in (DOCS / "assets" / "katex" / "LICENSE").read_text(encoding="utf-8")


def test_the_front_page_moves_and_shows_two_commands_before_anything_else() -> None:
    page = (DOCS / "index.md").read_text(encoding="utf-8")
    first = page.partition("\n## ")[0]
    (commands,) = re.findall(r"^```bash\n(.*?)^```", first, re.DOTALL | re.MULTILINE)
    assert len(commands.splitlines()) == 2
    assert "(images/front.webp)" in first
    assert page.count("2512.11686") == 2, "the other SSNO is named once: its number and its address"
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120
    picture = DOCS / "images" / "front.webp"
    assert picture.stat().st_size < 1.5e6
    with Image.open(picture) as moving:
        assert moving.n_frames > 10


def test_every_picture_has_an_alternative_text() -> None:
    """On generated pages, too, where they are there."""
    pictures = [
        (str(path), text, target)
        for path in [ROOT / "README.md", *DOCS.rglob("*.md")]
        for text, target in re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", site.CODE.sub("", path.read_text(encoding="utf-8")))
    ]
    assert len(pictures) > 50
    assert [(page, target) for page, text, target in pictures if len(text.split()) < 3] == []


class Requests(HTMLParser):
    """Addresses that a page makes a browser fetch."""

    def __init__(self, page: Path):
        super().__init__()
        self.found: list[str] = []
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        if tag != "link" or known.get("rel") != "canonical":
            self.found += [known[FETCHED[tag]] or ""] if FETCHED.get(tag) in known else []


@pytest.mark.verify
def test_the_site_is_built_strictly_and_asks_no_other_host(tmp_path: Path) -> None:
    """In an environment of its own: ours, and the packages of the extra `docs`."""
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    (ours,) = {path for path in sys.path if path.endswith("site-packages")}
    next((tmp_path / "venv").glob("lib/*/site-packages")).joinpath("ours.pth").write_text(ours)
    extra = re.search(r"^docs = \[(.*)\]$", (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert extra is not None
    subprocess.run([python, "-m", "pip", "install", "--quiet", *re.findall(r'"(.*?)"', extra[1])], check=True)
    subprocess.run([python, DOCS / "scripts" / "site.py"], check=True, cwd=ROOT)
    pages = list((ROOT / "site").rglob("*.html"))
    assert len(pages) > 100
    for page in pages:
        assert not [target for target in Requests(page).found if re.match(r"(https?:)?//", target)], page
    for sheet in (ROOT / "site").rglob("*.css"):
        assert not re.findall(r"url\(['\"]?(?:https?:)?//|@import", sheet.read_text(encoding="utf-8")), sheet
