"""Figures of leaderboards, as SVG. Matplotlib is loaded when the first is drawn, not with this package."""

from __future__ import annotations

from pathlib import Path

from llpbench.report.boards import Leaderboards
from llpbench.report.plots.plot import Plot

__all__ = ["Plot", "draw_gallery"]


def draw_gallery(leaderboards: Leaderboards, out: Path, *, png: bool = False) -> list[Plot]:
    """Draw the most important figures of `leaderboards`: `<name>.svg` in `out`, and with `png` `<name>.png` (150 dpi).

    The same leaderboards give the same figures, whatever stood in `out` before. Raises `LLPBenchError` if `out`
    cannot be written.
    """
    from llpbench.report.plots.gallery import gallery
    from llpbench.report.plots.saving import save

    return save(gallery(leaderboards), out, png=png)
