"""Table of `llpbench choose`, from a `MethodChoice`."""

from __future__ import annotations

from llpbench.core.criteria import CRITERIA
from llpbench.core.text import plural
from llpbench.owndata.choosing import DECIDES, MethodChoice
from llpbench.report.report_table import Heading, ReportTable, number, text

_SHOWN = ("l1", "mpiou", "likelihood")
"""Criteria shown in addition to that of the recommendation."""


def board_table(found: MethodChoice) -> ReportTable:
    """Return the board as text."""
    rows = []
    for row in found.board.to_dict("records"):
        if row["failure"]:
            rows.append((text(str(row["method"])), number(None), text("failed"), *[number(None)] * (len(_SHOWN) + 1)))
            continue
        is_reference = row["method"] == found.reference
        against = "–" if is_reference else f"{row['gain']:+.4f} [{row['low']:.4f}, {row['high']:.4f}]"
        chosen = row["method"] == found.best
        rows.append(
            (
                text(str(row["method"]), strong=chosen),
                number(row[DECIDES], 4),
                text(against),
                *(number(row[name], 3) for name in _SHOWN),
                number(row["seconds"], 1),
            )
        )
    headings = (
        Heading("method", numeric=False),
        Heading(DECIDES),
        Heading(f"against {found.reference}"),
        *(Heading(name) for name in _SHOWN),
        Heading("seconds"),
    )
    tells = "; ".join(f"{name}: {CRITERIA[name].title}" for name in (DECIDES, *_SHOWN))
    folds = plural(len(found.folds) // found.folds["method"].nunique(), "fold")
    caption = (
        f"Means over {folds} of {'later ' if found.later else ''}held-out bags ({tells}). Differences are of the first "
        "criterion; positive is better. Intervals have 95 % confidence for all differences together and are corrected "
        "for folds that share training bags (Nadeau & Bengio 2003)."
    )
    failed = found.board[found.board["failure"] != ""]
    caption += "".join(f" {name} failed: {why}" for name, why in zip(failed["method"], failed["failure"], strict=True))
    return ReportTable("choice", "Methods on held-out bags", caption, headings, tuple(rows))
