"""The stage of a long fit: a line in a terminal, elsewhere nothing."""

from __future__ import annotations

import functools
import io

import pytest
from rich.console import Console

from llpbench.owndata import progress
from llpbench.owndata.progress import RowsDone, StageLine


@pytest.mark.parametrize("terminal", [True, False])
def test_the_stage_is_shown_in_a_terminal_only(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
    screen = io.StringIO()
    console = functools.partial(Console, file=screen, force_terminal=terminal, width=100, highlight=False)
    monkeypatch.setattr(progress, "Console", lambda **_: console())
    monkeypatch.delenv("NO_COLOR", raising=False)
    with StageLine() as line:
        line.show("sample of bags")
    assert ("sample of bags" in screen.getvalue()) == terminal
    assert terminal or not screen.getvalue()


def test_rows_of_a_pass_have_the_time_left_if_their_total_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    clock = iter([0.0, 10.0, 20.0])
    monkeypatch.setattr("time.perf_counter", lambda: next(clock))
    done = RowsDone(told.append, "bins", 4000)
    done.add(1000)
    done.add(1000)
    assert told == ["bins", "bins: 1,000 of 4,000 rows, about 30 s left", "bins: 2,000 of 4,000 rows, about 20 s left"]
    monkeypatch.undo()
    RowsDone(told.append, "bins", None).add(1234)
    assert told[-1] == "bins: 1,234 rows"
