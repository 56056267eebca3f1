"""Leaderboards as Markdown, one page for each validation regime, readable by somebody who knows none of the code."""

from __future__ import annotations

import re
from collections.abc import Iterable

from llpbench.criteria import Regime
from llpbench.report.tables import Board, Leaderboards, Score
from llpbench.report.text import (
    CAPTION,
    NO_RUNS,
    ROLES,
    SELECTION,
    TASK,
    clean,
    provenance_text,
    rank_text,
    score_lines,
    setting,
    title,
)

_HTML = str.maketrans({"<": "&lt;", ">": "&gt;", "&": "&amp;"})

_SPECIAL = re.compile(r"[\\`*\[\]|~$#]|(?<!\w)_|_(?!\w)")
"""what Markdown would take for its own; an underscore inside a word it leaves alone"""


def to_markdown(leaderboards: Leaderboards, regime: Regime) -> str:
    """The page of one regime: how to read it, where it comes from, then its boards."""
    boards = leaderboards.of(regime)
    parts = [f"# Leaderboards: {regime}-grained validation"]
    if not boards:
        return "\n\n".join([*parts, NO_RUNS]) + "\n"
    explained = {
        "Task": TASK,
        "Selection": SELECTION[regime],
        "Floor and ceiling": ROLES,
        "Numbers": CAPTION,
        "Origin": escape(provenance_text(leaderboards.provenance)),
    }
    parts += [f"**{what}.** {text}" for what, text in explained.items()]
    return "\n\n".join([*parts, *map(_board, boards)]) + "\n"


def escape(text: str) -> str:
    """Text from outside on one line, shown as it is: no character of it means anything to Markdown or HTML."""
    return _SPECIAL.sub(r"\\\g<0>", clean(text)).translate(_HTML)


def _board(board: Board) -> str:
    parts = [f"## {escape(title(board))}", escape(setting(board)), _table(board)]
    for heading, lines in (("Failed or undefined", board.failures), ("Worth a look", board.surprises)):
        if lines:
            parts.append(f"**{heading}**\n\n" + "\n".join(f"- {escape(line)}" for line in lines))
    return "\n\n".join(parts)


def _table(board: Board) -> str:
    details = [name for name, shown in _details(board).items() if shown]
    heading = ["rank", "method", *details, *(column.title for column in board.columns)]
    lines = [_line(map(escape, heading)), _line(["---"] * (2 + len(details)) + ["---:"] * len(board.columns))]
    for index, row in enumerate(board.rows):
        names = [rank_text(row), row.entry.method, *(str(getattr(row.entry, name) or "") for name in details)]
        scores = [_score(score, (index, column) in board.leaders) for column, score in enumerate(row.scores)]
        lines.append(_line([*map(escape, names), *scores]))
    return "\n".join(lines)


def _details(board: Board) -> dict[str, bool]:
    """The columns that tell rows of the same method apart, and whether any row needs them."""
    entries = [row.entry for row in board.rows]
    return {
        "encoder": any(entry.encoder for entry in entries),
        "pretraining": any(entry.pretraining != "none" for entry in entries),
        "configuration": any(entry.configuration for entry in entries),
    }


def _score(score: Score, leads: bool) -> str:
    first, *rest = score_lines(score)
    return "<br>".join([f"**{first}**" if leads else first, *rest])


def _line(fields: Iterable[str]) -> str:
    return f"| {' | '.join(fields)} |"
