"""Equations, time integrators and problems with known answers. Knows nothing about learning.

`problems` are what `ssno data generate` solves; `equations` say what to solve and never import `schemes`, which say
how.
"""

from ssno.pde.equations.spectral import SpectralEquation, burgers, kuramoto_sivashinsky
from ssno.pde.grids import SpectralGrid
from ssno.pde.problems.advection_diffusion import AdvectionDiffusion, Heat, LinearProblem
from ssno.pde.problems.burgers import Burgers
from ssno.pde.problems.gray_scott import GrayScott
from ssno.pde.problems.heat_box import HeatBox
from ssno.pde.problems.kt_foil import KTFoil, flow_of
from ssno.pde.problems.kuramoto_sivashinsky import KuramotoSivashinsky
from ssno.pde.problems.problem import Axis, OnProgress, Parameters, Problem, Solution, SolverDiverged
from ssno.pde.problems.rayleigh_taylor import RayleighTaylor
from ssno.pde.problems.richtmyer_meshkov import RichtmyerMeshkov
from ssno.pde.problems.shallow_water import ShallowWater, VorticalShallowWater
from ssno.pde.problems.torus import TorusLi, TorusVis, TorusVisForce
from ssno.pde.schemes.integrators import etdrk4, ifrk4

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
    "kuramoto_sivashinsky",
]
