"""Random trajectories of any problem, the same ones in every run."""

import numpy as np

from ssno.pde.problems.problem import Problem


def drawn(problem: Problem, count: int, seed: int = 3) -> list[dict[str, np.ndarray]]:
    rng = np.random.Generator(np.random.Philox(seed))
    return [problem.draw(rng) for _ in range(count)]
