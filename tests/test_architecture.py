"""Packages point one way: a lower package never imports a higher one. A design note maps them, and src stays small."""

import ast
import re
from collections import defaultdict
from dataclasses import fields, is_dataclass
from importlib import import_module
from inspect import getsourcefile
from pathlib import Path

from ssno.data.datasets import DATASETS
from ssno.data.load import DataOptions
from ssno.data.windows import Window
from ssno.layers.axial import BlockOptions
from ssno.layers.memory import MemoryOptions
from ssno.layers.modes import ModeOptions
from ssno.models.registry import ALL_MODELS, model_config
from ssno.runs.options import TrainOptions, Unrolling

SOURCE = Path(__file__).parents[1] / "src" / "ssno"
MAP = SOURCE.parents[1] / "docs" / "design" / "code.md"
# Python in src: lines are lowered as it shrinks, to the 35,500 of CONTRIBUTING.md.
MOST_FILES, MOST_LINES = 250, 46_400

# What each package may import of ours. Two towers, ssm -> layers -> models and pde -> data, meet in `forecasting`.
ALLOWED: dict[str, set[str]] = {
    "base": set(),
    "native": {"base"},
    "transforms": set(),
    "ssm": {"native", "base"},
    "layers": {"ssm", "native", "base", "transforms"},
    "models": {"layers", "ssm", "native", "base", "transforms"},
    "pde": {"native", "transforms", "base"},
    "data": {"pde", "base", "transforms"},
    "theory": {"models", "layers", "ssm", "native", "base"},
}
BELOW_TRAINING = {"models", "layers", "ssm", "native", "pde", "data", "base", "transforms"}
ALLOWED["forecasting"] = BELOW_TRAINING
ALLOWED["runs"] = BELOW_TRAINING | {"forecasting"}
ALLOWED["export"] = ALLOWED["runs"] | {"runs"}
ALLOWED["training"] = ALLOWED["runs"] | {"runs"}
ALLOWED["evaluation"] = ALLOWED["runs"] | {"runs"}
ALLOWED["plots"] = ALLOWED["evaluation"] | {"evaluation"}
ALLOWED["report"] = ALLOWED["plots"] | {"plots"}
ALLOWED["paper"] = ALLOWED["report"] | {"report", "training", "theory"}
ALLOWED["cli"] = ALLOWED["paper"] | {"paper", "export"}


