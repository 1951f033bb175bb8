"""The one error that a bad file, or a request that a file cannot serve, ends in."""


class DataError(ValueError):
    """A file is damaged, incomplete, hostile or not what was asked for; the message says which."""
