"""AirfRANS's files: every encoding of VTK's XML, cases in contour order, and damage by name."""

import itertools
import math
import os
import pickle
import subprocess
import textwrap
import venv
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from ssno.data.errors import DataError
from ssno.data.load import load_dataset
from ssno.data.readers.airfrans import case_fields, contour_order, inlet_of, open_airfrans, open_file
from ssno.data.readers.inspection import inspect_data
from ssno.data.readers.registry import ReadOptions
from ssno.data.sandbox.parent import contents_of
from ssno.data.sandbox.vtk_xml import read_vtk
from ssno.data.trajectories import Trajectories
from ssno.forecasting.cloud_scores import CloudScores, contour_force, lift_coefficient
from ssno.pde.geometry import POINT_CLOUD
from ssno.pde.problems.kt_foil import Foil, FoilFlow

from .airfrans_files import Encoding, Writer, write_airfrans, write_case


def open_tensors(path: Path, *, points: int = 9) -> Trajectories:
    return open_file(contents_of(path), ReadOptions(), points=points)["all"]


ENCODINGS = [
    Encoding(layout, compressor, word, order)
    for layout, compressor in itertools.product(("binary", "raw", "base64"), ("zlib", "lzma", ""))
    for word, order in (("u4", "<"), ("u8", ">"))
] + [Encoding("ascii")]


@pytest.mark.parametrize("encoding", ENCODINGS, ids=str)
def test_every_encoding_gives_the_same_numbers(tmp_path: Path, encoding: Encoding) -> None:
    rng = np.random.default_rng(0)
    points, fields = (
        rng.normal(size=(150, 3)),
        {"p": rng.normal(size=150).astype(np.float32), "U": rng.normal(size=(150, 3))},
    )
    lines = np.stack([np.arange(150), (np.arange(150) + 1) % 150], axis=1)
    Writer(encoding).write(tmp_path / "a.vtp", "PolyData", points, fields, lines=lines)
    found = read_vtk(tmp_path / "a.vtp")
    np.testing.assert_array_equal(found.points, points)
    np.testing.assert_array_equal(found.lines, lines)
    for name, values in fields.items():
        np.testing.assert_array_equal(found.fields[name], values)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((b"vtkZLibDataCompressor", b"vtkLZ4DataCompressor"), "is compressed by 'vtkLZ4DataCompressor'"),
        ((b'NumberOfPoints="150"', b'NumberOfPoints="151"'), "holds 450 numbers, declared are 453"),
        ((b'NumberOfPoints="150"', b'NumberOfPoints="99999999999"'), "more than a file of this size can hold"),
        ((b'NumberOfPoints="150"', b'NumberOfPoints="15"'), "unpacks to more than its"),
        ((b"<VTKFile", b"<!DOCTYPE x><VTKFile"), "defines entities"),
        ((b"VTKFile", b"HTMFile"), "its root is <HTMFile>"),
        ((b"</VTKFile>", b""), "is not a complete VTK file"),
        ((b'type="Float64"', b'type="String"'), "holds 'String', which is not read"),
        ((b"<Piece", b"<Piece/><Piece"), "has 2 pieces"),
        ((b"<Points>", b"<Pointz>"), "is not a complete VTK file"),
    ],
)
def test_damaged_files_are_refused_by_name(tmp_path: Path, change: tuple[bytes, bytes], message: str) -> None:
    points = np.random.default_rng(0).normal(size=(150, 3))
    Writer().write(tmp_path / "a.vtu", "UnstructuredGrid", points, {"p": points[:, 0].copy()})
    content = (tmp_path / "a.vtu").read_bytes()
    (tmp_path / "a.vtu").write_bytes(content.replace(*change))
    with pytest.raises(DataError, match=message):
        read_vtk(tmp_path / "a.vtu")


