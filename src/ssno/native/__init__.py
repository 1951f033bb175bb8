"""Compiled code, built on demand with the system's C compiler; everything works without it, slower."""
