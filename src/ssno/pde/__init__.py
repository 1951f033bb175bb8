"""Equations, time integrators and problems with known answers. Knows nothing about learning.

`problems` are what `ssno data generate` solves; `equations` say what to solve and never import `schemes`, which say
how.
"""

from ssno.pde.problems.advection_diffusion import AdvectionDiffusion, Heat, LinearProblem
from ssno.pde.problems.burgers import Burgers
from ssno.pde.problems.gray_scott import GrayScott
from ssno.pde.problems.heat_box import HeatBox
from ssno.pde.problems.kuramoto_sivashinsky import KuramotoSivashinsky
from ssno.pde.problems.problem import Axis, Parameters, Problem, Progress, Solution, SolverDiverged
from ssno.pde.problems.rayleigh_taylor import RayleighTaylor
from ssno.pde.problems.richtmyer_meshkov import RichtmyerMeshkov
from ssno.pde.problems.torus import TorusLi, TorusVis, TorusVisForce

__all__ = [
    "AdvectionDiffusion",
    "Axis",
    "Burgers",
    "GrayScott",
    "Heat",
    "HeatBox",
    "KuramotoSivashinsky",
    "LinearProblem",
    "Parameters",
    "Problem",
    "Progress",
    "RayleighTaylor",
    "RichtmyerMeshkov",
    "Solution",
    "SolverDiverged",
    "TorusLi",
    "TorusVis",
    "TorusVisForce",
]
