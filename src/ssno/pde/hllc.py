"""The HLLC flux: Euler's Riemann problem with three waves, of which the middle one is a contact.

    S_L <= S_M <= S_R      fastest left-going wave, contact, fastest right-going wave

Between an outer wave S_K (K = L or R) and the contact the state is

    rho* = rho_K (S_K - u_K) / (S_K - S_M),      u* = S_M,      v* = v_K,      c* = c_K
    E*   = rho* [E_K / rho_K + (S_M - u_K)(S_M + p_K / (rho_K (S_K - u_K)))]

and the flux is F_K + min(S_L, 0) (U* - U_L) on the left of the contact, with max(S_R, 0) on its right. Because the
contact is a wave of its own, a jump in density or dye at equal pressure and velocity is kept as it is; its flux is
exactly the pressure if nothing moves. Outer speeds are Einfeldt's: the sound speed of Roe's average, or that of the
states themselves if faster, which keeps density and pressure positive.

Tangential momentum and dye travel with the mass: their fluxes are v_K and c_K times the mass flux.
Axes: b trajectory, 5 variables (rho, normal velocity, tangential velocity, p, c), *faces.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from ssno.pde.gas import sound_speed

States = Float[Tensor, "b 5 *faces"]


def hllc_flux(left: States, right: States, *, gamma: float, normal: int, out: States | None = None) -> States:
    """Flux of (rho, rho u, rho v, E, rho c) through faces between two primitive states.

    `normal` is 1 for faces across x, where u is the normal velocity, and 2 for faces across y.
    """
    slowest, fastest, middle = wave_speeds(left, right, gamma=gamma, normal=normal)
    from_left = middle >= 0
    upwind = torch.where(from_left[:, None], left, right)
    density, velocity, pressure = upwind[:, 0], upwind[:, normal], upwind[:, 3]
    tangential = upwind[:, 3 - normal]
    outer = torch.where(from_left, slowest, fastest)
    weight = torch.where(from_left, slowest.clamp_max_(0), fastest.clamp_min_(0))

    inflow = (outer - velocity).mul_(density)  # rho (S - u)
    star = inflow / (outer - middle)
    momentum = density * velocity
    energy = (momentum * velocity).add_(density * tangential * tangential).mul_(0.5).add_(pressure / (gamma - 1))
    jump = middle - velocity
    star_energy = (pressure / inflow).add_(middle).mul_(jump).add_(energy / density).mul_(star)

    flux = torch.empty_like(left) if out is None else out
    mass = flux[:, 0]
    torch.sub(star, density, out=mass).mul_(weight).add_(momentum)
    along = flux[:, normal]
    torch.mul(star, middle, out=along).sub_(momentum).mul_(weight).add_(momentum.mul_(velocity)).add_(pressure)
    torch.mul(mass, tangential, out=flux[:, 3 - normal])
    torch.mul(mass, upwind[:, 4], out=flux[:, 4])
    torch.sub(star_energy, energy, out=flux[:, 3]).mul_(weight)
    flux[:, 3].add_(energy.add_(pressure).mul_(velocity))
    return flux


def wave_speeds(
    left: States, right: States, *, gamma: float, normal: int
) -> tuple[Float[Tensor, "b *faces"], Float[Tensor, "b *faces"], Float[Tensor, "b *faces"]]:
    """S_L, S_R and S_M: Einfeldt's outer speeds and the contact that balances mass and momentum."""
    rho_l, u_l, p_l = left[:, 0], left[:, normal], left[:, 3]
    rho_r, u_r, p_r = right[:, 0], right[:, normal], right[:, 3]
    c_l, c_r = sound_speed(rho_l, p_l, gamma=gamma), sound_speed(rho_r, p_r, gamma=gamma)
    root_l, root_r = rho_l.sqrt(), rho_r.sqrt()
    share_l = root_l / (root_l + root_r)
    share_r = 1 - share_l
    mean = (share_l * u_l).add_(share_r * u_r)
    step = u_r - u_l
    squared = (share_l * c_l).mul_(c_l).add_((share_r * c_r).mul_(c_r))
    sound = squared.add_(step.mul_(step).mul_(share_l.mul_(share_r)).mul_(0.5 * (gamma - 1))).sqrt_()
    slowest = torch.minimum(u_l - c_l, mean - sound)
    fastest = torch.maximum(u_r + c_r, mean.add_(sound))
    flow_l = (slowest - u_l).mul_(rho_l)
    flow_r = (fastest - u_r).mul_(rho_r)
    middle = (p_r - p_l).add_(flow_l * u_l).sub_(flow_r * u_r).div_(flow_l.sub_(flow_r))
    return slowest, fastest, middle
