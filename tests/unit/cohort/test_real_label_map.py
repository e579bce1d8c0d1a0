"""One real aorta: a label map goes in and comes out in the right place."""

from __future__ import annotations

import gzip
import os
import struct
from pathlib import Path

import numpy as np
import pytest
from scipy import ndimage
from scipy.spatial import cKDTree

from prism.cohort import read_shape, write_shape

SHARED = Path(__file__).parents[4] / "shared" / "data"
MASK = Path(os.environ.get("PRISM_REAL_DATA", SHARED)) / "aorta_mask" / "aorta.nii.gz"

pytestmark = pytest.mark.skipif(not MASK.exists(), reason="real data aorta_mask is not here")


def _by_hand() -> tuple[np.ndarray, np.ndarray, float]:
    """Voxels and the LPS affine, read byte by byte from the NIfTI header."""
    content = gzip.decompress(MASK.read_bytes())
    size = struct.unpack_from("<3h", content, 42)
    kind = {2: "<u1", 4: "<i2", 8: "<i4", 16: "<f4", 256: "<i1", 512: "<u2", 64: "<f8"}
    dtype = np.dtype(kind[struct.unpack_from("<h", content, 70)[0]])
    start = int(struct.unpack_from("<f", content, 108)[0])
    voxels = np.frombuffer(content, dtype, int(np.prod(size)), start).reshape(size, order="F")
    assert struct.unpack_from("<h", content, 254)[0] > 0  # an sform is stated
    affine = np.array(struct.unpack_from("<12f", content, 280)).reshape(3, 4)
    return voxels, affine * np.array([[-1.0], [-1.0], [1.0]]), np.linalg.norm(affine[:, 0])


def test_the_aorta_is_in_its_place_to_half_a_voxel(tmp_path: Path) -> None:
    voxels, affine, voxel = _by_hand()
    shape = read_shape(MASK)
    write_shape(shape, tmp_path / "aorta.vtp")
    again = read_shape(tmp_path / "aorta.vtp")
    np.testing.assert_array_equal(again.points, shape.points)
    assert (again.axes, again.length_unit) == ("LPS", "mm")

    # Back to voxels: every vertex lies between a voxel inside and one outside.
    index = np.linalg.solve(affine[:, :3], (again.used - affine[:, 3]).T).T
    inside = np.argwhere(np.pad(voxels > 0, 1)) - 1
    outside = np.argwhere(np.pad(voxels <= 0, 1, constant_values=True)) - 1
    for side in (inside, outside):
        away, _ = cKDTree(side).query(index)
        assert away.max() <= 1.0 + 0.5 * 3**0.5
        assert np.quantile(away, 0.99) < 1.0
    low, high = inside.min(axis=0) - 0.5, inside.max(axis=0) + 0.5
    assert np.abs(index.min(axis=0) - low).max() <= 0.5
    assert np.abs(index.max(axis=0) - high).max() <= 0.5

    centre = affine[:, :3] @ inside.mean(axis=0) + affine[:, 3]
    corners = again.points[again.cells]
    volumes = np.linalg.det(corners) / 6
    middle = (volumes[:, None] * corners.mean(axis=1) * 0.75).sum(axis=0) / volumes.sum()
    assert np.linalg.norm(middle - centre) < 0.5 * voxel
    assert volumes.sum() == pytest.approx(len(inside) * abs(np.linalg.det(affine[:, :3])), rel=0.03)


def test_every_voxel_near_the_wall_is_on_its_side_to_half_a_voxel() -> None:
    pytest.importorskip("igl")
    from prism.preprocess import signed_distance

    voxels, affine, voxel = _by_hand()
    label, _ = ndimage.label(voxels > 0)
    largest = np.argmax(np.bincount(label.ravel())[1:]) + 1
    aorta = ndimage.binary_fill_holes(label == largest)  # specks are left out, and said so
    near = ndimage.binary_dilation(aorta) & ~ndimage.binary_erosion(aorta)
    shape = read_shape(MASK)
    assert any("small bodies or cavities" in repair for repair in shape.repairs)
    query = np.argwhere(near) @ affine[:, :3].T + affine[:, 3]
    distance = signed_distance(shape.points, shape.cells, query)
    wrong = (distance < 0) != aorta[near]
    assert wrong.mean() < 0.01
    assert np.abs(distance[wrong]).max(initial=0.0) <= 0.5 * voxel
    assert np.abs(distance).max() <= 3**0.5 * voxel