@pytest.mark.parametrize("encoding", [Encoding(), Encoding("raw", ""), Encoding("raw", "zlib"), Encoding("binary", "")])
def test_a_file_cut_anywhere_is_a_data_error(tmp_path: Path, encoding: Encoding) -> None:
    points = np.random.default_rng(0).normal(size=(50, 3))
    Writer(encoding).write(tmp_path / "a.vtu", "UnstructuredGrid", points, {"p": points[:, 0].copy()})
    content = (tmp_path / "a.vtu").read_bytes()
    for kept in range(0, len(content) - 40, max(1, len(content) // 40)):
        (tmp_path / "b.vtu").write_bytes(content[:kept] + b"</AppendedData></VTKFile>")
        with pytest.raises(DataError):
            read_vtk(tmp_path / "b.vtu")


def test_lines_must_join_points_that_exist(tmp_path: Path) -> None:
    Writer().write(tmp_path / "a.vtp", "PolyData", np.zeros((3, 3)), {}, lines=np.array([[0, 1], [1, 7]]))
    with pytest.raises(DataError, match="lines between points that it does not have"):
        read_vtk(tmp_path / "a.vtp")


def test_a_folder_becomes_clouds_with_the_wall_in_order(tmp_path: Path) -> None:
    write_airfrans(tmp_path / "Dataset")
    data = open_airfrans(tmp_path / "Dataset", points=300)
    assert {split: len(found) for split, found in data.items()} == {"train": 1, "valid": 1, "test": 1}
    test = data["test"]
    assert test.fields == ("v_x", "v_y", "p", "nu_t")
    assert test.geometry is POINT_CLOUD
    assert (test.parameters["speed"].tolist(), test.parameters["angle"].tolist()) == ([42.0], [9.0])
    frames = test.read([0])
    x, y, distance, normal_x, normal_y = frames.context[0, 0].double().numpy()
    wall = np.arange(300) < 64
    assert np.all((np.hypot(normal_x, normal_y) > 0.99) == wall)
    assert np.all((distance == 0) == wall)
    assert (x * np.roll(y, -1) - np.roll(x, -1) * y)[:63].sum() > 0  # counter-clockwise
    assert (normal_x * (x - 0.4) + normal_y * y)[:64].mean() > 0  # outwards
    assert frames.state[0, 1, :2, :64].count_nonzero() == 0
    assert frames.state[0, 0, 0, 0].item() == pytest.approx(42 * math.cos(math.radians(9)), rel=1e-6)
    scores = CloudScores(test.fields, test.context_fields)
    scores.add(frames.state[:, 1:], frames.state[:, 1:], frames, None)
    exact = FoilFlow(Foil(0.1, 0.05, 0.2), 42.0, math.radians(9)).lift_coefficient
    assert scores.true_lifts[0] == pytest.approx(exact, abs=4e-3)


def test_folders_are_found_by_load_dataset_and_their_draw_is_fixed(tmp_path: Path) -> None:
    write_airfrans(tmp_path)
    one, two = (open_airfrans(tmp_path, points=200)["test"].read([0]).context for _ in range(2))
    assert torch.equal(one, two)
    with pytest.raises(DataError, match="has 640 nodes, 64 on the wall; `points` must be between these, got 32768"):
        load_dataset(tmp_path, "test").read([0])
    with pytest.raises(DataError, match="has no list 'aoa_train'"):
        open_airfrans(tmp_path, task="aoa")


def test_names_hold_speed_and_angle() -> None:
    assert inlet_of("airFoil2D_SST_31.283_-4.156_0.919_6.98_14.32") == (31.283, -4.156)
    assert inlet_of("airFoil2D_SST_90_12_1_2_0_14.32") == (90.0, 12.0)
    with pytest.raises(DataError, match="'airFoil2D_SST_1_2' is not a case of AirfRANS"):
        inlet_of("airFoil2D_SST_1_2")


def test_contours_that_do_not_close_are_refused() -> None:
    place = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [5.0, 5.0], [6.0, 5.0], [5.0, 6.0]])
    clockwise = np.array([[1, 0], [0, 2], [2, 1]])
    assert contour_order(clockwise, place).tolist() in ([0, 1, 2], [1, 2, 0], [2, 0, 1])
    with pytest.raises(DataError, match="the wall is not a closed line"):
        contour_order(clockwise[:2], place)
    with pytest.raises(DataError, match="the wall is not one closed line"):
        contour_order(np.concatenate([clockwise, clockwise + 3]), place)


def test_missing_fields_and_strange_walls_are_named(tmp_path: Path) -> None:
    name = write_airfrans(tmp_path)[2]
    file = tmp_path / name / f"{name}_internal.vtu"
    content = file.read_bytes()
    file.write_bytes(content.replace(b'Name="nut"', b'Name="nat"'))
    with pytest.raises(DataError, match="the internal file lacks the field 'nut'"):
        open_airfrans(tmp_path, points=201)["test"].read([0])


