"""Equations, time integrators and problems with known answers. Knows nothing about learning.

An equation says what to solve (`spectral`, `vorticity`, `gas`, `sphere`), an integrator how (`integrators`,
`finite_volume`), `integrate` how often (`stepping`); `problems` put them together for `ssno data generate`.
"""

from ssno.pde.geometry import CARTESIAN, GEOMETRIES, POINT_CLOUD, SPHERE, Axis, Cartesian, Geometry, PointCloud, Sphere
from ssno.pde.grids import SpectralGrid
from ssno.pde.integrators import etdrk4, ifrk4
from ssno.pde.problems.box import BoxTurbulence
from ssno.pde.problems.burgers import Burgers
from ssno.pde.problems.gas import RayleighTaylor, RichtmyerMeshkov
from ssno.pde.problems.gray_scott import GrayScott
from ssno.pde.problems.heat import AdvectionDiffusion, Heat, HeatBox, LinearProblem
from ssno.pde.problems.kt_foil import KTFoil, flow_of
from ssno.pde.problems.kuramoto_sivashinsky import KuramotoSivashinsky, KuramotoSivashinskyAttractor
from ssno.pde.problems.problem import OnProgress, Parameters, Problem, Solution, SolverDiverged
from ssno.pde.problems.shallow_water import ShallowWater, VorticalShallowWater
from ssno.pde.problems.spectral_problem import SpectralProblem
from ssno.pde.problems.torus import TorusLi, TorusVis, TorusVisForce
from ssno.pde.spectral import SpectralEquation, burgers, convection_equation, kuramoto_sivashinsky
from ssno.pde.stepping import integrate

__all__ = [
    "CARTESIAN",
    "GEOMETRIES",
    "POINT_CLOUD",
    "SPHERE",
    "AdvectionDiffusion",
    "Axis",
    "BoxTurbulence",
    "Burgers",
    "Cartesian",
    "Geometry",
    "GrayScott",
    "Heat",
    "HeatBox",
    "KTFoil",
    "KuramotoSivashinsky",
    "KuramotoSivashinskyAttractor",
    "LinearProblem",
    "OnProgress",
    "Parameters",
    "PointCloud",
    "Problem",
    "RayleighTaylor",
    "RichtmyerMeshkov",
    "ShallowWater",
    "Solution",
    "SolverDiverged",
    "SpectralEquation",
    "SpectralGrid",
    "SpectralProblem",
    "Sphere",
    "TorusLi",
    "TorusVis",
    "TorusVisForce",
    "VorticalShallowWater",
    "burgers",
    "convection_equation",
    "etdrk4",
    "flow_of",
    "ifrk4",
    "integrate",
    "kuramoto_sivashinsky",
]
