"""Reports of journals: leaderboards, tables, figures and the page. Needs neither torch nor ray.

Modules are imported on first use, because importing pandas is slow.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llpbench.report.assembling import TITLE, Report, make_report
    from llpbench.report.boards import Leaderboards
    from llpbench.report.publishing import Published, publish, write_report
    from llpbench.report.terminal import render, render_tables

__all__ = [
    "TITLE",
    "Leaderboards",
    "Published",
    "Report",
    "make_report",
    "publish",
    "render",
    "render_tables",
    "write_report",
]

_PLACES = {"Leaderboards": "boards", "Report": "assembling", "TITLE": "assembling", "make_report": "assembling"}
_PLACES |= {"render": "terminal", "render_tables": "terminal"}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES.get(name, 'publishing')}"), name)
