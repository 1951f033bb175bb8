"""The description that all models with Fourier modes share: how many they keep, and fitting that to a grid."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from ssno.base import require_positive
from ssno.layers.spectral import most_modes
from ssno.models.config import OperatorConfig

Fourier = TypeVar("Fourier", bound="FourierConfig")


@dataclass(frozen=True, kw_only=True)
class FourierConfig(OperatorConfig):
    """A model that keeps the lowest Fourier modes of its features. Grids need at least `2 n_modes` points per axis."""

    n_modes: int = 32
    """Wavenumbers kept along each axis."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("n_modes", self.n_modes)

    def spectral_size(self, width: int) -> int:
        """Numbers in one layer's weights: a matrix over channels for each kept mode in each corner of the spectrum."""
        return 2**self.n_dims * self.n_modes**self.n_dims * width**2

    def approximate_size(self) -> int:
        width, layers = getattr(self, "hidden_channels", 1), getattr(self, "n_layers", 1)
        return super().approximate_size() + layers * self.spectral_size(width)

    def for_grid(self: Fourier, grid: Sequence[int]) -> Fourier:
        return replace(self, n_modes=min(self.n_modes, most_modes(grid)))
