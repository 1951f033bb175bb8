"""Learnable pieces built from `ssno.ssm`: modes, scans, sweeps, memory, and the pointwise maps around them."""
