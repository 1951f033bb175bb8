"""The paper's theory as functions: recovery of Fourier layers by state-space layers, and the field of view."""
