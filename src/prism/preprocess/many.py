"""sample_cohort: the samples of every shape, over the cores, remembered on disk by content."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from prism.cohort import (
    Cohort,
    Progress,
    SDFSamples,
    Shape,
    ShapeFile,
    in_parallel,
    read_samples,
    silent,
    write_samples,
)
from prism.cohort.files import naming, writing
from prism.errors import CohortError
from prism.preprocess.sdf import DEFAULT, SamplingConfig, recipe, sample_sdf
from prism.runs import fingerprint

UNIT_FACTOR = 50.0
_log = logging.getLogger(__name__)


def sample_cohort(
    shapes: Cohort | Sequence[Shape | ShapeFile],
    config: SamplingConfig = DEFAULT,
    seed: int = 0,
    cache: str | Path | None = None,
    workers: int | None = None,
    progress: Progress = silent,
) -> list[SDFSamples]:
    """Sample every shape of a cohort.

    Args:
        shapes: A cohort with raw shapes, or shapes and shape files.
        config: How many points a shape, and where.
        seed: Seed of the random numbers; the same seed gives the same samples, in any order and
            with any number of workers.
        cache: Folder that remembers samples by the content of the shape, the configuration and
            the seed; None remembers nothing.
        workers: Number of processes. Default: one a core.
        progress: Receives a message now and then.

    Returns:
        One value a shape, in order.

    Raises:
        CohortError: The first shape that cannot be read or sampled, by its row and file; or a
            shape whose size can only be a wrong unit.
    """
    sources = _sources(shapes)
    folder = None if cache is None else Path(cache)
    if folder is not None:
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
    action = partial(_one, config=config, seed=seed, cache=folder)
    samples = list(in_parallel(action, sources, "sample", workers, progress))
    _check_sizes(samples, sources)
    return samples


def _sources(shapes: Cohort | Sequence[Shape | ShapeFile]) -> Sequence[Shape | ShapeFile]:
    if not isinstance(shapes, Cohort):
        return shapes
    raw = shapes.shapes
    if raw is None:
        raise CohortError(
            f"cohort {str(shapes.path or shapes.name)!r} names no raw shapes.",
            "Add a column path to visits.csv that names a shape file in every row.",
        )
    return raw.files


def _one(
    source: Shape | ShapeFile, config: SamplingConfig, seed: int, cache: Path | None
) -> SDFSamples:
    """Samples of one shape, from the cache where they are there."""
    key = source.fingerprint
    if cache is None:
        return _sample(source, config, seed, key)
    path = cache / f"{fingerprint(key, recipe(config, seed))}.npz"
    if path.exists():
        try:
            return read_samples(path)
        except CohortError as error:
            _log.warning("sampled again: %s", error.what)
    samples = _sample(source, config, seed, key)
    write_samples(samples, path)
    return samples


def _sample(source: Shape | ShapeFile, config: SamplingConfig, seed: int, key: str) -> SDFSamples:
    if isinstance(source, Shape):
        return sample_sdf(source, config, seed, key)
    shape, faults = source.examine()
    for fault in faults:
        _log.warning("%s: %s", source.name, fault)
    with naming(source.name):
        return sample_sdf(shape, config, seed, key)


def _check_sizes(samples: list[SDFSamples], sources: Sequence[Shape | ShapeFile]) -> None:
    """Refuse a shape 50 times larger or smaller than the others: that is a unit, not growth."""
    size = np.array([s.size for s in samples])
    ratio = size / np.median(size) if len(size) else size
    for i in np.flatnonzero((ratio > UNIT_FACTOR) | (ratio * UNIT_FACTOR < 1)).tolist():
        source = sources[i]
        name = source.name if isinstance(source, ShapeFile) else f"shape {i + 1}"
        raise CohortError(
            f"{name} is {ratio[i]:.3g} times the size of the others.",
            "Check its length unit (mm, cm or m), or leave it out.",
        )
