"""File formats, each in its own module: `recognise` a file by what is in it, `open` it as trajectories."""
