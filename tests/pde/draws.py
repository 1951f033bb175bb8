"""Random trajectories of any problem, the same ones in every run."""

import numpy as np

from ssno.pde.problems.problem import Problem


def drawn(problem: Problem, count: int) -> list[dict[str, np.ndarray]]:
    rng = np.random.Generator(np.random.Philox(3))
    return [problem.draw(rng) for _ in range(count)]
