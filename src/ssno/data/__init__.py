"""Trajectories: generated, read from files, normalised, divided and windowed. Built on `ssno.pde`."""

from ssno.data.context import choose_context
from ssno.data.errors import DataError
from ssno.data.files.inspection import Inspection, inspect_data
from ssno.data.files.readers.protocol import ReadOptions
from ssno.data.load import load_dataset
from ssno.data.make.datasets import DATASETS, Size, build_plan, build_problem, register_problem
from ssno.data.make.generate import GenerationReport, generate
from ssno.data.make.plan import Plan
from ssno.data.normalise import AffineMap, Normaliser, Normalisers, fit
from ssno.data.options import DataOptions
from ssno.data.reduction import Reduction
from ssno.data.splits import holdout, split_trajectories
from ssno.data.store.convert import convert_data
from ssno.data.store.storage import FrameWriter, Layout
from ssno.data.store.verify import Verification, verify
from ssno.data.trajectories import Frames, Trajectories
from ssno.data.windows import ContextTime, Defaults, Window, WindowPlan, dataset_conventions

__all__ = [
    "DATASETS",
    "AffineMap",
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
