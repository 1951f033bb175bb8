"""State-space mathematics on plain tensors: modes, kernels, and exact ways to apply them. No learnable modules."""
