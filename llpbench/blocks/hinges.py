"""Hinges with a rounded corner, so that L-BFGS can follow them."""

from __future__ import annotations

import numpy as np

from llpbench.core.bags import FloatArray


def hinge(x: FloatArray, corner: float) -> tuple[FloatArray, FloatArray]:
    """max(0, x), a parabola between 0 and `corner`, and its derivative; never more than corner / 2 below max(0, x)."""
    inside = np.clip(x, 0.0, corner)
    return inside**2 / (2 * corner) + np.maximum(x - corner, 0.0), inside / corner
