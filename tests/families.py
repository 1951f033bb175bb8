"""Which models come in which dimensions, for tests of all of them."""

from ssno.models.registry import model_config


def supported(name: str, n_dims: int) -> bool:
    """Whether a model of this name is made for grids of so many axes."""
    try:
        model_config(f"{name}:tiny", n_dims=n_dims)
    except ValueError:
        return False
    return True
