"""Description of a plot: its files, its title and caption, and facts to find it by."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Kind = Literal[
    "bag-size",
    "time",
    "differences",
    "critical-difference",
    "robustness",
    "reliability",
    "heat-map",
    "learning-curves",
    "proportions",
    "arms",
    "pretraining",
]


@dataclass(frozen=True, kw_only=True)
class About:
    """The words and facts of a plot. A fact is None where a plot shows several, or has none."""

    kind: Kind
    name: str
    """of its files, without suffix; unique among the plots of one call"""
    title: str
    """what it shows, as a sentence"""
    setting: str = ""
    """the runs that are shown, on the line below the title"""
    caption: str
    dataset: str | None = None
    bag_size: int | None = None


@dataclass(frozen=True, kw_only=True)
class Plot(About):
    """A plot that has been written."""

    svg: Path
    png: Path | None = None
    """None where no PNG was asked for"""


@dataclass(frozen=True)
class PagePlot:
    """A plot, as the page shows it."""

    name: str
    """unique among the plots; its anchor is `plot-<name>`"""
    title: str
    caption: str
    svg: str
