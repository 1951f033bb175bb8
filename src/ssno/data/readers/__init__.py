"""Foreign files: examined in a process of their own, recognised, opened as trajectories."""
