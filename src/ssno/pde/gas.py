"""An ideal gas in two dimensions that carries a dye: conserved and primitive variables.

    conserved   rho, rho u, rho v, E, rho c          E = rho (u^2 + v^2) / 2 + p / (gamma - 1)
    primitive   rho, u, v, p, c

c is the mass fraction of a passive tracer. Fluxes live in `ssno.pde.gas`, the scheme in
`ssno.pde.gas`.

Axes: b trajectory, 5 variables in the order above, *cells space.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from ssno.pde.finite_volume import differences, face_states, wrap
from ssno.pde.geometry import Axis

FLOOR = 1e-8
"""Least density and pressure that primitive variables show, so that a sound speed always exists."""

Conserved = Float[Tensor, "b 5 *cells"]
Primitive = Float[Tensor, "b 5 *cells"]


def to_primitive(conserved: Conserved, *, gamma: float) -> Primitive:
    """rho, u, v, p, c of every cell; density and pressure at least `FLOOR`."""
    primitive = torch.empty_like(conserved)
    density = torch.clamp_min(conserved[:, 0], FLOOR, out=primitive[:, 0])
    torch.div(conserved[:, 1:3], density[:, None], out=primitive[:, 1:3])
    torch.div(conserved[:, 4], density, out=primitive[:, 4])
    kinetic = (conserved[:, 1] * primitive[:, 1]).add_(conserved[:, 2] * primitive[:, 2]).mul_(0.5)
    torch.sub(conserved[:, 3], kinetic, out=primitive[:, 3])
    primitive[:, 3].mul_(gamma - 1).clamp_min_(FLOOR)
    return primitive


def sound_speed(density: Tensor, pressure: Tensor, *, gamma: float) -> Tensor:
    """sqrt(gamma p / rho)."""
    return (pressure / density).mul_(gamma).sqrt_()


# The HLLC flux: Euler's Riemann problem with three waves, of which the middle one is a contact.
#
#     S_L <= S_M <= S_R      fastest left-going wave, contact, fastest right-going wave
#
# Between an outer wave S_K (K = L or R) and the contact the state is
#
#     rho* = rho_K (S_K - u_K) / (S_K - S_M),      u* = S_M,      v* = v_K,      c* = c_K
#     E*   = rho* [E_K / rho_K + (S_M - u_K)(S_M + p_K / (rho_K (S_K - u_K)))]
#
# and the flux is F_K + w (U* - U_K) with w = min(S_L, 0) on the left of the contact and max(S_R, 0) on its right. With
# r = (S_M - u) / (S_K - S_M), e = E / rho and X = w rho* (S_M - u) that is, K left out,
#
#     mass  m = rho (u + w r),      momentum  m u + p + X,      energy  m e + p u + X (S_M + p / (rho (S - u)))
#
# and m v, m c for what travels with the mass. Because the contact is a wave of its own, a jump in density or dye at
# equal pressure and velocity is kept as it is; if nothing moves the flux is exactly the pressure. Outer speeds are
# Einfeldt's: the sound speed of Roe's average, or that of the states themselves if faster, which keeps density and
# pressure positive.
#
# This is where a solver of Euler's equations spends half its time, hence the arithmetic in place. Weighted means with
# weights that are exactly 0 or 1 select the upwind state five times as fast as `torch.where`, and x rsqrt(x) is faster
# than a square root; neither depends on where in memory a number lies, so trajectories stay independent of the batch.
#
# Axes: b trajectory, 5 variables (rho, u, v, p, c), *faces.

States = Float[Tensor, "b 5 *faces"]
Face = Float[Tensor, "b *faces"]


def hllc_flux(left: States, right: States, *, gamma: float, normal: int) -> States:
    """Flux of (rho, rho u, rho v, E, rho c) through faces between two primitive states.

    `normal` is 1 for faces across x, where u is the normal velocity, and 2 for faces across y.
    """
    slowest, fastest, middle = wave_speeds(left, right, gamma=gamma, normal=normal)
    from_left = torch.heaviside(middle, torch.ones((), dtype=middle.dtype))
    outer = torch.lerp(fastest, slowest, from_left)
    weight = torch.lerp(fastest.clamp_min_(0), slowest.clamp_max_(0), from_left)
    upwind = torch.lerp(right, left, from_left[:, None])
    density, velocity, pressure = upwind[:, 0], upwind[:, normal], upwind[:, 3]
    tangential = upwind[:, 3 - normal]

    flux = torch.empty_like(upwind)
    jump = middle - velocity
    ratio = (outer - middle).reciprocal_().mul_(jump).mul_(weight)  # w r
    mass = torch.add(velocity, ratio, out=flux[:, 0]).mul_(density)
    push = ratio.add_(weight).mul_(density).mul_(jump)  # X
    torch.mul(mass, velocity, out=flux[:, normal]).add_(pressure).add_(push)
    torch.mul(mass, tangential, out=flux[:, 3 - normal])
    torch.mul(mass, upwind[:, 4], out=flux[:, 4])
    heat = pressure / density
    push.mul_(outer.sub_(velocity).reciprocal_().mul_(heat).add_(middle))
    energy = (velocity * velocity).add_(tangential.mul_(tangential)).mul_(0.5).add_(heat.mul_(1 / (gamma - 1)))
    torch.mul(pressure, velocity, out=flux[:, 3]).add_(energy.mul_(mass)).add_(push)
    return flux


def wave_speeds(left: States, right: States, *, gamma: float, normal: int) -> tuple[Face, Face, Face]:
    """S_L, S_R and S_M: Einfeldt's outer speeds and the contact that balances mass and momentum.

    Roe's average with the share s = sqrt(rho_L) / (sqrt(rho_L) + sqrt(rho_R)) of the left state:
    u = s u_L + (1 - s) u_R,      c^2 = s c_L^2 + (1 - s) c_R^2 + (gamma - 1) / 2 s (1 - s) (u_L - u_R)^2.
    """
    rho_l, u_l, p_l = left[:, 0], left[:, normal], left[:, 3]
    rho_r, u_r, p_r = right[:, 0], right[:, normal], right[:, 3]
    squared_l, squared_r = (p_l / rho_l).mul_(gamma), (p_r / rho_r).mul_(gamma)
    share = _root(rho_r / rho_l).add_(1).reciprocal_()
    step = u_l - u_r
    mean = (share * step).add_(u_r)
    squared = (1 - share).mul_(0.5 * (gamma - 1)).mul_(step.mul_(step))
    squared.add_(squared_l).sub_(squared_r).mul_(share).add_(squared_r)
    sound = _root(squared)
    slowest = torch.minimum(u_l - _root(squared_l), mean - sound)
    fastest = torch.maximum(_root(squared_r).add_(u_r), mean.add_(sound))
    flow_l = (slowest - u_l).mul_(rho_l)
    flow_r = (fastest - u_r).mul_(rho_r)
    middle = (p_r - p_l).add_(flow_l * u_l).sub_(flow_r * u_r).div_(flow_l.sub_(flow_r))
    return slowest, fastest, middle


def _root(positive: Tensor) -> Tensor:
    """The square root, in place."""
    return positive.mul_(positive.rsqrt())


# Compressible Euler equations on a periodic grid of cells: HLLC-MUSCL, with or without gravity.
#
#     rho_t + div(rho v) = 0,      (rho v)_t + div(rho v v + p) = -rho grad phi
#     E_t + div((E + p) v) = -rho v . grad phi,      (rho c)_t + div(rho c v) = 0
#
# Method of lines on cell averages: primitive variables are reconstructed linearly in each cell with the monotonised-
# central limiter (`ssno.pde.finite_volume`), faces get the HLLC flux (`ssno.pde.gas`), all directions at
# once, and time advances by the strong-stability-preserving two-stage method (`heun`).
#
# Gravity, a given potential phi constant in time, is balanced. With w_{i+1/2} = (rho_i + rho_{i+1}) / 2 (phi_{i+1} -
# phi_i), the weight between two cells, a gas at rest with p_{i+1} - p_i = -w_{i+1/2} stays at rest to rounding:
# pressure is carried from the cells to the face by half the weight, only what differs from that is limited, and the
# source is
#
#     momentum  -(w_{i+1/2} + w_{i-1/2}) / 2 dx,      energy  -(F_{i+1/2} dphi_{i+1/2} + F_{i-1/2} dphi_{i-1/2}) / 2 dx
#
# with F the mass flux. Every operation is rounded on its own (no fused sums), so a trajectory does not depend on its
# neighbours in the batch in any bit. Axes: b trajectory, 5 variables, x, y cells; phi is (b, 1, x, y).

PRESSURE = 3


@runtime_checkable
class Beyond(Protocol):
    """What lies beyond the edges: adds `width` cells at both ends of a dimension."""

    def __call__(self, field: Tensor, dim: int, *, width: int) -> Tensor: ...


@dataclass(frozen=True)
class Euler:
    """The scheme: `rate` of change of conserved cell averages and the stable `time_step`, per trajectory.

    With gravity a state has a sixth channel, the potential at the cell's centre, which never changes. The grid is
    periodic unless `beyond` says otherwise (`ssno.pde.gas`).
    """

    axes: tuple[Axis, Axis]
    gamma: float = 1.4
    cfl: float = 0.4
    gravity: bool = False
    beyond: Beyond = wrap

    def rate(self, state: Float[Tensor, "b c x y"]) -> Float[Tensor, "b c x y"]:
        """d/dt of every cell average."""
        primitive = to_primitive(state[:, :5], gamma=self.gamma)
        total = torch.zeros_like(state)
        gas = total[:, :5]
        for normal, (dim, axis) in enumerate(zip((-2, -1), self.axes, strict=True), start=1):
            padded = self.beyond(primitive, dim, width=2)
            steps = differences(padded, dim)
            rise = weight = None
            if self.gravity:
                rise = differences(self.beyond(state[:, 5:], dim, width=2), dim)
                weight = _means(padded[:, :1], dim).mul_(rise)
                steps[:, PRESSURE : PRESSURE + 1].add_(weight)
            left, right = _face_states(padded, steps, weight, dim)
            flux = hllc_flux(left, right, gamma=self.gamma, normal=normal)
            gas.sub_(differences(flux, dim).div_(axis.spacing))
            if rise is not None and weight is not None:
                faces = flux.shape[dim]
                work = flux[:, :1] * rise.narrow(dim, 1, faces)
                gas[:, normal : normal + 1].sub_(_means(weight.narrow(dim, 1, faces), dim).div_(axis.spacing))
                gas[:, 3:4].sub_(_means(work, dim).div_(axis.spacing))
        return total

    def time_step(self, state: Float[Tensor, "b c x y"]) -> Float[Tensor, " b"]:
        """cfl / max over cells of sum over axes of (|velocity| + sound speed) / dx."""
        primitive = to_primitive(state[:, :5], gamma=self.gamma)
        sound = sound_speed(primitive[:, 0], primitive[:, 3], gamma=self.gamma)
        crossings = torch.zeros_like(sound)
        for normal, axis in enumerate(self.axes, start=1):
            crossings.add_(primitive[:, normal].abs().add_(sound).div_(axis.spacing))
        return self.cfl / crossings.flatten(1).amax(dim=1)


def heun(
    rate: Callable[[Tensor], Tensor], state: Float[Tensor, "b c *cells"], dt: Float[Tensor, " b"]
) -> Float[Tensor, "b c *cells"]:
    """Two Euler steps, then the mean of start and end: second order, and no new extrema if one step makes none."""
    column = dt.reshape(-1, *[1] * (state.ndim - 1))
    once = rate(state).mul_(column).add_(state)
    return rate(once).mul_(column).add_(once).add_(state).mul_(0.5)


def cell_averages(
    function: Callable[[Tensor, Tensor], Tensor], axes: Sequence[Axis], *, samples: int = 4
) -> Float[Tensor, "c x y"]:
    """Averages over cells of a function of (x, y) that returns (channel, x, y): mean of `samples`^2 points a cell."""
    fine = []
    for axis in axes:
        inner = (torch.arange(samples, dtype=torch.float64) + 0.5) / samples - 0.5
        centres = torch.from_numpy(axis.coordinates())
        fine.append((centres[:, None] + axis.spacing * inner).flatten())
    values = function(*torch.meshgrid(*fine, indexing="ij"))
    return values.unflatten(-1, (-1, samples)).unflatten(-3, (-1, samples)).mean(dim=(-3, -1))


def _means(field: Float[Tensor, "b c *any"], dim: int) -> Tensor:
    """Arithmetic mean of neighbours; one shorter along `dim`."""
    size = field.shape[dim] - 1
    return (field.narrow(dim, 1, size) + field.narrow(dim, 0, size)).mul_(0.5)


def _face_states(padded: Conserved, steps: Tensor, weight: Tensor | None, dim: int) -> tuple[Tensor, Tensor]:
    """Primitive states on both sides of every face; hydrostatic pressure is carried over, the rest is limited."""
    left, right = face_states(padded, steps, dim)
    if weight is not None:
        carried = weight.narrow(dim, 1, left.shape[dim]) * 0.5
        left[:, PRESSURE : PRESSURE + 1].sub_(carried)
        right[:, PRESSURE : PRESSURE + 1].add_(carried)
    return left, right


# A quarter of a flow that is unchanged by quarter turns about the centre of its periodic square.
#
#     scalar(R x) = scalar(x),      velocity(R x) = R velocity(x),      R (x, y) = (-y, x)
#
# Only the cells with x, y > 0 are stored; those beyond an edge are cells of the same quarter, turned. To the left of it
# lies the quarter turned by R, and so it does to the right (through the periodic wall); below and above lies the
# quarter turned back. One fourth of the work, and the symmetry is kept to the last bit.
#
# Fields are (batch, channel, x, y) with channels (rho, u, v, ...) of which the second and third are a vector, or a
# single scalar channel. Axes: b batch, c channel, x, y cells.

Cells = Float[Tensor, "b c x y"]


def turned_wrap(field: Float[Tensor, "b c n n"], dim: int, *, width: int) -> Cells:
    """Add `width` cells of the turned neighbours at both ends of dimension -2 or -1, as `finite_volume.wrap` does."""
    size = field.shape[-1]
    # A column of the turned quarter is a row of the quarter itself, so ghost cells are slices across, transposed.
    across = -3 - dim
    near = turn(field.narrow(across, 0, width), forward=dim == -2)
    far = turn(field.narrow(across, size - width, width), forward=dim == -2)
    return torch.cat([near.flip(dim), field, far.flip(dim)], dim=dim)


def unfold(quarter: Float[Tensor, "b c n n"]) -> Float[Tensor, "b c m m"]:
    """The whole square, m = 2 n, from the quarter with x, y > 0."""
    second = turn(quarter, forward=True).flip(-2)  # x < 0 < y
    right = torch.cat([turn(quarter, forward=False).flip(-1), quarter], dim=-1)
    third = quarter.flip(-2, -1)
    if quarter.shape[1] > 1:
        third[:, 1:3].neg_()
    return torch.cat([torch.cat([third, second], dim=-1), right], dim=-2)


def turn(field: Cells, *, forward: bool) -> Float[Tensor, "b c y x"]:
    """Swap the axes and turn the vector: by R (`forward`) to (-v, u), or back to (v, -u)."""
    turned = field.transpose(-2, -1)
    if field.shape[1] == 1:
        return turned
    u, v = turned[:, 1:2], turned[:, 2:3]
    return torch.cat([turned[:, :1], -v if forward else v, u if forward else -u, turned[:, 3:]], dim=1)
