"""SS-NO-VM: the grid flattened to one line and scanned both ways, once per axis order (Vision Mamba style).

The order is ours where the paper's listing leaves it open: row-major first, then column-major, each pass with its own
scans and its own mixing.
"""

from dataclasses import dataclass
from typing import ClassVar

from ssno.layers.sweeps import FlattenedSweep
from ssno.models.scanning import ScanConfig, ScanOperator


@dataclass(frozen=True, kw_only=True)
class SSNOVMConfig(ScanConfig):
    """SS-NO that scans the grid as one line, row by row, then column by column: 402,945 parameters in 2D."""

    name: ClassVar[str] = "ssno-vm"

    def block(self) -> FlattenedSweep:
        """Two-way scans of the flattened grid."""
        return FlattenedSweep(
            self.hidden_channels, axes=self.n_dims, d_state=self.d_state, boundary=self.boundary, options=self.modes
        )

    def build(self) -> "SSNOVM":
        return SSNOVM(self)


class SSNOVM(ScanOperator):
    """SS-NO on the flattened grid: `SSNOVM(config)`, or `SSNOVM(n_dims=2)` with its fields."""

    config_type = SSNOVMConfig
    config: SSNOVMConfig
