"""Plots as values: drawn, and written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A plot that has not been written. A fact is None where a plot shows several, or has none."""

    kind: str
    name: str
    """of its files, without suffix"""
    title: str
    """what it shows, as a sentence"""
    setting: str
    """the runs that are shown, on the line below the title"""
    caption: str
    figure: Figure
    dataset: str | None = None
    bag_size: int | None = None


@dataclass(frozen=True)
class Plot:
    """A plot that has been written, as the page shows it."""

    name: str
    """unique among the plots; its anchor is `plot-<name>`"""
    title: str
    caption: str
    svg: str
