"""Normalisers: fitted on the training split, inverted exactly, stored exactly."""

import json

import numpy as np
import pytest
import torch

from ssno.data.normalise import AffineMap, Moments, Normaliser, fit, summarise
from ssno.data.trajectories import Trajectories


def dataset(values: np.ndarray, **options) -> Trajectories:
    return Trajectories.from_array(values, **options)


@pytest.fixture
def two_fields() -> np.ndarray:
    rng = np.random.default_rng(3)
    return rng.normal(size=(7, 5, 2, 8)) * np.array([1.0, 30.0])[:, None] + np.array([0.0, 400.0])[:, None]


def test_minmax_maps_the_training_split_onto_the_unit_interval(two_fields) -> None:
    data = dataset(two_fields)
    encoded = fit(data, "minmax").state.encode(data.read(slice(None)).state)
    flat = encoded.movedim(2, 0).flatten(1)
    torch.testing.assert_close(flat.amin(1), torch.zeros(2))
    torch.testing.assert_close(flat.amax(1), torch.ones(2))


def test_zscore_gives_every_channel_mean_zero_and_deviation_one(two_fields) -> None:
    data = dataset(two_fields)
    flat = fit(data, "zscore").state.encode(data.read(slice(None)).state).double().movedim(2, 0).flatten(1)
    torch.testing.assert_close(flat.mean(1), torch.zeros(2, dtype=torch.float64), atol=1e-6, rtol=0)
    torch.testing.assert_close(flat.std(1, correction=0), torch.ones(2, dtype=torch.float64), rtol=1e-6, atol=0)


def test_none_changes_nothing(two_fields) -> None:
    data = dataset(two_fields)
    state = data.read(slice(None)).state
    assert torch.equal(fit(data, "none").state.encode(state), state)


@pytest.mark.parametrize("method", ["minmax", "zscore", "none"])
def test_decoding_undoes_encoding_to_rounding(two_fields, method) -> None:
    data = dataset(two_fields)
    normaliser = fit(data, method).state
    state = data.read(slice(None)).state
    torch.testing.assert_close(normaliser.decode(normaliser.encode(state)), state, rtol=1e-6, atol=1e-6)
    exact = state.double()
    torch.testing.assert_close(normaliser.decode(normaliser.encode(exact)), exact, rtol=1e-14, atol=1e-12)


@pytest.mark.parametrize("method", ["minmax", "zscore"])
def test_a_constant_channel_maps_to_zero_and_comes_back(method) -> None:
    values = np.random.default_rng(0).normal(size=(3, 4, 2, 6))
    values[:, :, 1] = 0.1
    data = dataset(values)
    normaliser = fit(data, method).state
    state = data.read(slice(None)).state
    encoded = normaliser.encode(state)
    assert torch.equal(encoded[:, :, 1], torch.zeros(3, 4, 6))
    assert torch.equal(normaliser.decode(encoded)[:, :, 1], state[:, :, 1])
    assert torch.isfinite(normaliser.encode(state + 1)).all()


@pytest.mark.parametrize("method", ["minmax", "zscore", "none", "per_sample_minmax"])
def test_json_keeps_every_bit(two_fields, method) -> None:
    for normaliser in fit(dataset(two_fields / 3), method):
        assert Normaliser.from_json(json.loads(json.dumps(normaliser.to_json()))) == normaliser


def test_a_large_mean_does_not_cancel() -> None:
    rng = np.random.default_rng(1)
    values = (2.0**20 + rng.integers(0, 2, size=(64, 4, 1, 16))).astype(np.float32)  # deviation 1/2, mean a million
    summary = summarise(dataset(values), size=4096)
    assert summary.state.std == pytest.approx(values.astype(np.float64).std(), rel=1e-12)


def test_statistics_do_not_depend_on_the_chunk_size(two_fields) -> None:
    data = dataset(two_fields)
    whole, pieces = summarise(data), summarise(data, size=1)
    for key in ("state", "state_change"):
        for name in ("count", "low", "high", "mean", "squares"):
            a, b = (getattr(getattr(summary, key), name) for summary in (whole, pieces))
            np.testing.assert_allclose(a, b, rtol=1e-12)


def test_increments_are_those_of_the_selected_frames() -> None:
    ramp = np.broadcast_to(np.arange(10.0)[None, :, None, None] ** 2, (2, 10, 1, 4)).copy()
    data = dataset(ramp)
    assert fit(data).state.increment == pytest.approx([np.diff(np.arange(10.0) ** 2).std()])
    every_third = fit(data.select(time_index=slice(None, None, 3)), "zscore").state
    expected = np.diff(np.arange(0, 10.0, 3) ** 2).std()
    assert every_third.increment == pytest.approx([expected])
    assert every_third.encoded_increment == pytest.approx([expected / every_third.scale[0]])


