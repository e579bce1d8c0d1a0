"""The maps of some shapes: from each of them to the template, and from the template to each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from prism.nets import Sines
from prism.registration.networks import Networks
from prism.registration.similarity import Similarity
from prism.typing import Floats, Points, Shapes

AT_ONCE = 65_536  # points evaluated together


@dataclass(frozen=True)
class Maps:
    """Maps of N shapes. Shapes are in the user's coordinates, the template in common ones.

    Attributes:
        networks: The networks all shapes share.
        z_fwd: (N, K) codes of the maps to the template.
        z_bwd: (N, K) codes of the maps from the template.
        similarity: Where each shape lies in the user's coordinates.
    """

    networks: Networks
    z_fwd: Tensor
    z_bwd: Tensor
    similarity: Similarity

    def __len__(self) -> int:
        """Count shapes."""
        return len(self.z_fwd)

    def __getitem__(self, rows: slice | np.ndarray) -> Maps:
        """Select shapes."""
        return Maps(self.networks, self.z_fwd[rows], self.z_bwd[rows], self.similarity[rows])

    @classmethod
    def joined(cls, parts: Sequence[Maps]) -> Maps:
        """Maps of the shapes of several, one after the other; the networks are the first's."""
        z_fwd, z_bwd = (torch.cat([getattr(m, name) for m in parts]) for name in ("z_fwd", "z_bwd"))
        return cls(
            parts[0].networks, z_fwd, z_bwd, Similarity.joined([m.similarity for m in parts])
        )

    def to_template(self, y: Shapes) -> Shapes:
        """[Eq. Phi-fwd] Template points of the points y (N, P, n) of each shape."""
        x = self.similarity.to_common(np.asarray(y, dtype=np.float64))
        return self._evaluate(lambda rows, points: self.forward(rows)(points), x)

    def from_template(self, p: Points | Shapes) -> Shapes:
        """[Eq. Phi-bwd] Where each shape has the template points p (P, n) or (N, P, n)."""
        x = self._evaluate(lambda rows, points: self.backward(rows)(points), self._for_each(p))
        return self.similarity.from_common(x)

    def determinants(self, p: Points | Shapes) -> Floats:
        """(N, P) det of the Jacobian of Phi_bwd at template points: not positive where it folds."""
        return self._evaluate(
            lambda rows, points: torch.linalg.det(self.backward(rows).with_jacobian(points)[1]),
            self._for_each(p),
        )

    def forward(self, rows: slice) -> Sines:
        """Maps of some shapes to the template, between common coordinates."""
        return self.networks.forward_map(self.z_fwd[rows])

    def backward(self, rows: slice) -> Sines:
        """Maps of some shapes from the template, between common coordinates."""
        return self.networks.backward_map(self.z_bwd[rows])

    def _for_each(self, p: Points | Shapes) -> Shapes:
        return np.broadcast_to(p, (len(self), *np.shape(p)[-2:]))

    @torch.no_grad()
    def _evaluate(self, action: Callable[[slice, Tensor], Tensor], x: Shapes) -> Floats:
        """Apply an action to points x (N, P, n), a few shapes at a time."""
        step = max(1, AT_ONCE // max(1, x.shape[1]))
        found = []
        for start in range(0, len(x), step):
            rows = slice(start, start + step)
            points = torch.from_numpy(np.array(x[rows], dtype=np.float32))
            found.append(action(rows, points.to(self.z_fwd.device)).cpu().numpy())
        return np.concatenate(found).astype(np.float64)
