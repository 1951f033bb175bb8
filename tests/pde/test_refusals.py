"""Options of problems that make no sense, and batches without trajectories, are refused with one clear error."""

from typing import Any

import pytest

from ssno.pde.problems.burgers import Burgers
from ssno.pde.problems.gas import RayleighTaylor, RichtmyerMeshkov
from ssno.pde.problems.gray_scott import GrayScott
from ssno.pde.problems.heat import AdvectionDiffusion, Heat, HeatBox
from ssno.pde.problems.kt_foil import KTFoil
from ssno.pde.problems.kuramoto_sivashinsky import KuramotoSivashinsky
from ssno.pde.problems.problem import Problem
from ssno.pde.problems.shallow_water import ShallowWater
from ssno.pde.problems.torus import TorusLi, TorusVis, TorusVisForce


@pytest.mark.usefixtures("as_users_call_it")
@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        (KuramotoSivashinsky, {"viscosity": 0.0}, "`viscosity` must be a positive finite number, got 0.0"),
        (KuramotoSivashinsky, {"length": -1.0}, "`length` must be a positive finite number, got -1.0"),
        (KuramotoSivashinsky, {"end_time": float("inf")}, "`end_time` must be a positive finite number, got inf"),
        (KuramotoSivashinsky, {"step": float("nan")}, "`step` must be a positive finite number, got nan"),
        (KuramotoSivashinsky, {"frames": 1}, "`frames` must be at least 2, got 1"),
        (KuramotoSivashinsky, {"waves": 0}, "`waves` must be at least 1, got 0"),
        (KuramotoSivashinsky, {"lmax": 1}, "`lmax` must be at least 2, got 1"),
        (
            KuramotoSivashinsky,
            {"lmax": 172},
            r"`solver_points` must exceed 3 \(lmax - 1\) to carry all waves, got 512 and lmax=172",
        ),
        (
            KuramotoSivashinsky,
            {"points": 100},
            "`solver_points` must be a positive multiple of `points`, got 512 and 100",
        ),
        (KuramotoSivashinsky, {"points": 0}, "`solver_points` must be a positive multiple of `points`, got 512 and 0"),
        (Burgers, {"viscosity": 0.0}, "`viscosity` must be a positive finite number, got 0.0"),
        (Burgers, {"frame_interval": -0.01}, "`frame_interval` must be a positive finite number, got -0.01"),
        (Burgers, {"cfl": 0.0}, "`cfl` must be a positive finite number, got 0.0"),
        (Burgers, {"step": 0.0}, "`step` must be a positive finite number, got 0.0"),
        (Burgers, {"initial_period": 0.0}, "`initial_period` must be a positive finite number, got 0.0"),
        (Burgers, {"frames": 1}, "`frames` must be at least 2, got 1"),
        (Burgers, {"points": 100}, "`cells` must be a positive multiple of `points`, got 1024 and 100"),
        (
            Burgers,
            {"spectral_points": 1000},
            "`spectral_points` must be a positive multiple of `points`, got 1000 and 1024",
        ),
        (
            Burgers,
            {"solver": "exact", "initial_period": 0.9},
            "`initial_period` must be 1 for the exact solver, got 0.9",
        ),
        (Burgers, {"solver": "magic"}, r"`solver` must be one of 'fv', 'exact', got 'magic'"),
        (Burgers, {"window": "magic"}, r"`window` must be one of 'correlated', 'independent', got 'magic'"),
        (TorusLi, {"viscosity": 0.0}, "`viscosity` must be a positive finite number, got 0.0"),
        (TorusLi, {"frame_interval": 0.0}, "`frame_interval` must be a positive finite number, got 0.0"),
        (TorusLi, {"step": -1.0}, "`step` must be a positive finite number, got -1.0"),
        (TorusLi, {"first_time": -0.5}, "`first_time` must be 0 or a positive finite number, got -0.5"),
        (TorusLi, {"frames": 0}, "`frames` must be at least 1, got 0"),
        (TorusLi, {"solver_points": 4, "points": 4}, "`solver_points` must be at least 8, got 4"),
        (TorusLi, {"points": 100}, "`solver_points` must be a positive multiple of `points`, got 256 and 100"),
        (TorusLi, {"convention": "magic"}, r"`convention` must be one of 'fno2020', 'fno2022', got 'magic'"),
        (TorusVis, {"lowest_viscosity": 0.0}, "`lowest_viscosity` must be a positive finite number, got 0.0"),
        (TorusVis, {"highest_viscosity": 1e-6}, "`highest_viscosity` must be at least `lowest_viscosity`, got 1e-06"),
        (TorusVisForce, {"drift": float("nan")}, "`drift` must be a finite number, got nan"),
        (RichtmyerMeshkov, {"epsilon": 0.3}, "`epsilon` must be between 0 and the radius 0.25, got 0.3"),
        (RichtmyerMeshkov, {"cfl": 0.0}, "`cfl` must be a positive finite number, got 0.0"),
        (RichtmyerMeshkov, {"frame_interval": 0.0}, "`frame_interval` must be a positive finite number, got 0.0"),
        (RichtmyerMeshkov, {"frames": 1}, "`frames` must be at least 2, got 1"),
        (RichtmyerMeshkov, {"refine": 0}, "`refine` must be at least 1, got 0"),
        (RichtmyerMeshkov, {"cells": 2, "points": 2}, "`cells` must be at least 4, got 2"),
        (RichtmyerMeshkov, {"points": 100}, "`cells` must be a positive multiple of `points`, got 128 and 100"),
        (RayleighTaylor, {"mode": -1}, "`mode` must be at least 0, got -1"),
        (RayleighTaylor, {"amplitude": 1.5}, "`amplitude` must be between 0 and 1, got 1.5"),
        (Heat, {"dimensions": 4}, "A box has 1, 2 or 3 dimensions, got 4"),
        (Heat, {"diffusivity": -0.1}, "`diffusivity` must not be negative, got -0.1"),
        (Heat, {"frames": 1}, "`frames` must be at least 2, got 1"),
        (Heat, {"lmax": 0}, "`lmax` must be at least 1, got 0"),
        (Heat, {"waves": 0}, "`waves` must be at least 1, got 0"),
        (Heat, {"end_time": 0.0}, "`end_time` must be a positive finite number, got 0.0"),
        (Heat, {"points": 8}, "`points` must be at least 2 lmax to carry wavenumbers below lmax, got 8 and lmax=5"),
        (AdvectionDiffusion, {"velocity": ()}, "A box has 1, 2 or 3 dimensions, got 0"),
        (HeatBox, {"boundary": "open"}, "`boundary` must be one of"),
        (HeatBox, {"dimensions": 4}, "A box has 1, 2 or 3 dimensions, got 4"),
        (HeatBox, {"points": 4}, "`points` must be at least lmax to carry all waves"),
        (GrayScott, {"boundary": "open"}, "`boundary` must be one of"),
        (GrayScott, {"warm_up": 30.0}, "`warm_up` must be a multiple of `frame_interval`"),
        (GrayScott, {"highest_feed": 0.01}, "`highest_feed` must be at least `lowest_feed`"),
        (ShallowWater, {"nlat": 4}, "`nlat` must be at least 6"),
        (ShallowWater, {"initial": "calm"}, "`initial` must be one of"),
        (ShallowWater, {"scheme": "euler"}, "`scheme` must be one of"),
        (ShallowWater, {"step": 0.0}, "`step` must be a positive finite number"),
        (ShallowWater, {"viscosity": -1.0}, "`viscosity` must be 0"),
        (ShallowWater, {"hyperdiffusion": 0.0}, "amplifies the fastest waves"),
        (KTFoil, {"task": "wide"}, r"`task` must be one of 'full', 'scarce', 'aoa', got 'wide'"),
        (KTFoil, {"wall_points": 4}, "`wall_points` must be at least 8, got 4"),
        (KTFoil, {"points": 100}, "`points` must be at least 512, got 100"),
    ],
)
def test_impossible_options_are_refused(kind: type[Problem], change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kind(**change)


@pytest.mark.parametrize(
    "problem", [KuramotoSivashinsky(), Burgers(), Burgers(solver="exact"), TorusLi(), RichtmyerMeshkov(), KTFoil()]
)
def test_an_empty_batch_is_refused(problem: Problem) -> None:
    with pytest.raises(ValueError, match="`parameters` is empty: there is no trajectory to solve"):
        problem.solve([])
