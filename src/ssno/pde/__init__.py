"""Equations, time integrators and problems with known answers. Knows nothing about learning.

An equation says what to solve (`spectral`, `vorticity`, `gas`, `sphere`), an integrator how (`integrators`,
`finite_volume`), `integrate` how often (`stepping`); `problems` put them together for `ssno data generate`.
"""

from ssno.pde.grids import SpectralGrid
from ssno.pde.integrators import etdrk4, ifrk4
from ssno.pde.problems.advection_diffusion import AdvectionDiffusion, Heat, LinearProblem
from ssno.pde.problems.burgers import Burgers
from ssno.pde.problems.gas import RayleighTaylor, RichtmyerMeshkov
from ssno.pde.problems.gray_scott import GrayScott
from ssno.pde.problems.heat_box import HeatBox
from ssno.pde.problems.kt_foil import KTFoil, flow_of
from ssno.pde.problems.kuramoto_sivashinsky import KuramotoSivashinsky
from ssno.pde.problems.problem import Axis, OnProgress, Parameters, Problem, Solution, SolverDiverged
from ssno.pde.problems.shallow_water import ShallowWater, VorticalShallowWater
from ssno.pde.problems.torus import TorusLi, TorusVis, TorusVisForce
from ssno.pde.spectral import SpectralEquation, burgers, kuramoto_sivashinsky
from ssno.pde.stepping import integrate

__all__ = [
    "AdvectionDiffusion",
    "Axis",
    "Burgers",
    "GrayScott",
    "Heat",
    "HeatBox",
    "KTFoil",
    "KuramotoSivashinsky",
    "LinearProblem",
    "OnProgress",
    "Parameters",
    "Problem",
    "RayleighTaylor",
    "RichtmyerMeshkov",
    "ShallowWater",
    "Solution",
    "SolverDiverged",
    "SpectralEquation",
    "SpectralGrid",
    "TorusLi",
    "TorusVis",
    "TorusVisForce",
    "VorticalShallowWater",
    "burgers",
    "etdrk4",
    "flow_of",
    "ifrk4",
    "integrate",
    "kuramoto_sivashinsky",
]
