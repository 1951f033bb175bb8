"""Time integrators for `SpectralEquation`: both fourth order, both exact in the linear part.

`etdrk4`: exponential time differencing of Cox and Matthews. With z = linear * dt the step needs functions such as
(e^z - 1) / z, whose direct evaluation cancels near z = 0; Kassam and Trefethen take their mean over a circle around
z instead, where they are harmless (64 points on the full circle, so complex symbols are allowed).
`ifrk4`: classical Runge-Kutta for the variable e^{-linear t} u. Cheaper coefficients and a nonlinear term that may
depend on time; less accurate than ETDRK4 when the linear part is stiff and slaved modes matter.

Both have the form integrator(equation, dt) -> step and step(modes, time) -> modes at time + dt.

All arithmetic on modes is done on real numbers if the linear symbol is real: half the work of complex products.
"""

from collections.abc import Callable

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from ssno.pde.spectral import SpectralCoefficients, SpectralEquation

Step = Callable[[Tensor, float], Tensor]
Symbol = Float[Tensor, "*modes"] | Complex[Tensor, "*modes"]

CONTOUR_POINTS = 64


def etdrk4(equation: SpectralEquation, dt: float) -> Step:
    """Exponential time differencing, fourth order; four nonlinear terms per step.

    With N_u, N_a, N_b, N_c the nonlinear term at u and the stages, E = e^z and e = e^{z/2}:

        a = e u + q N_u,   b = e u + q N_a,   c = e a + q (2 N_b - N_u) = E u + q (e - 1) N_u + 2 q N_b

    The last form needs nothing but u and N, so no stage is kept: all three are built where the transform reads them.
    """
    _check_step(dt)
    if equation.nonlinear is None:
        return _exact(equation, dt)
    e_whole, e_half, q, *last_weights = etdrk4_coefficients(equation.linear, dt)
    if equation.compiled is not None:
        return equation.compiled((e_whole, e_half), (q, q * (e_half - 1), 2 * q, *last_weights))
    nonlinear = equation.nonlinear
    factor = torch.ones((), dtype=torch.float64) if equation.factor is None else equation.factor
    whole, half = Weight(e_whole), Weight(e_half)
    stage, early, late = (Weight(weight * factor) for weight in (q, q * (e_half - 1), 2 * q))
    first, middle, last = (Weight(weight * factor) for weight in last_weights)

    def step(modes: SpectralCoefficients, time: float) -> SpectralCoefficients:
        n_u = nonlinear(modes, time)
        u_half, u_whole = half.times(modes), whole.times(modes)
        at = equation.grid.workspace(modes.shape)
        n_a = nonlinear(stage.add(u_half, n_u, out=at), time + dt / 2)
        n_b = nonlinear(stage.add(u_half, n_a, out=at), time + dt / 2)
        n_c = nonlinear(late.add(early.add(u_whole, n_u, out=at), n_b, out=at), time + dt)
        result = first.add(u_whole, n_u, out=u_whole)
        middle.add(result, n_a.add_(n_b), out=result)
        return last.add(result, n_c, out=result)

    return step


def ifrk4(equation: SpectralEquation, dt: float) -> Step:
    """Integrating-factor Runge-Kutta, fourth order; four nonlinear terms per step."""
    _check_step(dt)
    if equation.nonlinear is None:
        return _exact(equation, dt)
    nonlinear, is_real = equation.rate, not equation.linear.is_complex()
    half = _factor(torch.exp(equation.linear * (dt / 2)))
    whole = _factor(torch.exp(equation.linear * dt))

    def step(modes: SpectralCoefficients, time: float) -> SpectralCoefficients:
        u = _numbers(modes, is_real)
        k_1 = _numbers(nonlinear(modes, time), is_real)
        a = torch.add(u, k_1, alpha=dt / 2).mul_(half)
        k_2 = _numbers(nonlinear(_modes(a, is_real), time + dt / 2), is_real)
        b = torch.mul(u, half, out=a).add_(k_2, alpha=dt / 2)
        k_3 = _numbers(nonlinear(_modes(b, is_real), time + dt / 2), is_real)
        u_whole = u * whole
        c = torch.addcmul(u_whole, half, k_3, value=dt)
        k_4 = _numbers(nonlinear(_modes(c, is_real), time + dt), is_real)
        result = u_whole.addcmul_(whole, k_1, value=dt / 6)
        result.addcmul_(half, k_2.add_(k_3), value=dt / 3).add_(k_4, alpha=dt / 6)
        return _modes(result, is_real)

    return step


