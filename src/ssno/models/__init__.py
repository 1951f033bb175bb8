"""Whole models: SS-NO, the baselines it is compared with, and their registry."""
