"""The tests that `make test` leaves out, file by file; and all tests at the lowest versions that are allowed."""

import os
import re
import subprocess
import sys
import tempfile
import tomllib
from functools import cache
from pathlib import Path

from verify.campaign import Counts, Unavailable

ROOT = Path(__file__).parents[1]
FLOOR_FOLDERS = ("base", "data", "ssm", "transforms", "pde", "layers", "models", "runs", "forecasting", "plots", "cli")
MARK = "mark" + ".verify"
PINNED = ("torch",)  # its floor is tried by hand (CONTRIBUTING.md): a wheel of 200 MB that everything else depends on


@cache
def marked() -> list[str]:
    """Files with tests that are marked `verify`."""
    found = [path for path in sorted((ROOT / "tests").rglob("test_*.py")) if MARK in path.read_text()]
    return [str(path.relative_to(ROOT)) for path in found]


def run_marked(number: int, place: Path) -> Counts:
    """Those of one file."""
    return tested(["-m", "verify", marked()[number]], place)


def tested(words: list[str], place: Path, **environment: str) -> Counts:
    """What pytest says."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--basetemp", str(place / "tests"), *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, **environment})
    last = (done.stdout.strip().splitlines() or [""])[-1]
    counts = {name: int(count) for count, name in re.findall(r"(\d+) (passed|skipped|failed|error)", last)}
    if done.returncode != 0:
        lines = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "E  "))]
        raise AssertionError(f"{words[-1]}: {' '.join(lines[:3]) or done.stdout[-500:] or done.stderr[-500:]}")
    return counts


def floors() -> list[str]:
    """Our dependencies at the lowest versions that pyproject.toml allows."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pairs = [re.match(r"([\w-]+)>=([\d.]+)", one) for one in project["dependencies"]]
    return [f"{pair[1]}=={pair[2]}" for pair in pairs if pair and pair[1] not in PINNED]


@cache
def floor_packages() -> Path:
    """A folder with those versions, to stand before all others."""
    place = Path(tempfile.gettempdir()) / f"ssno-verify-floors-{os.getuid()}"
    if not (place / "complete").exists():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(place), *floors()]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise Unavailable(
                f"the lowest versions cannot be installed here ({done.stderr.strip().splitlines()[-1][:200]})"
            )
        (place / "complete").touch()
    return place


def run_at_floors(number: int, place: Path) -> Counts:
    """The tests of one folder with the lowest versions."""
    path = f"{floor_packages()}:{ROOT / 'src'}:{ROOT}"
    warnings = ["-W", "default"]  # old versions warn of other things
    return tested([*warnings, f"tests/{FLOOR_FOLDERS[number]}"], place, PYTHONPATH=path)
