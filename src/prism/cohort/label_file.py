"""Label maps (NIfTI, NRRD, MHA/MHD) in: the surface of one label, in physical coordinates.

SimpleITK gives every format the same axes, LPS, oblique direction matrices included. The surface
runs half-way between voxels inside and outside; its staircase is smoothed without shrinking (λ|μ
smoothing), and no vertex moves by more than half a voxel along any axis.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import coo_array, dia_array

from prism.cohort.raw import Raw, broken, require_file, segments
from prism.errors import CohortError
from prism.typing import Cells, Floats, Points

_ROUNDS, _SHRINK, _GROW = 20, 0.5, -0.53
_HALF = 0.5  # voxel
_UNIT = "mm"  # what ITK converts NIfTI to, and the convention of the other formats


def read_labels(path: Path, label: int | None = None) -> Raw:
    """Read the surface (in 2D the contour) of one label.

    Args:
        path: A label map.
        label: The label wanted. Default: the only one there is.
    """
    require_file(path)
    image = _read_image(path)
    values = _whole_numbers(image)
    inside = values == _choose(values, label)
    points, cells = _surface(inside)
    mirrored = np.linalg.det(_direction(image)) < 0
    cells = cells[:, ::-1] if mirrored else cells
    return Raw(_physical(image, points), cells, _UNIT, "LPS" if points.shape[1] == 3 else "")


def _read_image(path: Path) -> Any:
    if find_spec("SimpleITK") is None:
        raise CohortError(
            "label maps cannot be read: the package SimpleITK is not installed.",
            "Run: pip install SimpleITK",
        )
    import SimpleITK

    SimpleITK.ProcessObject.SetGlobalWarningDisplay(False)
    try:
        image = SimpleITK.ReadImage(str(path))
    except RuntimeError as error:
        last = [line for line in str(error).splitlines() if line.strip()][-1]
        raise broken(f"SimpleITK cannot read it: {last.partition('): ')[2] or last}") from error
    while image.GetDimension() > 2 and image.GetSize()[-1] == 1:
        image = image[(*[slice(None)] * (image.GetDimension() - 1), 0)]
    if image.GetNumberOfComponentsPerPixel() != 1 or image.GetDimension() not in (2, 3):
        size = "x".join(map(str, image.GetSize()))
        raise CohortError(
            f"an image of {size} with {image.GetNumberOfComponentsPerPixel()} values a voxel is "
            "no label map.",
            "Store one whole number a voxel, in two or three dimensions.",
        )
    return image


def _whole_numbers(image: Any) -> np.ndarray:
    """Voxel values with axes in the order x, y, z."""
    import SimpleITK

    values = SimpleITK.GetArrayViewFromImage(image).T
    if values.dtype.kind == "f" and not (np.isfinite(values) & (values == np.rint(values))).all():
        raise CohortError(
            "voxels hold fractions: this is an image, not a label map.",
            "Give the segmentation, with whole numbers for labels and 0 for background.",
        )
    return values


def _choose(values: np.ndarray, label: int | None) -> int:
    found = [int(value) for value in np.unique(values) if value]
    if label is None and len(found) == 1:
        return found[0]
    if label in found:
        return label  # type: ignore[return-value]
    if not found:
        raise broken("the label map is empty: every voxel is 0")
    held = ", ".join(map(str, found[:8])) + (", ..." if len(found) > 8 else "")
    wanted = "which one is meant?" if label is None else f"label {label} is not there."
    raise CohortError(
        f"the label map holds the labels {held}: {wanted}",
        "Name the label wanted: a column label in visits.csv, or read_shape(path, label=...).",
    )


def _surface(inside: np.ndarray) -> tuple[Points, Cells]:
    """Surface of the voxels that are inside, in voxel indices; closed at the image border."""
    low = [int(np.flatnonzero(_any_but(inside, axis))[0]) for axis in range(inside.ndim)]
    high = [int(np.flatnonzero(_any_but(inside, axis))[-1]) for axis in range(inside.ndim)]
    part = inside[tuple(slice(a, b + 1) for a, b in zip(low, high, strict=True))]
    padded = np.pad(part, 1).astype(np.float32)
    points, cells = _cut(padded)
    return _smoothed(points, cells) + np.array(low) - 1.0, cells


def _any_but(inside: np.ndarray, axis: int) -> np.ndarray:
    return np.asarray(inside.any(axis=tuple(i for i in range(inside.ndim) if i != axis)))


def _cut(padded: np.ndarray) -> tuple[Points, Cells]:
    """Marching cubes, or squares, half-way between inside and outside."""
    from skimage import measure

    if padded.ndim == 3:
        points, cells, _, _ = measure.marching_cubes(padded, _HALF, gradient_direction="ascent")
        return points.astype(np.float64), cells.astype(np.int64)
    loops = [loop[:-1] for loop in measure.find_contours(padded, _HALF)]
    start = np.cumsum([0, *map(len, loops)])
    rings = [np.append(np.arange(len(p)), 0) + a for p, a in zip(loops, start, strict=False)]
    counts = np.array([len(ring) for ring in rings])
    return np.concatenate(loops), segments(counts, np.concatenate(rings))


def _smoothed(points: Points, cells: Cells) -> Points:
    """λ|μ smoothing [Taubin 1995]: the staircase goes, volume stays; at most half a voxel."""
    mean, moved = _neighbour_mean(cells, len(points)), points
    for _ in range(_ROUNDS):
        for step in (_SHRINK, _GROW):
            moved = moved + step * (mean @ moved - moved)
        moved = np.clip(moved, points - _HALF, points + _HALF)
    return moved


def _neighbour_mean(cells: Cells, count: int) -> Any:
    """(V, V) matrix that averages over the neighbours of every point."""
    start, end = cells.ravel(), np.roll(cells, -1, axis=1).ravel()
    both = np.concatenate([start, end]), np.concatenate([end, start])
    links = coo_array((np.ones(len(both[0])), both), (count, count)).tocsr()
    links.data[:] = 1.0  # an edge of two triangles counts once
    degree = links.sum(axis=1)
    return dia_array((1.0 / degree[None], [0]), (count, count)).tocsr() @ links


def _physical(image: Any, index: Points) -> Floats:
    """Voxel indices to physical coordinates: x = origin + D (spacing * index)."""
    scaled = index * np.array(image.GetSpacing())
    return np.array(image.GetOrigin()) + scaled @ _direction(image).T


def _direction(image: Any) -> Floats:
    """(n, n) matrix D whose columns are the directions of the image's axes."""
    return np.array(image.GetDirection()).reshape(image.GetDimension(), -1)