def test_the_geometric_variant_is_the_same_case(tmp_path: Path) -> None:
    write_airfrans(tmp_path)
    frames = open_airfrans(tmp_path, points=300)["test"].read([0])
    mixed = torch.randperm(300)
    context, flow = frames.context[0, 0].T[mixed], frames.state[0, 1].T[mixed]
    inlet = frames.state[0, 0, :2, 0].expand(300, 2)
    case = {"pos": context[:, :2], "x": torch.cat([inlet, context[:, 2:]], 1), "y": flow, "surf": context[:, 2] == 0}
    torch.save([case], tmp_path / "AirfRANS.pt")
    found = open_tensors(tmp_path / "AirfRANS.pt", points=300).read([0])
    wall = [tuple(one) for one in found.context[0, 0, :2, :64].T.tolist()]
    expected = [tuple(one) for one in frames.context[0, 0, :2, :64].T.tolist()]
    start = wall.index(expected[0])
    assert wall[start:] + wall[:start] == expected
    for damaged, message in (
        ([], "holds no list of cases"),
        ([{"pos": 1}], "holds no list of cases"),
        ([{"pos": context}], "has no array '0/x'"),
        ([{**case, "pos": context.clone()}], "case 0 has shapes pos"),
        (case, "no list of dicts"),
        ([Path("x")], "it asks for 'pathlib PosixPath', which is no plain tensor"),
        ([{"pos": torch.eye(3).to_sparse()}], "it asks for 'torch.serialization _get_layout'"),
        ([{"pos": torch.zeros(2, dtype=torch.complex64)}], "it asks for 'torch ComplexFloatStorage'"),
        ([{1: torch.zeros(2)}], "a key of type int"),
        ([{"pos": {1, 2}}], "it asks for '__builtin__ set'"),
        ([{"pos": b"x"}], "it asks for '_codecs encode'"),
        ([{"pos": 10**700}], "the step LONG4, which plain tensors do not need"),
        ([{"pos": torch.zeros((1,) * 40)}], "a tensor without a storage, a shape and steps"),
    ):
        torch.save(damaged, tmp_path / "b.pt")
        with pytest.raises(DataError, match=message):
            open_tensors(tmp_path / "b.pt")


def test_the_list_of_tensors_is_read_not_run(tmp_path: Path) -> None:
    def archive(pickle: bytes, **changes: int) -> Path:
        with zipfile.ZipFile(tmp_path / "b.pt", "w") as file:
            file.writestr("b/data.pkl", pickle, **changes)
        return tmp_path / "b.pt"

    huge = pickle.dumps([torch_like_bytes()], 2)
    for content, message in (
        (huge, "it asks for '__builtin__ bytearray', which is no plain tensor"),
        (b"\x80\x02]q\x00", "exhausted before seeing STOP"),
        (b"\x80\x02" + b"(" * 10 + b"t.", "damaged or incomplete"),
        (b"\x80\x02}R.", "damaged or incomplete"),
        (b"\x80\x02)}R.", "it asks for 'something made by the file'"),
    ):
        with pytest.raises(DataError, match=message):
            open_tensors(archive(content))
    with pytest.raises(DataError, match=r"b/data.pkl is compressed, which torch.save never does"):
        open_tensors(archive(b"]" * 10**6, compress_type=zipfile.ZIP_DEFLATED))
    torch.save([{"pos": torch.zeros(3)}], tmp_path / "b.pt", _use_new_zipfile_serialization=False)
    with pytest.raises(DataError, match=r"is not a ZIP file, as torch.save writes since PyTorch 1.6; save it again"):
        open_tensors(tmp_path / "b.pt")
    with zipfile.ZipFile(tmp_path / "b.pt", "w") as file:
        file.writestr("b/other", b"")
    with pytest.raises(DataError, match=r"0 members called data.pkl, expected one"):
        open_tensors(tmp_path / "b.pt")
    with zipfile.ZipFile(tmp_path / "b.pt", "w") as file:
        file.writestr("b/data.pkl", b"")
        file.writestr("b/byteorder", b"big")
    with pytest.raises(DataError, match="numbers with the high byte first"):
        open_tensors(tmp_path / "b.pt")


class torch_like_bytes:
    """Pickled, 40 bytes that become 12 GB."""

    def __reduce__(self) -> tuple[object, ...]:
        return bytearray, (12 * 2**30,)


def test_cases_that_share_their_numbers_are_refused(tmp_path: Path) -> None:
    case = {"pos": torch.zeros(99, 2), "x": torch.zeros(99, 5), "y": torch.zeros(99, 4), "surf": torch.ones(99).bool()}
    torch.save([dict(case) for _ in range(300)], tmp_path / "b.pt")
    with pytest.raises(DataError, match="more than the file: several share the same numbers"):
        open_tensors(tmp_path / "b.pt")
    torch.save([dict(case) for _ in range(3000)], tmp_path / "b.pt")
    with pytest.raises(DataError, match="more than 10000 tensors"):
        open_tensors(tmp_path / "b.pt")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_entities_are_refused_wherever_they_are_defined(tmp_path: Path, encoding: str) -> None:
    laughs = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))
    text = f'<!-- {"long" * 2000} --><!DOCTYPE x [<!ENTITY l0 "ha">{laughs}]><VTKFile>&l9;</VTKFile>'
    (tmp_path / "a.vtu").write_bytes(f'<?xml version="1.0" encoding="{encoding}"?>{text}'.encode(encoding))
    with pytest.raises(DataError, match="defines entities"):
        read_vtk(tmp_path / "a.vtu")


