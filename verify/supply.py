"""What ssno is made of: every package that an installation brings, with version and licence.

    python -m verify.supply          writes .github/constraints.txt, .github/floors.txt and results/verify/sbom.cdx.json

The constraints pin what CI installs to the versions of this environment, the floors to the lowest that pyproject.toml
allows; the bill of materials (CycloneDX 1.5) lists packages with licences.
"""

import json
import re
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from ssno.base.provenance import package_version
from verify.tests import floors

ROOT = Path(__file__).parents[1]
EXTRAS = ("", "test", "docs")
CONSTRAINTS, FLOORS = ROOT / ".github" / "constraints.txt", ROOT / ".github" / "floors.txt"
MATERIALS = ROOT / "results" / "verify" / "sbom.cdx.json"


def closure(name: str = "ssno", extras: tuple[str, ...] = EXTRAS) -> dict[str, Distribution]:
    """All packages that one needs, by normalised name, as far as they are installed."""
    found: dict[str, Distribution] = {}
    asked: set[tuple[str, str]] = set()
    todo = [(name, extra) for extra in extras]
    while todo:
        package, extra = todo.pop()
        package = normalised(package)
        if (package, extra) in asked:
            continue
        asked.add((package, extra))
        try:
            one = distribution(package)
        except PackageNotFoundError:
            continue
        found[package] = one
        for text in one.requires or []:
            wanted = Requirement(text)
            if wanted.marker is None or wanted.marker.evaluate({"extra": extra}):
                todo += [(wanted.name, inner) for inner in ("", *wanted.extras)]
    found.pop(normalised(name), None)
    return dict(sorted(found.items()))


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def licence(one: Distribution) -> str:
    """What a package says about its licence: an SPDX expression, a classifier, or the first line of the text."""
    metadata = one.metadata
    classifiers = [c.rsplit(" :: ", 1)[-1] for c in metadata.get_all("Classifier") or [] if c.startswith("License ::")]
    stated = metadata["License-Expression"] or (classifiers and "; ".join(classifiers)) or metadata["License"] or ""
    return stated.strip().splitlines()[0][:80] if stated.strip() else "see its files"


def version_of(one: Distribution) -> str:
    """Without the local part that a build of PyTorch has."""
    return one.version.partition("+")[0]


def materials() -> dict[str, Any]:
    """The bill of materials."""
    shipped = set(closure(extras=("",)))
    components = [
        {
            "type": "library",
            "name": name,
            "version": version_of(one),
            "purl": f"pkg:pypi/{name}@{version_of(one)}",
            "scope": "required" if name in shipped else "optional",
            "licenses": [{"license": {"name": licence(one)}}],
        }
        for name, one in closure().items()
    ]
    ours = {"type": "library", "name": "ssno", "version": package_version(), "licenses": [{"license": {"id": "MIT"}}]}
    return {"bomFormat": "CycloneDX", "specVersion": "1.5", "metadata": {"component": ours}, "components": components}


def main() -> None:
    """Write all three."""
    pins = [f"{name}=={version_of(one)}" for name, one in closure().items() if name != "torch"]  # the Makefile pins it
    CONSTRAINTS.write_text("# Versions that CI installs. Made by: python -m verify.supply\n" + "\n".join(pins) + "\n")
    FLOORS.write_text("# The lowest versions that pyproject.toml allows. Made likewise.\n" + "\n".join(floors()) + "\n")
    MATERIALS.parent.mkdir(parents=True, exist_ok=True)
    MATERIALS.write_text(json.dumps(materials(), indent=1) + "\n")


if __name__ == "__main__":
    main()
