"""Names of the array kinds that pass through the house.

The last axis is always space (n = 2 or 3); batch axes lead. N counts visits, M template points,
n space dimensions, K cells, T time points.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

Floats: TypeAlias = NDArray[np.float64]  # any shape
Times: TypeAlias = NDArray[np.float64]  # (N,) or (T,), user's unit, NaN = unknown
Points: TypeAlias = NDArray[np.float64]  # (M, n), user's unit
Shapes: TypeAlias = NDArray[np.float64]  # (N, M, n), NaN = missing point
Cells: TypeAlias = NDArray[np.int64]  # (K, 2) segments or (K, 3) triangles
Seen: TypeAlias = NDArray[np.bool_]  # (M,) points that a shape shows
Strings: TypeAlias = NDArray[np.str_]  # (N,)
ArrayLike: TypeAlias = "Floats | Tensor"
