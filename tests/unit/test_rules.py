from __future__ import annotations

import numpy as np

from prism.rules import (
    first_to_later,
    forecast_time,
    mahalanobis_score,
    paper_score,
    temporal_z,
)

NAN, INF = np.nan, np.inf


def test_z_is_the_distance_from_age_in_spreads() -> None:
    tau, t = np.array([[3.0, 1.0, 5.0]]), np.array([1.0])
    z = temporal_z(tau, t, np.array([[2.0, 1.0, 0.5]]))
    np.testing.assert_array_equal(z, [[1.0, 0.0, 8.0]])


def test_nothing_speaks_against_the_average_where_time_cannot_be_read() -> None:
    z = temporal_z(np.array([[3.0, NAN, 4.0]]), np.array([1.0]), np.array([[INF, 1.0, 1.0]]))
    np.testing.assert_array_equal(z, [[0.0, 0.0, 3.0]])
    later = forecast_time(np.array([[2.0, 2.0]]), np.array([9.0]), np.array([[INF, 0.5]]))
    np.testing.assert_array_equal(later, [[9.0, 10.0]])


def test_an_average_person_is_forecast_at_their_age() -> None:
    z, t1 = np.zeros((2, 3)), np.array([5.0, 7.0])
    np.testing.assert_array_equal(forecast_time(z, t1, np.ones((2, 3))), [[5.0] * 3, [7.0] * 3])


def test_paper_score_by_hand() -> None:
    # median 2, p* the third point: (1 - 2) / 1 - (5 - 2) / 2 = -2.5 is the least of the three.
    assert paper_score(np.array([[1.0, 2.0, 5.0]]), np.array([[1.0, 1.0, 2.0]])) == [-2.5]


def test_paper_score_passes_over_what_cannot_be_read() -> None:
    tau = np.array([[1.0, 2.0, 5.0, -99.0, NAN], [NAN] * 5])
    sigma = np.array([[1.0, 1.0, 2.0, INF, 1.0], [1.0] * 5])
    np.testing.assert_array_equal(paper_score(tau, sigma), [-2.5, NAN])


def test_mahalanobis_score_is_the_mean_of_the_top_twentieth() -> None:
    distance = np.arange(40.0)[None]
    assert mahalanobis_score(distance) == [38.5]  # two of forty
    assert mahalanobis_score(distance[:, :3]) == [2.0]  # at least one
    distance[0, 39] = NAN
    assert mahalanobis_score(distance) == [37.5]  # two of thirty-nine
    assert np.isnan(mahalanobis_score(np.full((1, 4), NAN)))


def test_pairs_lead_from_the_first_visit_to_each_later_one() -> None:
    subject = np.array(["b", "a", "b", "a", "c", "b", "d", "d"])
    t = np.array([3.0, 1.0, 1.0, 2.0, 5.0, NAN, 4.0, 4.0])
    start, later = first_to_later(subject, t)
    assert list(zip(start.tolist(), later.tolist(), strict=True)) == [(2, 0), (1, 3)]
    assert first_to_later(subject[:0], t[:0])[0].shape == (0,)
