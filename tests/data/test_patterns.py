"""Names for axes."""

import numpy as np
import pytest

from ssno.data.errors import DataError
from ssno.data.readers.arrays import MemoryArray, Packing
from ssno.data.readers.blocks import Block, Part, Pattern, parse_pattern


def test_short_and_long_words_mean_the_same() -> None:
    assert parse_pattern("b t c x") == parse_pattern("Batch, Time, Channel, X") == parse_pattern("n t field x")


def test_space_axes_called_x_y_z_are_sorted_and_others_kept_in_order() -> None:
    assert parse_pattern("time z x y").space == ("x", "y", "z")
    assert parse_pattern("time lon lat").space == ("lon", "lat")


def test_a_pattern_prints_as_it_is_written() -> None:
    assert str(parse_pattern("batch time 1 x")) == "batch time 1 x"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("batch time", "names 0 space axes, expected 1 to 3"),
        ("", "names 0 space axes"),
        ("time p q r s", "names 4 space axes, expected 1 to 3"),
        ("time x x", "names x more than once"),
        ("t time x", "names time more than once"),
        ("batch time x-1", "has the word 'x-1', which is not a name"),
        ("bach time x", "has the word 'bach'; did you mean 'batch'"),
        ("batch tim x", "did you mean 'time'"),
        ("site time y x", r"'site', which would be a third space axis beside y and x\. Call it batch if"),
    ],
)
def test_patterns_that_say_nothing_clear_are_refused(text, message) -> None:
    with pytest.raises(DataError, match=message):
        parse_pattern(text)


def block(pattern: str, *shape: int, **options) -> Block:
    values = np.arange(float(np.prod(shape))).reshape(shape)
    return Block(MemoryArray(values, "it"), Pattern(tuple(pattern.split())), ("x",), **options)


def test_packed_numbers_are_unpacked_and_missing_ones_become_nan() -> None:
    packed = block("time x", 2, 3, packing=Packing(scale=0.5, shift=10.0, missing=(4.0,)))
    values = packed.read(slice(None), slice(None), (1,))[0, :, 0]
    np.testing.assert_array_equal(values, [[10, 10.5, 11], [11.5, np.nan, 12.5]])


def test_channels_are_taken_in_the_order_asked_for() -> None:
    values = block("time x channel", 1, 2, 4, channels=(3, 1)).read(slice(None), slice(None), (1,))
    np.testing.assert_array_equal(values[0, 0], [[3, 7], [1, 5]])


def test_blocks_that_do_not_fit_are_refused() -> None:
    state = block("batch time x", 2, 3, 4)
    with pytest.raises(DataError, match=r"it has channels 0 to 1, asked for \(2,\)"):
        block("time x channel", 2, 3, 2, channels=(2,))
    with pytest.raises(DataError, match="it has 5 points along x, but it has 4"):
        Part((state,), (block("batch x", 2, 5),))
    with pytest.raises(DataError, match="it has 3 trajectories, but it has 2"):
        Part((state,), (block("batch x", 3, 4),))
    with pytest.raises(DataError, match="it has 2 frames, but it has 3"):
        Part((state,), (block("time x", 2, 4),))


def test_fields_without_time_or_batch_are_repeated() -> None:
    part = Part((block("batch time x", 2, 3, 4),), (block("batch x", 2, 4), block("x", 4), block("batch", 2)))
    state, context = part.read(slice(1, 2), slice(0, 3, 2), (2,))
    assert (state.shape, context.shape) == ((1, 2, 1, 2), (1, 2, 3, 2))
    np.testing.assert_array_equal(context[0, :, 2], 1)
    np.testing.assert_array_equal(context[0, :, 0], [[4, 6], [4, 6]])
    np.testing.assert_array_equal(context[0, :, 1], [[0, 2], [0, 2]])
