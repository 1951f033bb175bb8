"""The paper's theory as functions: recovery of Fourier layers by state-space layers, and the field of view."""

from ssno.theory.field_of_view import FieldOfView, depth_for_full_view, field_of_view, seen_in_jacobian
from ssno.theory.figures import plot_field_of_view
from ssno.theory.fno_recovery import FactorisedRecovery, Recovery, recover_ffno, recover_fno, spectral_matrices

__all__ = [
    "FactorisedRecovery",
    "FieldOfView",
    "Recovery",
    "depth_for_full_view",
    "field_of_view",
    "plot_field_of_view",
    "recover_ffno",
    "recover_fno",
    "seen_in_jacobian",
    "spectral_matrices",
]
