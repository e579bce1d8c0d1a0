"""Many small matrices at once, components first.

Matrices (..., n, n) with n = 2 or 3 are kept as (n, n, ...): every operation is then a few sweeps
over long rows of memory, several times as fast as a loop over matrices.
"""

from __future__ import annotations

import numpy as np

from prism.typing import Floats


def parts(matrices: Floats, axes: int = 2) -> Floats:
    """Bring the last axes to the front, (..., n, n) to (n, n, ...)."""
    return np.ascontiguousarray(np.moveaxis(matrices, range(-axes, 0), range(axes)))


def whole(components: Floats, axes: int = 2) -> Floats:
    """Bring the first axes to the back: undo `parts`."""
    return np.ascontiguousarray(np.moveaxis(components, range(axes), range(-axes, 0)))


def product(A: Floats, B: Floats) -> Floats:
    """A B, (n, n, ...)."""
    return np.stack([times(A, B[:, j]) for j in range(B.shape[1])], axis=1)


def times(A: Floats, v: Floats) -> Floats:
    """A v, (n, ...)."""
    rows = []
    for i in range(len(A)):
        row = A[i, 0] * v[0]
        for k in range(1, A.shape[1]):
            row += A[i, k] * v[k]
        rows.append(row)
    return np.stack(rows)


def lower_root(S: Floats) -> Floats:
    """Lower-triangular root of positive matrices (n, n, ...); tiny pivots are kept up."""
    n = len(S)
    least = 1e-12 * sum(S[i, i] for i in range(n)) + 1e-300
    A = np.zeros_like(S)
    for j in range(n):
        pivot = S[j, j] - np.square(A[j, :j]).sum(0)
        A[j, j] = np.sqrt(np.maximum(pivot, least))
        for i in range(j + 1, n):
            A[i, j] = (S[i, j] - (A[i, :j] * A[j, :j]).sum(0)) / A[j, j]
    return A


def inverse_positive(Q: Floats) -> tuple[Floats, Floats]:
    """Inverse (n, n, ...) and log determinant (...) of positive matrices, by their lower root."""
    n, A = len(Q), lower_root(Q)
    B = np.zeros_like(A)  # A^-1, column by column
    log_det = np.zeros_like(A[0, 0])
    for j in range(n):
        B[j, j] = 1 / A[j, j]
        log_det += 2 * np.log(A[j, j])
    for j in range(n):
        for i in range(j + 1, n):
            B[i, j] = -(A[i, j:i] * B[j:i, j]).sum(0) * B[i, i]
    return product(B.swapaxes(0, 1), B), log_det
