"""Calibration: the table by hand, and what the reliability diagram is drawn of."""

from __future__ import annotations

import pytest
from factory import record

from llpbench.core.record import Record
from llpbench.report.boards import Board
from llpbench.report.further_tables import calibration
from llpbench.report.plots.reliability import reliability
from llpbench.report.tabulate import tabulate


def judged(method: str, dataset: str, seed: int, role: str = "", **test: float) -> Record:
    """A run with some more test metrics, and with a reliability of two bins."""
    made = record(method, 0.8, dataset=dataset, seed=seed, role=role)
    for result in made["results"].values():
        result["test"] |= test
        result["reliability"] = [[60, 0.25, 0.5], [40 * (seed + 1), 0.75, 0.75 + seed / 4]]
    return made


def board(*records: Record) -> Board:
    return tabulate(records).of("fine")[0]


def test_means_are_over_datasets_and_what_a_run_lacks_is_unknown() -> None:
    scores = {"adult": (0.2, 0.4), "credit": (0.5, 0.5)}
    records = [judged("a", name, seed, brier=each[seed], ece=0.1) for name, each in scores.items() for seed in (0, 1)]
    records += [record("b", 0.7, dataset=name, seed=seed) for name in scores for seed in (0, 1)]
    table = calibration(board(*records), "x")
    first, second = table.values()
    assert first["Brier score mean"] == pytest.approx((0.3 + 0.5) / 2)
    assert first["Brier score std"] == pytest.approx(0.02**0.5 / 2, abs=1e-6)
    assert first["calibration error mean"] == pytest.approx(10.0)
    assert first["adult 64 mean"] == pytest.approx(0.3)
    assert first["log loss n"] == 0
    assert second["Brier score n"] == 0
    assert table.rows[1][3].lines == ("–",)


def test_reliability_pools_seeds_and_leaves_out_small_bins_and_ceilings() -> None:
    records = [judged("a", "adult", seed) for seed in (0, 1)]
    records += [judged("supervised", "adult", 0, "ceiling"), record("b", 0.7)]
    (drawing,) = reliability(board(*records), "x")
    (panel,) = [ax for ax in drawing.figure.axes if ax.get_visible()]
    _, curve = panel.lines
    assert panel.get_title() == "a"
    assert curve.get_xdata() == pytest.approx([0.25, 0.75])
    assert curve.get_ydata() == pytest.approx([0.5, (40 * 0.75 + 80 * 1.0) / 120])
    small = judged("a", "adult", 0)
    for result in small["results"].values():
        result["reliability"] = [[49, 0.25, 0.5]]
    assert not list(reliability(board(small), "x"))
    assert not list(reliability(board(record("a", 0.7)), "x"))
