"""Work side by side: order, the number of workers, and results that another thread computes."""

from __future__ import annotations

import threading

import pytest

from llpbench.blocks.side_by_side import side_by_side, with_workers, workers
from llpbench.blocks.trees import _in_background, _later, background


def test_results_follow_order_of_items() -> None:
    for number in (1, 3):
        with with_workers(number):
            assert workers() == number
            assert list(side_by_side(range(20), lambda item: item**2)) == [item**2 for item in range(20)]


def test_workers_run_in_parallel() -> None:
    meeting = threading.Barrier(2, timeout=20)
    with with_workers(2):
        assert sorted(side_by_side(range(2), lambda item: (meeting.wait(), item)[1])) == [0, 1]


def test_background_thread_runs_inside_context_only() -> None:
    mine = threading.get_ident()
    with with_workers(2), background():
        assert _later(threading.get_ident).result() != mine
        assert _later(_in_background).result()  # it sees the context
    assert _later(threading.get_ident).result() == mine
    with with_workers(1), background():
        assert _later(threading.get_ident).result() == mine


def test_leaving_background_waits_and_raises() -> None:
    done: list[int] = []
    begin = threading.Event()

    def slow() -> None:
        begin.wait(20)
        done.append(1)

    with with_workers(2), background():
        _later(slow)
        assert not done
        begin.set()
    assert done == [1]
    with pytest.raises(ZeroDivisionError), with_workers(2), background():
        _later(lambda: 1 // 0)
    assert not _in_background()
