"""Plots as values, before and after they are written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A drawn plot without a file."""

    kind: str
    name: str
    """name of its files, without suffix"""
    title: str
    """main message, as a sentence"""
    setting: str
    """runs that are shown"""
    caption: str
    figure: Figure


@dataclass(frozen=True)
class Plot:
    """A written plot."""

    name: str
    """unique name; its anchor on the page is `plot-<name>`"""
    title: str
    caption: str
    svg: str
