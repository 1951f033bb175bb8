"""Shards: The Well's layout, the same bytes every time, every value checked on the way in."""

import io
import time

import h5py
import numpy as np
import pytest

from ssno.data.storage import Layout, NotFinite, ShardEncoder
from ssno.pde.geometry import Axis

TIMES = np.linspace(0, 1, 5)


def layout(dimensions: int = 1, *, context: tuple[str, ...] = ()) -> Layout:
    axes = tuple(Axis(name, 2.0, 6 + i, offset=0.25, periodic=i < 2) for i, name in enumerate("xyz"[:dimensions]))
    return Layout(
        "demo",
        ("rho", "p"),
        axes,
        TIMES,
        context_fields=context,
        parameters={"viscosity": 0.5, "waves": 3},
        attributes={"seed": 4, "solver": "closed form"},
    )


def trajectory(layout: Layout, seed: int = 0, context_frames: int | None = None) -> dict[str, np.ndarray | None]:
    rng = np.random.default_rng(seed)
    context = None
    if context_frames is not None:
        context = rng.normal(size=(context_frames, len(layout.context_fields), *layout.grid))
    return {"state": rng.normal(size=(len(TIMES), 2, *layout.grid)), "context": context}


def encode(layout: Layout, *, count: int = 3, context_frames: int | None = None) -> bytes:
    encoder = ShardEncoder(layout, count=count)
    for seed in range(count):
        one = trajectory(layout, seed, context_frames)
        drawn = {"amplitude": np.arange(4.0) + seed, "sign": np.array(seed), "level": np.array(0.5 * seed)}
        encoder.append(one["state"], one["context"], parameters=drawn)
    return encoder.finish()


def opened(data: bytes) -> h5py.File:
    return h5py.File(io.BytesIO(data), "r")


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_every_field_of_every_trajectory_comes_back_as_float32(dimensions: int) -> None:
    shape = layout(dimensions)
    with opened(encode(shape)) as file:
        for channel, name in enumerate(shape.fields):
            stored = file["t0_fields"][name]
            assert stored.dtype == np.float32
            for seed in range(3):
                expected = trajectory(shape, seed)["state"][:, channel].astype(np.float32)
                np.testing.assert_array_equal(stored[seed], expected)


def test_context_is_stored_with_its_time_axis_or_without_if_constant() -> None:
    for frames, varying in ((len(TIMES), True), (1, False)):
        shape = layout(2, context=("force", "tracer"))
        with opened(encode(shape, context_frames=frames)) as file:
            assert list(file.attrs["context_fields"]) == ["force", "tracer"]
            assert list(file["t0_fields"].attrs["field_names"]) == ["rho", "p", "force", "tracer"]
            stored = file["t0_fields/tracer"]
            expected = trajectory(shape, 2, frames)["context"][:, 1].astype(np.float32)
            assert bool(stored.attrs["time_varying"]) is varying
            np.testing.assert_array_equal(stored[2], expected if varying else expected[0])


def test_the_layout_is_the_wells() -> None:
    with opened(encode(layout(2))) as file:
        assert file.attrs["dataset_name"] == "demo"
        assert file.attrs["grid_type"] == "cartesian"
        assert (file.attrs["n_spatial_dims"], file.attrs["n_trajectories"]) == (2, 3)
        assert {name: file.attrs[name] for name in file.attrs["simulation_parameters"]} == {
            "viscosity": 0.5,
            "waves": 3,
        }
        assert list(file["dimensions"].attrs["spatial_dims"]) == ["x", "y"]
        np.testing.assert_array_equal(file["dimensions/time"], TIMES)
        np.testing.assert_array_equal(file["dimensions/y"], layout(2).axes[1].coordinates())
        for order in range(3):
            names = list(file[f"t{order}_fields"].attrs["field_names"])
            assert names == (["rho", "p"] if order == 0 else [])
            for name in names:
                attributes = file[f"t{order}_fields"][name].attrs
                assert all((attributes["sample_varying"], attributes["time_varying"], *attributes["dim_varying"]))
        boundary = file["boundary_conditions/x_boundary"]
        assert (boundary.attrs["bc_type"], list(boundary.attrs["associated_dims"])) == ("periodic", ["x"])
        assert boundary["mask"].shape == (6,)
        assert boundary["values"].shape == (np.sum(boundary["mask"]),)


def test_an_axis_that_does_not_repeat_is_open_and_keeps_its_length_and_offset() -> None:
    with opened(encode(layout(3))) as file:
        assert file["boundary_conditions/z_boundary"].attrs["bc_type"] == "open"
        attributes = dict(file["dimensions/z"].attrs)
        assert (attributes["length"], attributes["offset"], bool(attributes["periodic"])) == (2.0, 0.25, False)


