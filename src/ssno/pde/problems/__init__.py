"""Whole problems: initial states, solver, frames; one per dataset."""
