"""What `import ssno` offers."""

import pytest

import ssno


def test_every_public_name_is_there() -> None:
    for name in ssno.__all__:
        assert getattr(ssno, name) is not None
    assert set(ssno.HOME) | {"__version__"} == set(ssno.__all__)


def test_unknown_names_say_what_there_is() -> None:
    with pytest.raises(AttributeError, match="module 'ssno' has no attribute 'SNO'; it offers SSNO"):
        _ = ssno.SNO