def test_scalar_parameters_can_be_stacked_and_vectors_are_listed_apart() -> None:
    with opened(encode(layout())) as file:
        scalars = file["scalars"]
        assert list(scalars.attrs["field_names"]) == ["sign", "level"]
        assert list(scalars.attrs["vector_names"]) == ["amplitude"]
        assert all(scalars[name].shape == (3,) for name in scalars.attrs["field_names"])
        np.testing.assert_array_equal(scalars["amplitude"][2], np.arange(4.0) + 2)
        assert (scalars["sign"].dtype, scalars["level"].dtype) == (np.int64, np.float64)


def test_two_shards_may_be_built_at_once() -> None:
    one, other = (ShardEncoder(layout(), count=1) for _ in range(2))
    one.append(np.zeros((5, 2, 6)))
    other.append(np.ones((5, 2, 6)))
    with opened(one.finish()) as first, opened(other.finish()) as second:
        assert (np.max(first["t0_fields/p"]), np.min(second["t0_fields/p"])) == (0, 1)


def test_the_same_content_gives_the_same_bytes_at_another_time() -> None:
    first = encode(layout(2))
    time.sleep(1.1)  # time stamps in HDF5 count seconds
    assert encode(layout(2)) == first


def test_a_chunk_is_one_trajectory_of_one_field_with_a_checksum() -> None:
    data = encode(layout())
    with opened(data) as file:
        stored = file["t0_fields/rho"]
        assert stored.chunks == (1, 5, 6)
        assert (stored.compression, stored.compression_opts, stored.shuffle, stored.fletcher32) == (
            "gzip",
            1,
            True,
            True,
        )
        offset, size = stored.id.get_chunk_info(1).byte_offset, stored.id.get_chunk_info(1).size
    damaged = bytearray(data)
    damaged[offset + size // 2] ^= 1
    with opened(bytes(damaged)) as file:
        file["t0_fields/rho"][0]
        with pytest.raises(OSError, match="filter|read"):
            file["t0_fields/rho"][1]


def test_values_that_are_not_finite_as_float32_are_refused_with_their_place() -> None:
    for bad in (np.nan, -np.inf, 1e39):
        encoder = ShardEncoder(layout(), count=2)
        encoder.append(trajectory(layout())["state"])
        state = trajectory(layout())["state"]
        state[3, 1, 2] = bad
        with pytest.raises(NotFinite, match=r"Trajectory 1 of the shard .* field 'p', frame 3 \(time 0.75\)"):
            encoder.append(state)
    with pytest.raises(NotFinite, match="Trajectory 0 of the shard .* parameter 'amplitude'"):
        ShardEncoder(layout(), count=1).append(state, parameters={"amplitude": np.array([0.0, np.nan])})


def test_a_shard_must_get_what_it_declared() -> None:
    with pytest.raises(ValueError, match="`count` must be at least 1, got 0"):
        ShardEncoder(layout(), count=0)
    encoder = ShardEncoder(layout(), count=1)
    with pytest.raises(ValueError, match="0 of 1 trajectories; append the rest"):
        encoder.finish()
    with pytest.raises(ValueError, match=r"`state` must be .* = \(5, 2, 6\), got \(4, 2, 6\)"):
        encoder.append(np.zeros((4, 2, 6)))
    encoder.append(np.zeros((5, 2, 6)))
    with pytest.raises(ValueError, match="declared with `count=1` trajectories; one more came"):
        encoder.append(np.zeros((5, 2, 6)))


def test_context_must_fit_the_layout_and_not_change_its_kind() -> None:
    state = np.zeros((5, 2, 6))
    encoder = ShardEncoder(layout(context=("force",)), count=3)
    with pytest.raises(ValueError, match=r"`context` is missing; this layout has the fields \('force',\)"):
        encoder.append(state)
    with pytest.raises(ValueError, match=r"with 1 or 5 times, .* got \(2, 1, 6\)"):
        encoder.append(state, np.zeros((2, 1, 6)))
    encoder.append(state, np.zeros((1, 1, 6)))
    with pytest.raises(ValueError, match=r"the same for all trajectories; got \(5, 1, 6\)"):
        encoder.append(state, np.zeros((5, 1, 6)))


def test_parameters_must_be_alike() -> None:
    encoder = ShardEncoder(layout(), count=2)
    encoder.append(np.zeros((5, 2, 6)), parameters={"a": np.zeros(2)})
    with pytest.raises(ValueError, match="`parameters` must have the same names and shapes"):
        encoder.append(np.zeros((5, 2, 6)), parameters={"a": np.zeros(3)})


def test_names_must_be_unique() -> None:
    axes = (Axis("x", 1.0, 4),)
    for fields, context in (((), ()), (("u", "u"), ()), (("u",), ("u",)), (("",), ())):
        with pytest.raises(ValueError, match="need different, non-empty names"):
            Layout("demo", fields, axes, TIMES, context_fields=context)
    for name in (".", "a/./b", "/u", "u/", "a\0b"):
        with pytest.raises(ValueError, match="A field cannot be called .* in an HDF5 file"):
            Layout("demo", (name,), axes, TIMES)
    with pytest.raises(ValueError, match="Root attributes are given twice: seed"):
        Layout("demo", ("u",), axes, TIMES, parameters={"seed": 1}, attributes={"seed": 2})
