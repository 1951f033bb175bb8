"""A worker (`benchmarks.serving`): the KS case by exponax, jitted and vmapped, float64, frames included.

Runs in an environment with exponax and jax; states stay in Fourier space between frames, which is its fastest way.
"""

import exponax
import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.ks_case import END, FRAMES, LENGTH, POINTS, STEPS, VISCOSITY, initial
from benchmarks.serving import serve


def main() -> None:
    """Solve on command."""
    jax.config.update("jax_enable_x64", True)
    step = exponax.stepper.KuramotoSivashinskyConservative(
        1,
        LENGTH,
        POINTS,
        END / STEPS,
        second_order_scale=1.0,
        fourth_order_scale=VISCOSITY,
        single_channel=True,
        order=4,
    )
    to_next_frame = exponax.RepeatedStepper(step, STEPS // (FRAMES - 1))
    solve = jax.jit(jax.vmap(exponax.rollout(to_next_frame, FRAMES - 1, include_init=True)))
    start = jnp.asarray(initial()[:, None])
    serve(lambda: np.asarray(solve(start))[:, -1, 0])


if __name__ == "__main__":
    main()
