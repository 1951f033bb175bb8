"""Trajectories: generated, read from files, normalised, divided and windowed. Built on `ssno.pde`."""

from ssno.data.context import choose_context
from ssno.data.convert import convert_data
from ssno.data.datasets import DATASETS, Plan, Size, build_plan, build_problem, register_problem
from ssno.data.envelope import Climatology
from ssno.data.errors import DataError
from ssno.data.generation import GenerationReport, generate
from ssno.data.grids import Reduction
from ssno.data.load import DataOptions, load_dataset
from ssno.data.manifest import Verification, verify
from ssno.data.normalise import AffineMap, Normaliser, Normalisers, fit
from ssno.data.readers.inspection import Inspection, inspect_data
from ssno.data.readers.registry import ReadOptions
from ssno.data.splits import holdout, split_trajectories
from ssno.data.storage import FrameWriter, Layout
from ssno.data.trajectories import Frames, Trajectories
from ssno.data.windows import ContextTime, Defaults, Window, WindowPlan, dataset_conventions

__all__ = [
    "DATASETS",
    "AffineMap",
    "Climatology",
    "ContextTime",
    "DataError",
    "DataOptions",
    "Defaults",
    "FrameWriter",
    "Frames",
    "GenerationReport",
    "Inspection",
    "Layout",
    "Normaliser",
    "Normalisers",
    "Plan",
    "ReadOptions",
    "Reduction",
    "Size",
    "Trajectories",
    "Verification",
    "Window",
    "WindowPlan",
    "build_plan",
    "build_problem",
    "choose_context",
    "convert_data",
    "dataset_conventions",
    "fit",
    "generate",
    "holdout",
    "inspect_data",
    "load_dataset",
    "register_problem",
    "split_trajectories",
    "verify",
]
