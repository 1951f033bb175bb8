"""Whole experiments, from data to pictures, each one frozen dataclass."""
