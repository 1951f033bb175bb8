"""Names that do not exist: the nearest one is offered."""

from ssno.base import did_you_mean, nearest, unknown_name


def test_the_nearest_name_is_offered() -> None:
    assert nearest("burger", ["ks", "burgers"]) == "burgers"
    assert nearest("tme", ["batch", "time"], cutoff=0.95) is None
    assert did_you_mean("xyz", ["ks"]) == ""
    assert unknown_name("fnno", ["fno", "ffno"], kind="model") == (
        "Unknown model `fnno`. Did you mean `fno`? Known: fno, ffno."
    )
    assert unknown_name("a", []) == "Unknown name `a`. Known: none."
