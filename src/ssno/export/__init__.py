"""Trained models as files that other programs run: ONNX, `torch.export`, and compiled libraries."""

from ssno.export.check import Agreement, ExportMismatch
from ssno.export.read import open_exported
from ssno.export.step import ForecastStep
from ssno.export.write import ExportedModel, export_run

__all__ = ["Agreement", "ExportMismatch", "ExportedModel", "ForecastStep", "export_run", "open_exported"]
