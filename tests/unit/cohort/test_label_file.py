"""Label maps become surfaces at the right place, whatever the axes of the image."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from prism.cohort import read_shape
from prism.cohort.facets import Facets
from prism.cohort.shape_file import ShapeFile
from prism.errors import CohortError

sitk = pytest.importorskip("SimpleITK")
SPACING, ORIGIN = np.array([0.8, 1.0, 1.5]), np.array([-40.0, 25.0, 310.0])
CENTRE, RADIUS = np.array([15.3, 13.8, 9.6]) * SPACING, 8.0
DIRECTIONS = {
    "straight": np.eye(3),
    "RAS": np.diag([-1.0, -1.0, 1.0]),
    "mirrored": np.diag([1.0, -1.0, 1.0]),
    "swapped": np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]]),
    "oblique": Rotation.from_euler("xyz", [20, -35, 50], degrees=True).as_matrix(),
}


def _ball(size: tuple[int, int, int] = (30, 28, 20)) -> np.ndarray:
    """(x, y, z) voxels whose centre lies in the ball."""
    index = np.stack(np.meshgrid(*map(np.arange, size), indexing="ij"), axis=-1)
    return np.linalg.norm(index * SPACING - CENTRE, axis=-1) < RADIUS


def _write(path: Path, values: np.ndarray, direction: np.ndarray | None = None) -> Path:
    image = sitk.GetImageFromArray(np.ascontiguousarray(values.T))
    n = values.ndim
    image.SetSpacing(SPACING[:n].tolist())
    image.SetOrigin(ORIGIN[:n].tolist())
    direction = np.eye(n) if direction is None else direction
    image.SetDirection(direction.ravel().tolist())
    sitk.WriteImage(image, str(path))
    return path


@pytest.mark.parametrize("suffix", ["nii.gz", "nii", "nrrd", "nhdr", "mha", "mhd"])
@pytest.mark.parametrize("name", DIRECTIONS)
def test_a_ball_is_where_it_was_put(tmp_path: Path, name: str, suffix: str) -> None:
    direction = DIRECTIONS[name]
    shape = read_shape(_write(tmp_path / f"a.{suffix}", _ball().astype(np.uint8), direction))
    away = np.linalg.norm(shape.points - (ORIGIN + direction @ CENTRE), axis=-1) - RADIUS
    voxel = SPACING.mean()
    assert abs(away.mean()) < 0.1 * voxel
    assert away.std() < 0.15 * voxel  # the staircase of a mask has 0.2
    assert np.abs(away).max() < 0.5 * SPACING.max()
    assert (shape.axes, shape.length_unit, shape.repairs) == ("LPS", "mm", ())
    volume = Facets.of(shape.points, shape.cells).volumes[0]
    assert volume == pytest.approx(4 / 3 * np.pi * RADIUS**3, rel=0.03)


def test_a_shape_cut_by_the_image_border_is_closed(tmp_path: Path) -> None:
    path = _write(tmp_path / "a.nrrd", _ball()[:16].astype(np.uint8))
    shape, faults = ShapeFile(path).examine()
    assert not faults
    border = ORIGIN[0] + 15.5 * SPACING[0]
    assert shape.box[1, 0] == pytest.approx(border, abs=0.25 * SPACING[0])


def test_labels_can_be_chosen(tmp_path: Path) -> None:
    values = np.where(_ball(), 3, 0).astype(np.int16)
    values[:4, :4, :4] = 7
    path = _write(tmp_path / "a.nii.gz", values)
    assert read_shape(path, label=3).size > 2 * read_shape(path, label=7).size
    with pytest.raises(CohortError, match="labels 3, 7: which one"):
        read_shape(path)
    with pytest.raises(CohortError, match="label 5 is not there"):
        read_shape(path, label=5)


def test_labels_in_the_plane_become_contours(tmp_path: Path) -> None:
    path = _write(tmp_path / "a.mha", _ball()[:, :, 10].astype(np.uint8))
    shape = read_shape(path)
    radius = np.sqrt(RADIUS**2 - (10 * SPACING[2] - CENTRE[2]) ** 2)
    away = np.linalg.norm(shape.points - (ORIGIN + CENTRE)[:2], axis=-1) - radius
    assert shape.kind == "contour"
    assert np.abs(away).max() < 0.5


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.zeros((9, 9, 9), np.uint8), "every voxel is 0"),
        (np.random.default_rng(0).random((9, 9, 9)), "fractions"),
    ],
)
def test_what_is_no_label_map_is_refused(tmp_path: Path, values: np.ndarray, message: str) -> None:
    with pytest.raises(CohortError, match=message):
        read_shape(_write(tmp_path / "a.nrrd", values))


def test_vectors_are_no_labels(tmp_path: Path) -> None:
    image = sitk.GetImageFromArray(np.zeros((4, 4, 4, 3)), isVector=True)
    sitk.WriteImage(image, str(tmp_path / "a.nrrd"))
    with pytest.raises(CohortError, match="3 values a voxel"):
        read_shape(tmp_path / "a.nrrd")


def test_whole_numbers_stored_as_fractions_are_labels(tmp_path: Path) -> None:
    path = _write(tmp_path / "a.nii.gz", _ball().astype(np.float32))
    assert read_shape(path).kind == "surface"


def test_the_fingerprint_sees_voxels_beside_the_header(tmp_path: Path) -> None:
    path = _write(tmp_path / "a.mhd", _ball().astype(np.uint8))
    before = ShapeFile(path).fingerprint
    assert ShapeFile(path).fingerprint == before
    raw = tmp_path / "a.raw"
    raw.write_bytes(raw.read_bytes()[::-1])
    assert ShapeFile(path).fingerprint != before
