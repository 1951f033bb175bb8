"""CE-RM: a blast inside a heavy disc, Richtmyer-Meshkov instability of its rim (Poseidon's dataset).

Euler's equations with gamma = 1.4 on the periodic unit square, gas at rest at t = 0, radius r and angle a about the
centre (1/2, 1/2):

    p = 20 for r < 0.1, else 1          rho = 2 for r < I, else 1          I = 1/4 + epsilon sum_j a_j cos(a + 2 pi b_j)

with ten a_j, b_j ~ U[0, 1), a_j divided by their sum. A shock runs outward, crosses the rim, returns through the
periodic walls and hits the rim again and again, which rolls up. The published text does not give epsilon; the
published mean density, 1.19642 = 1 + mean area, says 0.02. The dye marks the heavy gas, 1 inside and 0 outside.

There is no convergence to one solution here: finer grids show finer rolls. Datasets agree in their statistics.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ssno.pde.problems.gas_problem import GasProblem
from ssno.pde.problems.problem import Parameters

WAVES = 10
BLAST_RADIUS, BLAST_PRESSURE = 0.1, 20.0
RIM_RADIUS, HEAVY = 0.25, 2.0

Perturbation = Literal["angular", "x"]


@dataclass(frozen=True)
class RichtmyerMeshkov(GasProblem):
    """The problem; see the top of this module. `perturbation="x"` puts sin 2 pi (x + b_j) instead of the cosine."""

    perturbation: Perturbation = "angular"
    epsilon: float = 0.02

    name: ClassVar[str] = "ce-rm"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.epsilon < RIM_RADIUS:
            raise ValueError(f"`epsilon` must be between 0 and the radius {RIM_RADIUS}, got {self.epsilon}.")
        if self.perturbation not in get_args(Perturbation):
            raise ValueError(f"`perturbation` must be one of {get_args(Perturbation)}, got {self.perturbation!r}.")

    def draw(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Amplitudes that add up to one, and phases in turns."""
        amplitude, phase = rng.uniform(0, 1, size=(2, WAVES))
        return {"amplitude": amplitude / amplitude.sum(), "phase": phase}

    def rim(self, parameters: Parameters, x: Tensor, angle: Tensor) -> Tensor:
        """The radius I of the interface."""
        radius = torch.full_like(x, RIM_RADIUS)
        for a, b in zip(parameters["amplitude"].tolist(), parameters["phase"].tolist(), strict=True):
            wave = (
                torch.cos(angle + 2 * np.pi * b) if self.perturbation == "angular" else torch.sin(2 * np.pi * (x + b))
            )
            radius += self.epsilon * a * wave
        return radius

    def gas_at(self, parameters: Parameters, x: Tensor, y: Tensor) -> Float[Tensor, "c x y"]:
        radius, angle = torch.hypot(x - 0.5, y - 0.5), torch.atan2(y - 0.5, x - 0.5)
        tracer = (radius < self.rim(parameters, x, angle)).to(torch.float64)
        density = 1 + (HEAVY - 1) * tracer
        pressure = torch.where(radius < BLAST_RADIUS, BLAST_PRESSURE, torch.ones_like(x))
        rest = torch.zeros_like(x)
        return torch.stack([density, rest, rest, pressure / (self.gamma - 1), density * tracer])
