"""Trained models as files that other programs run: ONNX, `torch.export`, and compiled libraries."""

from ssno.export.read import open_exported
from ssno.export.step import ForecastStep
from ssno.export.write import Agreement, ExportedModel, ExportMismatch, export_run

__all__ = ["Agreement", "ExportMismatch", "ExportedModel", "ForecastStep", "export_run", "open_exported"]
