"""All experiments by name: every table and figure of the paper that holds results, and our own studies.

Studies are not part of the package: they are in the folder `studies/` of the repository, and are found where the
package is used from a checkout (`pip install --editable .`).
"""

import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from ssno.base import unknown_name
from ssno.paper.airfoils import AIRFOILS
from ssno.paper.cost import COST, COST_2D
from ssno.paper.damping import DAMPING
from ssno.paper.experiment import Experiment
from ssno.paper.sphere import SHALLOW_WATER
from ssno.paper.tables_1d import ABLATION, HEADLINE, MEMORY_WINDOW, RESOLUTION, TEACHER_FORCING, UNIDIRECTIONAL
from ssno.paper.tables_2d import CONTEXT, EULER, FACTORISED, NAVIER_STOKES, TEACHER_FORCING_2D, UNIDIRECTIONAL_2D
from ssno.paper.theorems import FIELD_OF_VIEW, RECOVERY
from ssno.paper.trial import Scale

_LINES = (HEADLINE, ABLATION, DAMPING, UNIDIRECTIONAL)
_PLANES = (UNIDIRECTIONAL_2D, NAVIER_STOKES, EULER, FACTORISED, CONTEXT, TEACHER_FORCING_2D)
_OTHERS = (MEMORY_WINDOW, TEACHER_FORCING, RESOLUTION, COST, COST_2D, RECOVERY, FIELD_OF_VIEW, AIRFOILS, SHALLOW_WATER)
PUBLISHED: Mapping[str, Experiment] = {one.name: one for one in (*_LINES, *_PLANES, *_OTHERS)}


def experiments() -> dict[str, Experiment]:
    """The published results, then the studies of this checkout, if it is one."""
    return {**PUBLISHED, **load_studies(Path(__file__).resolve().parents[3])}


def find_experiment(name: str, *, scale: Scale = "cpu", seeds: int | None = None) -> Experiment:
    """The experiment of a name at a scale."""
    known = experiments()
    if name not in known:
        where = " Our own studies are in `studies/` of the repository: clone it and `pip install --editable .` there."
        raise ValueError(unknown_name(name, list(known)) + where * (len(known) == len(PUBLISHED)))
    return replace(known[name], scale=scale, seeds=seeds)


@cache
def load_studies(root: Path) -> Mapping[str, Experiment]:
    """The studies of a checkout; none for an installed wheel.

    `root` is where this very file comes from and never the working directory, whose files nobody may have meant to run.
    """
    source = root / "studies" / "__init__.py"
    if not (source.is_file() and (root / "pyproject.toml").is_file() and (root / "src" / "ssno").is_dir()):
        return {}
    module = sys.modules.get("studies")
    if module is None or module.__file__ is None or Path(module.__file__).resolve() != source:
        spec = spec_from_file_location("studies", source, submodule_search_locations=[str(source.parent)])
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        sys.modules["studies"] = module
        spec.loader.exec_module(module)
    return module.STUDIES
