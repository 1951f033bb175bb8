"""Which models come in which dimensions, for tests of all of them."""

from ssno.models.registry import ALL_MODELS


def supported(name: str, n_dims: int) -> bool:
    """Whether a model of this name is made for grids of so many axes."""
    try:
        ALL_MODELS[name].tiny(n_dims=n_dims)
    except ValueError:
        return False
    return True
