"""Explicit steps of du/dt = rate(u), each followed by a factor that damps: maps from one stored frame to the next.

`restarted_adams_bashforth` is the scheme of the public shallow-water data,

    u += dt (23 f_n - 16 f_{n-1} + 5 f_{n-2}) / 12,   first step u += dt f_0,   second u += dt (28 f_1 - 16 f_0) / 12

with a fresh start in every frame, so that the next frame is a function of this one alone. The start makes it first
order; third-order Adams-Bashforth also damps fast waves, by 3/8 (omega dt)^4 per step. `runge_kutta` is the classical
fourth-order scheme, for physics.
"""

from collections.abc import Callable

from torch import Tensor

Rate = Callable[[Tensor], Tensor]


def restarted_adams_bashforth(rate: Rate, state: Tensor, *, dt: float, steps: int, factor: Tensor) -> Tensor:
    """The state after `steps` steps from a fresh start."""
    before: Tensor | None = None
    earlier: Tensor | None = None
    for _ in range(steps):
        now = rate(state)
        if before is None:
            change = now
        elif earlier is None:
            change = (28 * now - 16 * before) / 12
        else:
            change = (23 * now - 16 * before + 5 * earlier) / 12
        state = (state + dt * change) * factor
        earlier, before = before, now
    return state


def runge_kutta(rate: Rate, state: Tensor, *, dt: float, steps: int, factor: Tensor) -> Tensor:
    """The state after `steps` steps of the classical fourth-order scheme."""
    for _ in range(steps):
        k_1 = rate(state)
        k_2 = rate(state + dt / 2 * k_1)
        k_3 = rate(state + dt / 2 * k_2)
        k_4 = rate(state + dt * k_3)
        state = (state + dt / 6 * (k_1 + 2 * (k_2 + k_3) + k_4)) * factor
    return state
