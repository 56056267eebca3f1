"""Plots of leaderboards, as SVG and PNG. Matplotlib is loaded when the first is drawn, not with this package."""

from __future__ import annotations

from pathlib import Path

from llpbench.report.boards import Leaderboards
from llpbench.report.plots.plot import Plot

__all__ = ["Plot", "draw_all"]


def draw_all(leaderboards: Leaderboards, out: Path) -> list[Plot]:
    """Draw everything that `leaderboards` have data for: `<name>.svg` and `<name>.png` (150 dpi) in `out`.

    The same leaderboards give the same SVG bytes, whatever stood in `out` before. Raises `LLPBenchError` if `out`
    cannot be written.
    """
    from llpbench.report.plots.gallery import parts
    from llpbench.report.plots.saving import save_parts

    return save_parts(parts(leaderboards), out)
