"""How to solve: time integrators, fluxes, rollouts."""
