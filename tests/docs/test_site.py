"""The site: every page is in the navigation, nothing is fetched from elsewhere, the front page moves."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from docs.scripts import screenshots, site
from PIL import Image
from tests.browser import Browser, running_driver

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


def test_a_tutorial_links_to_its_notebook(tmp_path: Path) -> None:
    page = tmp_path / "tutorials" / "x.md"
    assert site.with_notebook("# X\n\nText.\n", page) == "# X\n\nText.\n"
    (page.parent / "notebooks").mkdir(parents=True)
    (page.parent / "notebooks" / "x.ipynb").touch()
    found = site.with_notebook("# X\n\nText.\n", page)
    assert found == "# X\n\n[This page as a notebook](notebooks/x.ipynb){ download }\n\nText.\n"


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


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """The site, built strictly in an environment of its own: ours, and the packages of the extra `docs`."""
    place = tmp_path_factory.mktemp("site")
    python = place / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", place / "venv"], check=True)
    (ours,) = {path for path in sys.path if path.endswith("site-packages")}
    next((place / "venv").glob("lib/*/site-packages")).joinpath("ours.pth").write_text(ours)
    extra = re.search(r"^docs = \[(.*)\]$", (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert extra is not None
    subprocess.run([python, "-m", "pip", "install", "--quiet", *re.findall(r'"(.*?)"', extra[1])], check=True)
    subprocess.run([python, DOCS / "scripts" / "site.py"], check=True, cwd=ROOT)
    return ROOT / "site"


@pytest.mark.verify
def test_the_site_asks_no_other_host(built: Path) -> None:
    pages = list(built.rglob("*.html"))
    assert len(pages) > 100
    for page in pages:
        assert not [target for target in Requests(page).found if re.match(r"(https?:)?//", target)], page
    for sheet in built.rglob("*.css"):
        assert not re.findall(r"url\(['\"]?(?:https?:)?//|@import", sheet.read_text(encoding="utf-8")), sheet


ON_SCREEN = """
const inside = (e) => { const box = e.getBoundingClientRect();
  return box.top >= 0 && box.bottom <= innerHeight && box.left >= 0 && box.right <= innerWidth; };
return [inside(document.querySelector('img[src$="front.webp"]')), inside(document.querySelector('main pre code'))];
"""


@pytest.mark.verify
def test_a_phone_shows_movement_and_both_commands_before_it_scrolls(built: Path, tmp_path: Path) -> None:
    with screenshots.served(built) as home, running_driver(tmp_path / "log") as driver:
        browser = Browser(driver, width=390, height=844)
        try:
            assert screenshots.look(browser, f"{home}/index.html", dark=False) == []
            assert browser.run(ON_SCREEN) == [True, True]
        finally:
            browser.close()


@pytest.mark.verify
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("size", list(screenshots.SIZES))
def test_no_kind_of_page_scrolls_sideways_is_faint_or_lacks_a_picture(
    built: Path, tmp_path: Path, size: str, dark: bool
) -> None:
    width, height = screenshots.SIZES[size]
    with screenshots.served(built) as home, running_driver(tmp_path / "log") as driver:
        browser = Browser(driver, width=width, height=height)
        try:
            seen = {page: screenshots.look(browser, f"{home}/{page}.html", dark=dark) for page in screenshots.PAGES}
            assert {page: found for page, found in seen.items() if found} == {}
        finally:
            browser.close()
