"""Runs on disk: their description, options, folder, checkpoints, log, and the forecasters they leave behind."""