def test_pipes_are_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.pt")
    for read in (read_vtk, open_tensors, load_dataset):
        with pytest.raises(ValueError, match="is not a (regular )?file"):
            read(tmp_path / "pipe.pt")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"surf": torch.zeros(1, dtype=torch.bool).expand(10**13)}, "has more numbers than the file"),
        ({key: torch.zeros(1).expand(10**13, 2) for key in ("pos",)}, "has more numbers than the file"),
        (
            {"pos": torch.zeros(0, 2), "x": torch.zeros(0, 5), "y": torch.zeros(0, 4), "surf": torch.zeros(0).bool()},
            "case 0 has shapes",
        ),
        ({"pos": torch.zeros(3, 2, requires_grad=True)}, "case 0 has shapes"),
    ],
)
def test_tensors_that_are_larger_than_their_file_are_refused(tmp_path: Path, change: dict, message: str) -> None:
    case = {"pos": torch.zeros(9, 2), "x": torch.zeros(9, 5), "y": torch.zeros(9, 4), "surf": torch.ones(9).bool()}
    torch.save([{**case, **change}], tmp_path / "b.pt")
    with pytest.raises(DataError, match=message):
        open_tensors(tmp_path / "b.pt")


def test_the_geometric_file_is_found_by_load_dataset(tmp_path: Path) -> None:
    write_airfrans(tmp_path)
    frames = open_airfrans(tmp_path, points=300)["test"].read([0])
    context, flow = (part.repeat(110, 1) for part in (frames.context[0, 0].T, frames.state[0, 1].T))
    on_wall = torch.arange(len(flow)) < 64  # of 300 nodes, laid down 110 times, the first ones
    inlet = frames.state[0, 0, :2, 0].expand(len(flow), 2)
    case = {"pos": context[:, :2], "x": torch.cat([inlet, context[:, 2:]], 1), "y": flow, "surf": on_wall}
    torch.save([{key: values.clone() for key, values in case.items()} for _ in range(3)], tmp_path / "AirfRANS.pt")
    data = load_dataset(tmp_path / "AirfRANS.pt", "test", splits=(1, 1, 1))
    assert (data.name, data.geometry, len(data)) == ("airfrans", POINT_CLOUD, 1)
    assert torch.equal(data.read([0]).context[0, 0, 2, :64], torch.zeros(64))
    with pytest.raises(DataError, match="The published split of 'airfrans' takes 1000 trajectories"):
        load_dataset(tmp_path / "AirfRANS.pt", "train")
    found, sets = inspect_data(tmp_path / "AirfRANS.pt")
    assert (found.format, found.container, len(sets["all"])) == ("airfrans", "torch", 3)
    assert found.command.endswith("AirfRANS.pt --data.splits 0.8 0.1 0.1"), "less than the published split takes"
    with pytest.raises(DataError, match="does not take `dt`"):
        load_dataset(tmp_path / "AirfRANS.pt", "train", dt=0.1)


@pytest.mark.verify
def test_the_public_package_reads_our_files_and_finds_the_same_lift(tmp_path: Path) -> None:
    """In an environment of its own, with VTK; 600 MB."""
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "airfrans==0.1.5.1"], check=True, timeout=1800)
    flow = FoilFlow(Foil(0.1, 0.05, 0.2), 42.0, math.radians(9))
    name = write_case(tmp_path, flow, around=256, out=40)
    script = """
        import sys, airfrans
        case = airfrans.Simulation(*sys.argv[1:])
        print(len(case.position), case.surface.sum(), case.force_coefficient(reference=True)[1][1])
    """
    command = [python, "-c", textwrap.dedent(script), str(tmp_path), name]
    nodes, wall, lift = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600).stdout.split()
    assert (int(nodes), int(wall)) == (10240, 256)
    fields = {key: torch.from_numpy(value).double() for key, value in case_fields(tmp_path, name, 10240).items()}
    place, normals = fields["context"][:, :2, :256].mT, fields["context"][:, 3:, :256].mT
    inlet, pressure = fields["state"][:, 0, :2, 0], fields["state"][:, 1, 2, :256]
    averaged = lift_coefficient(contour_force(place, pressure, normals=normals), inlet)
    assert averaged.item() == pytest.approx(float(lift), rel=1e-7)
    sides = lift_coefficient(contour_force(place, pressure), inlet)
    assert abs(sides.item() - flow.lift_coefficient) < abs(float(lift) - flow.lift_coefficient) < 1e-3
