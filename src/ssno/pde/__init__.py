"""Equations, time integrators and initial conditions: batched, float64, on one thread. Knows nothing of learning.

An equation says what (`equations`, `finite_volume`), an integrator how (`integrators`, `marching`), a rollout how
often (`rollout`). Problems join them with a grid and a distribution of initial conditions.
"""
