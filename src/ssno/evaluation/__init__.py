"""Rollouts against truth, tables, cost, baselines that need no training."""
