"""Look at the built site in Chromium:  python docs/scripts/screenshots.py   (after `make docs`; some minutes)

Every kind of page at 1280 and 390 pixels, light and dark, and printed, into build/screenshots; `--pages A B` takes
others. What a program can see is printed and ends with exit code 1: a page that scrolls sideways, text cut off by its
box, pictures that are not there, text below a contrast of 4.5 : 1 (WCAG AA), messages of the console. Whether a page is
beautiful a person has to see: `build/screenshots/*.png`.
"""

import base64
import functools
import http.server
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import tyro

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.browser import Browser, running_driver  # noqa: E402

SITE, SHOTS = ROOT / "site", ROOT / "build" / "screenshots"
PAGES = (
    "index",
    "manual/own-data",
    "manual/training",
    "tutorials/index",
    "tutorials/own-file",
    "gallery/index",
    "gallery/which",
    "gallery/datasets/index",
    "gallery/datasets/torus-li",
    "gallery/datasets/box-turbulence",
    "gallery/models/index",
    "gallery/models/ssno-warp",
    "gallery/models/unet",
    "gallery/checkpoints/torus-li-64",
    "gallery/reports/torus-li-64",
    "coming-from/the-well",
    "reference/index",
    "reference/ssno.layers",
    "evidence/index",
    "evidence/headline",
    "evidence/contest",
    "design/theory",
    "design/performance",
    "live/torus-li-64",
)
"""One of every kind, and those with the widest tables."""
SIZES = {"desktop": (1280, 900), "phone": (390, 844)}
WIDE = """
const page = document.documentElement, out = [];
if (page.scrollWidth > innerWidth + 1) {
  const inside = (e) => { for (let p = e.parentElement; p; p = p.parentElement)
    if (getComputedStyle(p).overflowX !== 'visible') return true; return false; };
  const wide = [...document.body.querySelectorAll('*')].filter(
    (e) => e.getBoundingClientRect().right > innerWidth + 1 && !inside(e));
  out.push(`scrolls sideways: ${page.scrollWidth} px, ${wide.slice(-1).map((e) => e.outerHTML.slice(0, 90))}`);
}
for (const image of document.images)
  if (image.loading !== 'lazy' && !(image.complete && image.naturalWidth)) out.push(`no picture: ${image.src}`);
return out;
"""
FAINT = """
const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
const light = (rgb) => { const [r, g, b] = rgb.slice(0, 3).map((v) => v / 255).map(
  (v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const over = (top, below) => { const a = top[3] ?? 1; return [0, 1, 2].map((i) => a * top[i] + (1 - a) * below[i]); };
const ground = (e) => { const layers = [];
  for (; e; e = e.parentElement) { const c = numbers(getComputedStyle(e).backgroundColor);
    if ((c[3] ?? 1) > 0) layers.push(c); if ((c[3] ?? 1) === 1) break; }
  return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255]); };
const found = {};
for (const e of (document.querySelector('article') ?? document.body).querySelectorAll('*')) {
  if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())) continue;
  const style = getComputedStyle(e), box = e.getBoundingClientRect();
  if (!box.width || style.visibility === 'hidden' || style.opacity < 0.5) continue;
  if (e.closest('svg, canvas, :disabled, .katex')) continue;
  const below = ground(e), [a, b] = [light(over(numbers(style.color), below)), light(below)];
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.7 && style.fontWeight >= 700);
  if (ratio < (large ? 3 : 4.45)) found[`${e.tagName}.${e.className}`.slice(0, 60)] ??=
    `contrast ${ratio.toFixed(1)}: ${e.textContent.trim().slice(0, 40)}`;
}
return Object.entries(found).map(([where, what]) => `${where} ${what}`);
"""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address at which a folder can be read on this machine."""
    quiet = type("Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def look(browser: Browser, address: str, *, dark: bool, shot: Path | None = None, height: int = 0) -> list[str]:
    """Open a page in light or dark mode and say what is wrong with it; `height` limits the picture.

    Take a browser for each mode: the pages of the site remember the one of the page before.
    """
    feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.command("Emulation.setEmulatedMedia", media="", features=[feature])
    browser.post("/url", url=address)
    if shot is not None:
        size = browser.command("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], height or size["height"])}
        taken = browser.command("Page.captureScreenshot", captureBeyondViewport=True, clip={**clip, "scale": 1})
        shot.write_bytes(base64.b64decode(taken["data"]))
    return [*browser.run(WIDE), *browser.run(FAINT), *browser.messages()]


def main(*, pages: tuple[str, ...] = PAGES, height: int = 2400, prints: bool = True) -> None:
    """Look at these pages (names without .html)."""
    SHOTS.mkdir(parents=True, exist_ok=True)
    wrong = 0
    with served(SITE) as home, tempfile.TemporaryDirectory() as place, running_driver(Path(place) / "log") as driver:
        for (size, (width, tall)), dark in product(SIZES.items(), (False, True)):
            browser, mode = Browser(driver, width=width, height=tall), "dark" if dark else "light"
            for page in pages:
                name = page.replace("/", "-")
                shot = SHOTS / f"{name}-{size}-{mode}.png"
                for line in look(browser, f"{home}/{page}.html", dark=dark, shot=shot, height=height):
                    wrong += 1
                    print(f"{page} {size} {mode}: {line}", flush=True)
                if prints and (size, dark) == ("desktop", False):
                    paper = browser.command("Page.printToPDF", printBackground=False)
                    (SHOTS / f"{name}.pdf").write_bytes(base64.b64decode(paper["data"]))
            browser.close()
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    tyro.cli(main)
