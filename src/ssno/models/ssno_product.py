"""SS-NO-product: SS-NO whose blocks multiply scans with each other instead of gating each direction.

    lift -> products of scans -> x + temporal memory -> products of scans -> project

    block   x <- x + (L y + l) tanh(R y + r),   y = scan of x both ways, along one axis after the other
                                                                                    `ssno.layers.product`

Ours, not the paper's: quadratic terms are products of two local linear maps, so this is the shortest way to them. What
was tried, what is measured and what is not: docs/operator.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ssno.layers.product import ProductAxialScan, ResidualMemory, two_sided
from ssno.layers.sweeps import GridScan
from ssno.models.operator import PrecomputedWeights, Spacing
from ssno.models.ssno import ScanConfig, ScanOperator


@dataclass(frozen=True, kw_only=True)
class SSNOProductConfig(ScanConfig):
    """SS-NO with products of scans: 170,433 parameters in 1D, 303,105 in 2D."""

    name: ClassVar[str] = "ssno-product"
    sweep: ClassVar[type[GridScan]] = ProductAxialScan

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.modes.selective:
            raise ValueError("`modes.selective` must be False: products of scans need kernels. Use 'ssno-selective'.")

    def memory(self, channels: int) -> ResidualMemory | None:
        """Memory that adds to its input; None without memory."""
        if not self.memory_window:
            return None
        return ResidualMemory(
            channels, window=self.memory_window, d_state=self.memory_d_state, kernel=self.memory_kernel
        )

    def build(self) -> "SSNOProduct":
        return SSNOProduct(self)


class SSNOProduct(ScanOperator):
    """SS-NO with products of scans: `SSNOProduct(config)`, or `SSNOProduct(n_dims=2)` with its fields."""

    config_type = SSNOProductConfig
    config: SSNOProductConfig

    def grid_weights(self, grid: Sequence[int], *, spacing: Spacing = None) -> PrecomputedWeights:
        """As in SS-NO, with both kernels of a line in one where the line is a circle."""
        weights = super().grid_weights(grid, spacing=spacing)
        return weights._replace(blocks=[[two_sided(known) for known in block] for block in weights.blocks])