def test_a_field_that_never_changes_has_unit_increment() -> None:
    assert fit(dataset(np.ones((2, 3, 1, 4)))).state.encoded_increment == (1.0,)


def test_context_has_its_own_normaliser(two_fields) -> None:
    data = dataset(two_fields, fields=("u", "f"), context_fields=("f",))
    norms = fit(data, "zscore", context_method="minmax")
    assert (norms.state.fields, norms.context.fields) == (("u",), ("f",))
    encoded = norms.context.encode(data.read(slice(None)).context)
    assert (encoded.amin(), encoded.amax()) == (0, 1)


def test_a_dataset_without_context_has_an_empty_context_normaliser(two_fields) -> None:
    data = dataset(two_fields)
    context = data.read(slice(None)).context
    assert fit(data).context.encode(context).shape == (7, 5, 0, 8)


def test_per_sample_minmax_uses_given_frames_only(two_fields) -> None:
    state = dataset(two_fields).read(slice(None)).state
    normaliser = fit(dataset(two_fields), "per_sample_minmax").state
    given = state[:, :2]
    bound = normaliser.bind(given)
    encoded = bound.encode(given)
    torch.testing.assert_close(encoded.movedim(2, 1).flatten(2).amin(-1), torch.zeros(7, 2))
    torch.testing.assert_close(encoded.movedim(2, 1).flatten(2).amax(-1), torch.ones(7, 2))
    torch.testing.assert_close(bound.decode(bound.encode(state)), state, rtol=1e-5, atol=1e-5)
    later = state.clone()
    later[:, 2:] = 1e6
    assert torch.equal(normaliser.bind(later[:, :2]).encode(given), encoded)


def test_channels_may_be_along_another_dimension(two_fields) -> None:
    normaliser = fit(dataset(two_fields)).state
    state = dataset(two_fields).read(slice(None)).state
    assert torch.equal(normaliser.encode(state[:, 0], dim=1), normaliser.encode(state)[:, 0])


def test_moments_leave_out_and_count_what_is_not_finite() -> None:
    values = np.array([1.0, np.nan, 3.0, np.inf]).reshape(1, 4, 1, 1)
    moments = Moments.of(values)
    assert (moments.count, moments.bad, moments.low, moments.high, moments.mean) == (2, 2, 1, 3, 2)
    assert moments.std == 1


def test_statistics_of_nothing_are_refused(two_fields) -> None:
    with pytest.raises(ValueError, match="`data` 'array' has no trajectories"):
        summarise(dataset(two_fields).select(indices=[]))


GOOD = {"method": "minmax", "fields": ("u",), "shift": (0.0,), "scale": (1.0,), "increment": (1.0,)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "max"}, "`method` must be one of 'minmax', 'zscore', 'none', 'per_sample_minmax', got 'max'"),
        ({"shift": (0.0, 1.0)}, r"`shift` needs one number per field \('u',\)"),
        ({"scale": (float("nan"),)}, "`scale` must be finite"),
        ({"scale": (-1.0,)}, "`scale` and `increment` must not be negative"),
    ],
)
def test_impossible_normalisers_are_refused(as_users_call_it, change, message) -> None:
    with pytest.raises(ValueError, match=message):
        Normaliser(**(GOOD | change))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"extra": 1}, "A normaliser has the entries method, fields, shift, scale, increment, got"),
        ({"shift": "0"}, "`shift` of a normaliser is a list"),
        ({"fields": [1]}, "`fields` of a normaliser is a list"),
    ],
)
def test_damaged_json_is_refused(change, message) -> None:
    good = {key: list(value) if isinstance(value, tuple) else value for key, value in GOOD.items()}
    with pytest.raises(ValueError, match=message):
        Normaliser.from_json(good | change)


def test_wrong_channels_and_missing_given_frames_are_refused(two_fields) -> None:
    state = dataset(two_fields).read(slice(None)).state
    with pytest.raises(ValueError, match="this normaliser expects 2 channels"):
        fit(dataset(two_fields)).state.encode(state[:, :, :1])
    with pytest.raises(ValueError, match="this normaliser expects 1 channels of 3 trajectories"):
        AffineMap(torch.zeros(3, 1), torch.ones(3, 1)).encode(state[:, :, :1])
    with pytest.raises(ValueError, match=r"'per_sample_minmax' needs the `given` frames \(n, t, 2, \*grid\), got None"):
        fit(dataset(two_fields), "per_sample_minmax").state.encode(state)
