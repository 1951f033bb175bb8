"""A model together with its units: forecasts in the fields the user knows, on disk in one folder."""
