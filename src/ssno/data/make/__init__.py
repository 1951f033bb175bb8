"""Generating datasets: plans, production lines, continuation."""
