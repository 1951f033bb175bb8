"""Errors and spectra as functions on tensors. Imports nothing of ours."""
