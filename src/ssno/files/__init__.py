"""Files that are whole or absent. Imports nothing of ours."""
