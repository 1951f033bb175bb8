"""The training loop, its options, exact resume, and the description of a run."""
