"""Hinges with a rounded corner, suitable for L-BFGS."""

from __future__ import annotations

import numpy as np

from llpbench.core.bags import FloatArray


def hinge(x: FloatArray, corner: float) -> tuple[FloatArray, FloatArray]:
    """Return max(0, x) and its derivative, with a parabola from 0 to `corner`; it is at most corner / 2 too small."""
    inside = np.clip(x, 0.0, corner)
    return inside**2 / (2 * corner) + np.maximum(x - corner, 0.0), inside / corner
