"""Figures of leaderboards. Matplotlib is imported when the first one is drawn."""

from __future__ import annotations

from pathlib import Path

from llpbench.report.boards import Leaderboards
from llpbench.report.plots.plot import Plot

__all__ = ["Plot", "draw_gallery"]


def draw_gallery(leaderboards: Leaderboards, out: Path, *, png: bool = False) -> list[Plot]:
    """Draw the most important figures into `out`, as SVG and, with `png`, also as PNG (150 dpi).

    Equal leaderboards give equal figures. Raises `LLPBenchError` if `out` cannot be written.
    """
    from llpbench.report.plots.gallery import gallery
    from llpbench.report.plots.saving import save

    return save(gallery(leaderboards), out, png=png)
