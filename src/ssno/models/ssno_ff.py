"""SS-NO-FF: all axes scanned in parallel and summed, then a feed-forward network (F-FNO style).

The published 503,297 parameters contain a second feed-forward network per block that the paper's listing never calls.
They are kept, idle, to reproduce the number; `idle_forecast=False` leaves them out and changes no output.
"""

from dataclasses import dataclass
from typing import ClassVar

from ssno.layers.sweeps import ParallelSweep
from ssno.models.scanning import ScanConfig, ScanOperator


@dataclass(frozen=True, kw_only=True)
class SSNOFFConfig(ScanConfig):
    """SS-NO with parallel axes and feed-forward networks: 503,297 parameters in 2D, 436,481 of them in use."""

    name: ClassVar[str] = "ssno-ff"

    idle_forecast: bool = True
    """Keep the feed-forward networks that no output depends on, as the published parameter count does."""

    def block(self) -> ParallelSweep:
        """Two-way scans along all axes, summed."""
        return ParallelSweep(
            self.hidden_channels,
            axes=self.n_dims,
            d_state=self.d_state,
            boundary=self.boundary,
            options=self.modes,
            idle_forecast=self.idle_forecast,
        )

    def build(self) -> "SSNOFF":
        return SSNOFF(self)


class SSNOFF(ScanOperator):
    """SS-NO with parallel axes: `SSNOFF(config)`, or `SSNOFF(n_dims=2)` with its fields."""

    config_type = SSNOFFConfig
    config: SSNOFFConfig

    def idle_parameters(self) -> list[str]:
        """Names of the forecast networks' parameters, which no output depends on."""
        return [name for name, _ in self.named_parameters() if ".forecast." in name]
