"""Requirements on arguments, each with one message: which argument, what it must be, what came."""


def require_one_of(name: str, value: object, allowed: tuple[object, ...]) -> None:
    """Refuse an option that is not in the list."""
    if value not in allowed:
        raise ValueError(f"`{name}` must be one of {', '.join(map(repr, allowed))}, got {value!r}.")


LARGEST_SEED = 2**63 - 1
"""What PyTorch's generators and HDF5's attributes hold."""


def require_seed(value: int) -> None:
    """Refuse a seed that no generator takes."""
    if value < 0:
        raise ValueError(f"`seed` must be 0 or more, got {value}.")
    if value > LARGEST_SEED:
        raise ValueError(f"`seed` must be at most {LARGEST_SEED}, got {value}.")


def require_positive(name: str, value: int) -> None:
    """Refuse a count below one."""
    if value < 1:
        raise ValueError(f"`{name}` must be at least 1, got {value}.")


def require_pairs(name: str, states: int) -> None:
    """Refuse a number of states that is not a positive number of conjugate pairs."""
    if states < 2 or states % 2:
        raise ValueError(
            f"`{name}` counts states in conjugate pairs and must be even and positive, got {states}. "
            f"Use {max(2, states + states % 2)}."
        )