def package_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def our_imports(path: Path) -> set[str]:
    """Top-level packages of ours that a file imports; `ssno` itself counts as "ssno"."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import; write the whole module name"
            module = node.module or ""
            names = [f"ssno.{alias.name}" for alias in node.names] if module == "ssno" else [module]
        else:
            continue
        found |= {[*name.split("."), "ssno"][1] for name in names if name.split(".")[0] == "ssno"}
    return found


def test_lower_packages_never_import_higher_ones() -> None:
    offences = []
    for path in sorted(SOURCE.rglob("*.py")):
        package = package_of(path)
        if package in {"__init__", "__main__"}:
            continue
        assert package in ALLOWED, f"{path}: say in ALLOWED what the new package {package!r} may import"
        for imported in our_imports(path) - {package} - ALLOWED[package]:
            offences.append(f"{path.relative_to(SOURCE)} imports ssno.{imported}")
    assert not offences, offences


def test_the_map_lists_every_package_once_below_what_it_imports() -> None:
    listed = re.findall(r"^\| `ssno\.(\w+)` \|", MAP.read_text(), flags=re.M)
    assert sorted(listed) == sorted(path.parent.name for path in SOURCE.glob("*/__init__.py"))
    assert not [name for place, name in enumerate(listed) if not ALLOWED[name] <= set(listed[:place])]


def test_the_map_answers_where_things_are_in_at_most_three_files() -> None:
    section = MAP.read_text().partition("## Where is ...")[2].partition("\n## ")[0]
    answers = [re.findall(r"\]\(([^)#]+)", line) for line in section.splitlines() if "](" in line]
    assert len(answers) == 5
    assert all(1 <= len(files) <= 3 and all((MAP.parent / name).is_file() for name in files) for files in answers)


def test_src_stays_within_its_counts() -> None:
    paths = list(SOURCE.rglob("*.py"))
    assert len(paths) <= MOST_FILES
    assert sum(len(path.read_text().splitlines()) for path in paths) <= MOST_LINES


def test_a_public_name_means_one_thing() -> None:
    meanings = defaultdict(set)
    for path in sorted(SOURCE.glob("*/__init__.py")):
        package = import_module(f"ssno.{path.parent.name}")
        for name in package.__all__:
            meanings[name].add(id(getattr(package, name)))
    assert not [name for name, found in meanings.items() if len(found) > 1]


def test_a_class_has_a_name_of_its_own() -> None:
    homes = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        if path == SOURCE / "models" / "reference.py":  # the whole network in one file, with its own small classes
            continue
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(str(path.relative_to(SOURCE)))
    assert not {name: paths for name, paths in homes.items() if len(paths) > 1}


RUN_FILES = {"config.json", "model.safetensors", "metrics.jsonl", "evaluation.json", "report.html", "trial.json"}
RUN_FOLDERS = {"last", "best", "rollout", "inspect", "tensorboard"}


def named_run_files(source: str) -> list[str]:
    """Files of a run that a module names itself: as a whole string, or as the last step of a path."""
    texts = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.BinOp | ast.Constant)]
    steps = [node.right for node in texts if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)]
    found = [node.value for node in texts if isinstance(node, ast.Constant) and node.value in RUN_FILES]
    return found + [node.value for node in steps if isinstance(node, ast.Constant) and node.value in RUN_FOLDERS]


def test_the_files_of_a_run_are_named_in_one_package() -> None:
    owners = {SOURCE / "models" / "pretrained.py", *(SOURCE / "runs").glob("*.py")}
    offences = {path: found for path in SOURCE.rglob("*.py") if (found := named_run_files(path.read_text()))}
    assert not {path: found for path, found in offences.items() if path not in owners}
    assert named_run_files('a / "last" / "config.json"; open("trial.json")') == ["config.json", "trial.json", "last"]


def test_one_module_asks_what_the_launcher_said() -> None:
    asking = [path for path in SOURCE.rglob("*.py") if re.search(r"\"(LOCAL_)?(RANK|WORLD_SIZE)\"", path.read_text())]
    assert asking == [SOURCE / "base" / "distributed_env.py"]


def test_names_from_files_are_shown_through_our_own_console_and_figure() -> None:
    owners = {SOURCE / "base" / "terminal.py", SOURCE / "plots" / "style.py", SOURCE / "theory" / "figures.py"}
    others = [path for path in SOURCE.rglob("*.py") if path not in owners]
    assert not [path for path in others if "rich.console" in (text := path.read_text()) or "rich.markup" in text]
    drawing = [path for path in others if re.search(r"\bFigure\(", path.read_text())]
    assert len(drawing) > 6
    assert not [path for path in drawing if "matplotlib.figure" in path.read_text()]


def test_geometries_are_asked_and_not_compared_by_name() -> None:
    compared = re.compile(r"grid_type (==|!=|in|not in) |geometry(\.name)? (==|!=) ")
    assert not [path for path in SOURCE.rglob("*.py") if compared.search(path.read_text())]


def test_the_walk_sees_a_forbidden_import(tmp_path: Path) -> None:
    offender = tmp_path / "offender.py"
    offender.write_text("from ssno.models.ssno import SSNO\nimport ssno.training.loop\nfrom ssno import data\n")
    assert our_imports(offender) == {"models", "training", "data"}


WANTED = {
    "grad_clip": "clipping of gradients, which users expect",
    "patience": "early stopping, which users expect",
    "score_last": "the only way to compare windows of different length on the same frames, and the error says so",
    "cfl": "the time step of a finite-volume solver",
    "waves": "of a random initial state",
    "lmax": "of a random initial state",
    "spots": "of a random initial state",
    "drift": "a parameter of the equation",
    "lowest_viscosity": "a parameter of the equation",
    "highest_viscosity": "a parameter of the equation",
    "diffusivity_u": "a parameter of the equation",
    "diffusivity_v": "a parameter of the equation",
    "lowest_feed": "a parameter of the equation",
    "highest_feed": "a parameter of the equation",
    "kill": "a parameter of the equation",
    "mix_channels": "fno-r differs from fno in it",
    "blocks_per_level": "the tiny size sets it",
    "lattice": "the tiny size sets it",
    "scale_factor": "the public configurations of SFNO differ in it",
    "directions": "docs/manual/airfoils.md counts it",
    "sharing": "docs/manual/airfoils.md counts it",
}
"""Options that nothing outside their own file and the tests sets, and why they stay."""
SET = re.compile(r"--([\w.-]+)|(\w+)=(?!=)|[\"'`]([\w.-]+)[\"'`]")


def names_set_in(path: Path) -> set[str]:
    """Last parts of the names that a file sets or mentions: `name=`, "section.name", `name`, --section.name."""
    found = (next(filter(None, groups)) for groups in SET.findall(path.read_text()))
    return {name.lstrip("-").rpartition(".")[2].replace("-", "_") for name in found}


def test_every_option_is_set_somewhere() -> None:
    root = SOURCE.parents[1]
    folders = ("src/ssno/paper", "studies", "benchmarks", "examples", "docs")
    paths = [path for folder in folders for kind in ("py", "md") for path in (root / folder).rglob(f"*.{kind}")]
    mentioned = {path: names_set_in(path) for path in (*paths, root / "README.md")}
    kinds = [TrainOptions, Unrolling, Window, DataOptions, ModeOptions, MemoryOptions, BlockOptions]
    kinds += [type(model_config(name)) for name in ALL_MODELS] + [dataset.problem for dataset in DATASETS.values()]
    unset = set()
    for kind in {base for one in kinds for base in one.__mro__ if is_dataclass(base)}:
        home = Path(str(getsourcefile(kind)))
        elsewhere = set().union(*(names for path, names in mentioned.items() if path != home))
        unset |= {field.name for field in fields(kind) if field.name in kind.__annotations__} - elsewhere
    assert not unset - set(WANTED), "say in WANTED why these options stay, or remove them"