def etdrk4_coefficients(linear: Symbol, dt: float) -> tuple[Symbol, Symbol, Symbol, Symbol, Symbol, Symbol]:
    """(e^z, e^{z/2}, stage weight, weights of the first, the two middle and the last term), z = linear dt.

    The weights are entire functions of z, hence equal to their mean over the circle |w - z| = 1.
    """
    z = linear * dt
    sums = [torch.zeros_like(z, dtype=torch.complex128) for _ in range(4)]
    for point in range(CONTOUR_POINTS):  # one at a time: the symbol of a 3D grid would not fit 64 times
        w = z + torch.exp(torch.tensor(2j * torch.pi * (point + 0.5) / CONTOUR_POINTS, dtype=torch.complex128))
        e = torch.exp(w)
        sums[0] += (torch.exp(w / 2) - 1) / w
        sums[1] += (-4 - w + e * (4 - 3 * w + w**2)) / w**3
        sums[2] += 2 * (2 + w + e * (w - 2)) / w**3
        sums[3] += (-4 - 3 * w - w**2 + e * (4 - w)) / w**3
    means = [dt / CONTOUR_POINTS * total for total in sums]
    stage, first, middle, last = means if linear.is_complex() else [mean.real.contiguous() for mean in means]
    return torch.exp(z), torch.exp(z / 2), stage, first, middle, last


class Weight:
    """A symbol by which modes are multiplied; if it is real, on real numbers: half the work of complex products."""

    def __init__(self, symbol: Symbol):
        self.is_real = not symbol.is_complex()
        self.symbol = _factor(symbol)

    def times(self, modes: SpectralCoefficients) -> SpectralCoefficients:
        """symbol * modes, in fresh memory."""
        return _modes(_numbers(modes, self.is_real) * self.symbol, self.is_real)

    def add(
        self, start: SpectralCoefficients, modes: SpectralCoefficients, *, out: SpectralCoefficients
    ) -> SpectralCoefficients:
        """start + symbol * modes, written to `out`, which may be `start`."""
        if not self.is_real:
            return torch.addcmul(start, self.symbol, modes, out=out)
        torch.addcmul(_numbers(start, True), self.symbol, _numbers(modes, True), out=_numbers(out, True))
        return out


def _exact(equation: SpectralEquation, dt: float) -> Step:
    """The step of a linear equation: multiply by e^{linear dt}."""
    whole = Weight(torch.exp(equation.linear * dt))
    return lambda modes, time: whole.times(modes)


def _check_step(dt: float) -> None:
    if not 0 < dt < float("inf"):
        raise ValueError(f"`dt` must be a positive finite number, got {dt}.")


def _numbers(modes: Tensor, is_real: bool) -> Tensor:
    """View (..., modes) complex as (..., 2 modes) real: re, im, re, im, ..."""
    return torch.view_as_real(modes).flatten(-2) if is_real else modes


def _modes(numbers: Tensor, is_real: bool) -> Tensor:
    """Undo `_numbers`, also a view."""
    return torch.view_as_complex(numbers.unflatten(-1, (-1, 2))) if is_real else numbers


def _factor(symbol: Tensor) -> Tensor:
    """A symbol in the layout of `_numbers`."""
    return symbol if symbol.is_complex() else symbol.repeat_interleave(2, dim=-1)


# Explicit steps of du/dt = rate(u), each followed by a factor that damps: maps from one stored frame to the next.
#
# `restarted_adams_bashforth` is the scheme of the public shallow-water data,
#
#     u += dt (23 f_n - 16 f_{n-1} + 5 f_{n-2}) / 12,   first step u += dt f_0,   second u += dt (28 f_1 - 16 f_0) / 12
#
# with a fresh start in every frame, so that the next frame is a function of this one alone. The start makes it first
# order; third-order Adams-Bashforth also damps fast waves, by 3/8 (omega dt)^4 per step. `runge_kutta` is the classical
# fourth-order scheme, for physics.

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
