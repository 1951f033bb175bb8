"""Build the documentation site into site/:  python docs/scripts/site.py  (`make docs`).

    python docs/scripts/site.py --no-generate    with the generated pages of the last time

Three steps: generate pages (gallery, API reference, notebooks, and `ssno play` for bundled checkpoints), copy all to
build/docs, build that strictly. In the copy, links to files of the repository that are no pages lead to copies of
them, and a tutorial links to its notebook.
The navigation is made from the index.md of each section: its headings are the groups, its links the pages.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import tyro

ROOT = Path(__file__).parents[2]
DOCS, STAGED, SITE = ROOT / "docs", ROOT / "build" / "docs", ROOT / "site"
LIVE = ("ks-attractor-64", "ks-0.1-64", "burgers-64", "torus-li-64")
"""Bundled checkpoints with a page on which they run in the browser."""
SECTIONS = {
    "Manual": "manual",
    "Tutorials": "tutorials",
    "Coming from": "coming-from",
    "Gallery": "gallery",
    "Reference": "reference",
    "Evidence": "evidence",
    "Design notes": "design",
}
LEFT_OUT = ("scripts", "__pycache__")
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
CODE = re.compile(r"(^```.*?^```)", re.DOTALL | re.MULTILINE)

Navigation = list["dict[str, str | Navigation] | str"]


def main(*, generate: bool = True) -> None:
    """Generate, copy, build.

    Args:
        generate: make the generated pages anew.
    """
    if generate:
        make_pages()
    began = time.monotonic()
    stage()
    config = ROOT / "build" / "properdocs.yml"
    settings = {"INHERIT": "../properdocs.yml", "site_dir": "../site", "nav": navigation(STAGED)}
    config.write_text(json.dumps(settings, indent=1), encoding="utf-8")  # JSON is YAML
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    build = subprocess.run([sys.executable, "-m", "properdocs", "build", "-f", config, "--strict"], env=quiet)
    if build.returncode:
        sys.exit("The site was not built: see the warnings above.")
    print(f"{SITE / 'index.html'}, built in {time.monotonic() - began:.0f} s")


def make_pages() -> None:
    """Write what comes from code and checkpoints into docs, where git ignores it."""
    for script in ("gallery.py", "reference.py", "notebooks.py"):
        subprocess.run([sys.executable, DOCS / "scripts" / script], check=True, cwd=ROOT)
    (DOCS / "live").mkdir(exist_ok=True)
    for name in LIVE:
        subprocess.run([sys.executable, "-m", "ssno", "play", name, "-o", DOCS / "live" / f"{name}.html"], check=True)


def stage() -> None:
    """Copy docs to build/docs, with links that a site can follow."""
    if STAGED.exists():
        shutil.rmtree(STAGED)
    for path in sorted(DOCS.rglob("*")):
        place = STAGED / path.relative_to(DOCS)
        if path.is_dir() or any(part in LEFT_OUT or part.startswith(".") for part in path.relative_to(DOCS).parts):
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            place.write_text(with_notebook(linked(path.read_text(encoding="utf-8"), path), path), encoding="utf-8")
        else:
            shutil.copyfile(path, place)


def linked(text: str, page: Path) -> str:
    """The text of a page whose links to files outside the site lead to copies in files/, code left alone."""

    def replace(match: re.Match[str]) -> str:
        target = (page.parent / match[3]).resolve()
        inside = target.is_relative_to(DOCS) and target.relative_to(DOCS).parts[0] not in LEFT_OUT
        if "://" in match[3] or inside or not target.is_relative_to(ROOT):
            return match[0]
        if not target.is_file():  # a folder of the repository
            return match[2]
        copy = STAGED / "files" / target.relative_to(ROOT)
        copy = copy.with_name(copy.name + ".txt") if copy.suffix == ".md" else copy
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(target, copy)
        place = STAGED / page.relative_to(DOCS).parent
        return f"{match[1]}[{match[2]}]({os.path.relpath(copy, place)})"

    return "".join(part if CODE.fullmatch(part) else LINK.sub(replace, part) for part in CODE.split(text))


def with_notebook(text: str, page: Path) -> str:
    """The text of a tutorial with a link to its notebook below the heading."""
    notebook = page.parent / "notebooks" / f"{page.stem}.ipynb"
    if page.parent.name != "tutorials" or not notebook.is_file():
        return text
    heading, rest = text.split("\n", 1)
    return f"{heading}\n\n[This page as a notebook](notebooks/{notebook.name}){{ download }}\n{rest}"


def navigation(docs: Path) -> Navigation:
    """The front page, and the sections that there are."""
    sections = {title: docs / folder for title, folder in SECTIONS.items() if (docs / folder / "index.md").exists()}
    return [{"Start": "index.md"}, *({title: section(folder, docs)} for title, folder in sections.items())]


def section(folder: Path, docs: Path) -> Navigation:
    """The index, then the pages of no other section that it links, in that order and grouped by its headings."""
    found: Navigation = [f"{folder.name}/index.md"]
    group, seen = found, {folder / "index.md"}
    text = CODE.sub("", (folder / "index.md").read_text(encoding="utf-8"))
    for line in text.splitlines():
        if line.startswith("## "):
            group = []
            found.append({line[3:].strip(): group})
        for match in LINK.finditer(line):
            page = Path(os.path.normpath(folder / match[3]))
            others = {docs / name for name in SECTIONS.values()} - {folder}
            if page.suffix == ".md" and page not in seen and page.is_file() and others.isdisjoint(page.parents):
                seen.add(page)
                group.append(page.relative_to(docs).as_posix())
    return [entry for entry in found if isinstance(entry, str) or all(entry.values())]


if __name__ == "__main__":
    tyro.cli(main)
