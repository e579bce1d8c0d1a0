"""The paper's forecast rule and the anomaly scores, as pure functions of arrays.

They stand below the model because the model calibrates itself with them, and below the
applications because users ask them there.
"""

from __future__ import annotations

import numpy as np

from prism.typing import Floats, Times

TOP_SHARE = 0.05


def temporal_z(tau: Floats, t: Times, sigma_tau: Floats) -> Floats:
    """[Eq. z-tau] z = (tau - t) / sigma_tau, (N, M); zero where time cannot be read.

    Where sigma_tau is infinite, or the point is missing, nothing speaks against the average.
    """
    readable = np.isfinite(sigma_tau) & ~np.isnan(tau)
    return np.where(readable, (tau - t[:, None]) / np.where(readable, sigma_tau, 1.0), 0.0)


def forecast_time(z: Floats, t1: Times, sigma_tau: Floats) -> Floats:
    """[Eq. tau-1] tau1 = t1 + z sigma_tau(t1), (N, M); t1 where time cannot be read."""
    return t1[:, None] + z * np.where(np.isfinite(sigma_tau), sigma_tau, 0.0)


def paper_score(tau: Floats, sigma_tau: Floats) -> Floats:
    """[Eq. OOD] The paper's anomaly score, (N,): never positive, low is abnormal.

    min over p of (tau_p - median) / sigma_p - (tau_p* - median) / sigma_p*, with p* the most
    advanced point. Points that are missing or where time cannot be read take no part.
    """
    lag = np.where(np.isfinite(sigma_tau) & (sigma_tau > 0), tau, np.nan)
    result = np.full(len(lag), np.nan)
    some = ~np.isnan(lag).all(axis=1)
    lag, sigma = lag[some], sigma_tau[some]
    scaled = (lag - np.nanmedian(lag, axis=1, keepdims=True)) / sigma
    ahead = np.nanargmax(lag, axis=1)[:, None]
    result[some] = np.nanmin(scaled - np.take_along_axis(scaled, ahead, axis=1), axis=1)
    return result


def mahalanobis_score(distance: Floats) -> Floats:
    """[Eq. mahalanobis] Mean of the largest twentieth of the points' distances, (N,).

    Args:
        distance: (N, M) |L^-1 (d - mu)| of every point; NaN where missing.
    """
    ordered = -np.sort(-distance, axis=1)  # largest first, NaN last
    count = (~np.isnan(distance)).sum(axis=1)
    top = np.maximum(1, np.ceil(TOP_SHARE * count)).astype(int)
    part = np.arange(distance.shape[1]) < top[:, None]
    total = np.where(part, np.nan_to_num(ordered), 0.0).sum(axis=1)
    return np.where(count > 0, total / top, np.nan)


def first_to_later(subject: np.ndarray, t: Times) -> tuple[np.ndarray, np.ndarray]:
    """Pairs (earliest visit, each later visit) of every subject, as two arrays of rows."""
    start, later = [], []
    for name in dict.fromkeys(subject.tolist()):
        rows = np.flatnonzero((subject == name) & ~np.isnan(t))
        rows = rows[np.argsort(t[rows], kind="stable")]
        rows = np.concatenate([rows[:1], rows[1:][t[rows[1:]] > t[rows[0]]]]) if len(rows) else rows
        start += [rows[0]] * (len(rows) - 1) if len(rows) else []
        later += rows[1:].tolist()
    return np.array(start, dtype=int), np.array(later, dtype=int)
