"""Threads of a fit: how many, and that results do not depend on them."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from districts import counted, people
from threadpoolctl import threadpool_info

from llpbench.blocks import bag_process, count_trees
from llpbench.blocks.side_by_side import later, workers
from llpbench.core.bags import FloatArray
from llpbench.owndata import threads as rule
from llpbench.owndata.classifier import LLPClassifier
from llpbench.owndata.threads import threads_for

ROWS, BAGS, VOTES = people(240, 30)
COUNTS = counted(BAGS, VOTES)


def test_auto_gives_the_same_results_with_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bag_process, "_SCORED", 2)
    grown: dict[int | None, int] = {}

    def watched(compute: object) -> object:
        return later(lambda: (compute(), grown.setdefault(jobs, threading.get_ident()))[0])  # type: ignore[operator]

    monkeypatch.setattr(count_trees, "later", watched)
    found: dict[int | None, FloatArray] = {}
    for jobs in (1, 2):
        found[jobs] = LLPClassifier(n_jobs=jobs, random_state=3).fit(ROWS, BAGS, counts=COUNTS).predict_proba(ROWS)
    assert np.array_equal(found[1], found[2])
    assert grown[1] == threading.get_ident() != grown[2]


def test_small_tables_have_one_thread_of_linear_algebra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule, "_cores", lambda: 5)
    for jobs, expected in ((None, 1), (-1, 5), (1, 1), (2, 2)):
        with threads_for(jobs, 1000):
            assert {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"} == {1}
            assert workers() == expected
    with threads_for(2, rule.SMALL + 1):
        assert {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"} == {2}
        assert workers() == 2
