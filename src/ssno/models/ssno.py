"""The State Space Neural Operator: every block scans each grid axis in turn, forwards and backwards.

The block is `ssno.layers.scan.AxisSweep`, the network around it `ssno.models.scanning`. The same code serves 1D, 2D and
3D.
"""

from dataclasses import dataclass
from typing import ClassVar, get_args

from ssno.layers.modes import require_one_of
from ssno.layers.scan import AxisSweep, Residual
from ssno.models.scanning import ScanConfig, ScanOperator


@dataclass(frozen=True, kw_only=True)
class SSNOConfig(ScanConfig):
    """A State Space Neural Operator. The defaults are the paper's model: 203,713 parameters in 1D, 369,665 in 2D."""

    name: ClassVar[str] = "ssno"

    residual: Residual = "sum"
    """Where residuals go: around the sum of both directions, in each path, or none."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_one_of("residual", self.residual, get_args(Residual))

    def block(self) -> AxisSweep:
        """Two-way scans along one axis after the other."""
        return AxisSweep(
            self.hidden_channels,
            axes=self.n_dims,
            d_state=self.d_state,
            residual=self.residual,
            boundary=self.boundary,
            options=self.modes,
        )

    def build(self) -> "SSNO":
        return SSNO(self)


class SSNO(ScanOperator):
    """State Space Neural Operator: `SSNO(config)`, or `SSNO(in_channels=1, n_dims=2, d_state=32)` with its fields.

    Trajectories are (batch, time, channel, *grid); slot t of the output predicts frame t + 1.
    """

    config_type = SSNOConfig
    config: SSNOConfig
