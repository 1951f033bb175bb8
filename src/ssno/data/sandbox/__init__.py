"""Readers of foreign files in a child process: `parent` asks, `child` answers."""
