"""SS-NO with forward scans only: the ablation that lacks a full field of view.

Twice as many blocks with half as many scans each, so that the number of parameters is SS-NO's. On a grid with zero
boundary no point hears from points after it, along any axis, however deep the model (`ssno.theory.field_of_view`).
"""

from dataclasses import dataclass
from typing import ClassVar

from ssno.layers.sweeps import OneWaySweep
from ssno.models.scanning import ScanConfig, ScanOperator


@dataclass(frozen=True, kw_only=True)
class SSNOUniConfig(ScanConfig):
    """SS-NO with forward scans only: 203,713 parameters in 1D and 369,665 in 2D, as many as SS-NO has."""

    name: ClassVar[str] = "ssno-uni"

    n_layers: int = 8

    def block(self) -> OneWaySweep:
        """Forward scans along one axis after the other."""
        return OneWaySweep(
            self.hidden_channels, axes=self.n_dims, d_state=self.d_state, boundary=self.boundary, options=self.modes
        )

    def build(self) -> "SSNOUni":
        return SSNOUni(self)


class SSNOUni(ScanOperator):
    """One-way SS-NO: `SSNOUni(config)`, or `SSNOUni(n_dims=2)` with its fields."""

    config_type = SSNOUniConfig
    config: SSNOUniConfig
