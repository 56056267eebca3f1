"""How long work takes: from this journal, from the published timings, or a guess, and how sure that is."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import replace
from statistics import median
from typing import Any

import pytest
from factory import make_cell_of, make_record

from llpbench.core.cell import Cell, Protocol, Tuning
from llpbench.core.record import Record
from llpbench.results.journal import Contents
from llpbench.results.merging import journal_files
from llpbench.running.estimates import Basis, Estimate, Estimator, _Timings, _timings_of
from llpbench.running.schedule import Job
from llpbench.training.specification import make_cell

QUICK = Protocol(epochs=10, patience=3)


def no_timings() -> _Timings:
    raise AssertionError("this journal knows enough")


def of_journal(*records: Record, **options: Any) -> Estimator:
    """That of a journal that knows enough."""
    return Estimator(records, published=no_timings, **options)


def of_published(*records: Record, **options: Any) -> Estimator:
    """That of a journal that knows little."""
    return Estimator(records, **options)


def seconds_of(estimator: Estimator, cell: Cell, seeds: int = 1) -> float:
    return estimator.estimate(Job(cell, tuple(range(seeds)))).seconds


def bases_of(estimator: Estimator, *cells: Cell) -> set[Basis]:
    return set(estimator.total([Job(cell, (0,)) for cell in cells]).bases)


def test_estimate_is_median_of_nearest_runs() -> None:
    cell = make_cell_of("dllp", 256)
    other_size, other_data = make_cell_of("dllp", 64), make_cell_of("dllp", 256, "bank-marketing")
    estimator = of_journal(make_record(other_size, seconds=20))
    assert seconds_of(estimator, cell) == pytest.approx(20)
    estimator.learn(make_record(other_data, seconds=90))
    assert seconds_of(estimator, cell) == pytest.approx(90 * (48842 * 14) / (45211 * 16)), "rows times columns"
    assert bases_of(estimator, cell) == {Basis.NEAR}
    for seconds in (1, 30, 4):
        estimator.learn(make_record(cell, seconds=seconds))
    assert seconds_of(estimator, cell) == pytest.approx(4)
    assert seconds_of(estimator, cell, seeds=10) == pytest.approx(40)
    assert bases_of(estimator, cell) == {Basis.SAME}
    assert estimator.total([Job(cell, (0,)), Job(cell, (1, 2))]).seconds == pytest.approx(12)
    assert estimator.total([]) == Estimate()


def test_search_takes_less_time_if_trials_are_stopped() -> None:
    cell = replace(make_cell_of(), protocol=Protocol(epochs=81))
    estimator = of_journal(make_record(cell, seconds=10.0))
    for eta, runs in ((0, 9.0), (3, 9 * (3 * (9 + 18 / 3) / 81 + 1 / 9))):  # rungs after 9 and 27 epochs
        job = Job(cell, (0,), tuning=Tuning(cell, "fine", 9, {}, eta=eta))
        assert estimator.estimate(job).seconds == pytest.approx(10 * runs)


def test_estimated_time_grows_with_patience_and_bags() -> None:
    cell = make_cell_of()
    estimator = of_journal(make_record(cell, seconds=40.0, epochs=40))
    for epochs, patience, expected in ((300, 20, 40), (300, 10, 20), (30, 20, 15), (1000, 200, 400)):
        other = replace(cell, protocol=Protocol(epochs, patience))
        assert seconds_of(estimator, other) == pytest.approx(expected)
    few = replace(cell, max_bags=10)  # part of the bags takes as much less as it has rows
    assert seconds_of(estimator, few) == pytest.approx(40 * 10 * 256 / (0.8 * 48842))
    assert seconds_of(estimator, replace(cell, max_bags=10**6)) == pytest.approx(40)


def test_estimates_ignore_failures_and_other_hardware() -> None:
    cell, direct = make_cell_of("mine"), make_cell_of("ridge", encoder=None)
    gpu = {"device": "cuda"}
    for estimator in (
        of_published(make_record(cell, status="failed")),
        of_published(make_record(cell), gpu=True),
        of_published(make_record(cell, hardware=gpu)),
    ):
        assert bases_of(estimator, cell) == {Basis.GUESS}
    assert seconds_of(of_journal(make_record(cell, hardware=gpu), gpu=True), cell) == pytest.approx(1)
    assert seconds_of(of_journal(make_record(direct), gpu=True), direct) == pytest.approx(1)
    assert bases_of(of_published(gpu=True), a_cell()) == {Basis.GUESS}
    assert bases_of(of_published(gpu=True), a_cell("bag-mean-linear")) == {Basis.PUBLISHED}, "a fit uses the CPU anyway"
    known, on_gpu = make_cell_of(), make_record(make_cell_of(), seconds=0.1, hardware=gpu)
    assert seconds_of(of_others(make_record(known, seconds=40.0), on_gpu, on_gpu), known) == pytest.approx(40.0)


def test_memory_estimate_uses_runs_of_same_shape() -> None:
    cell = make_cell_of()
    record = make_record(cell, hardware={"device": "cuda"}, memory_mb=1000.0, members=5)
    estimator = of_journal(make_record(cell, memory_mb=700.0), make_record(cell, memory_mb=600.0), record)
    assert estimator.gpu_megabytes(Job(cell, (0, 1))) == 400
    assert estimator.megabytes(Job(cell, (0, 1))) == 700, "of a process, however many seeds"
    for known in (estimator.gpu_megabytes, estimator.megabytes):
        assert known(Job(make_cell_of(size=64), (0, 1))) is None
    many = replace(cell, ensemble=5)
    of_many = of_journal(make_record(many, hardware={"device": "cuda"}, memory_mb=1000.0, members=10))
    assert of_many.gpu_megabytes(Job(many, (0, 1))) == 1000


def a_cell(method: str = "dllp", **options: Any) -> Cell:
    return make_cell(method, "adult", **{"bag_size": 256, "encoder": "mlp", "protocol": QUICK, **options})


def test_own_runs_calibrate_machine_speed() -> None:
    cell, other, fit = a_cell("dllp"), a_cell("tabllp-bdc"), a_cell("bag-mean-linear")
    usual = of_published()
    assert bases_of(usual, other, fit) == {Basis.PUBLISHED}
    own = make_record(cell, seconds=3 * seconds_of(usual, cell), epochs=10)
    estimator = of_published(own)
    assert seconds_of(estimator, other) == pytest.approx(3 * seconds_of(usual, other))
    assert seconds_of(estimator, fit) == seconds_of(usual, fit), "a fit is no training"
    estimator.learn(make_record(cell, 1, seconds=30 * seconds_of(usual, cell), epochs=10))
    assert seconds_of(estimator, other) > 3 * seconds_of(usual, other), "it learns as work is done"


def test_stated_factor_covers_four_of_five_published_cells() -> None:
    """Every tenth cell is left out at a time: of three tenths, which are enough."""
    known = Contents.read(*journal_files("published")).records.values()
    misses = []
    for part in range(3):
        left_out = {cell for cell in {record["cell"] for record in known} if int(cell, 16) % 10 == part}
        estimator = of_others(*(record for record in known if record["cell"] not in left_out))
        seconds: dict[str, list[float]] = {}
        for record in known:
            if record["cell"] in left_out and record["spec"]["pretraining"] == "none":
                seconds.setdefault(json.dumps(record["spec"]), []).append(record["times"]["total"])
        for spec, taken in seconds.items():
            estimate = estimator.estimate(Job(Cell.of(json.loads(spec)), (0,)))
            if estimate.bases.keys() == {Basis.PUBLISHED}:
                misses.append(math.log(median(taken) / estimate.seconds))
    assert len(misses) > 200
    assert sum(abs(miss) <= math.log(Basis.PUBLISHED.factor) for miss in misses) / len(misses) > 0.8
    assert abs(median(misses)) < 0.3


def of_others(*records: Record) -> Estimator:
    """That of a machine as fast as another, which made these records."""
    return Estimator((), published=lambda: _timings_of(records))


def pretrained(method: str = "dllp", **options: Any) -> Cell:
    return a_cell(method, pretraining="self+bag", **options)


def as_run(cell: Cell, seeds: Iterable[int], seconds: float) -> list[Record]:
    return [make_record(cell, seed, times={"total": 1.0, "pretraining": seconds}) for seed in seeds]


def test_shared_pretraining_is_estimated_once() -> None:
    estimator = of_published()
    one, other = (Job(pretrained(method), (0, 1)) for method in ("dllp", "tabllp-bdc"))
    alone = seconds_of(estimator, a_cell("tabllp-bdc"), seeds=2)
    pretraining = estimator.estimate(one).seconds - seconds_of(estimator, a_cell(), seeds=2)
    assert pretraining > 0
    assert estimator.estimate(other).seconds == pytest.approx(alone + pretraining)
    both = estimator.total([one, other]).seconds
    assert both == pytest.approx(estimator.estimate(one).seconds + alone)
    for apart in ({"bag_size": 64}, {"bagging": "random"}, {"pretraining_params": {"view": "separated"}}):
        job = Job(pretrained(**apart), (0, 1))
        separate = estimator.estimate(one).seconds + estimator.estimate(job).seconds
        assert estimator.total([one, job]).seconds == pytest.approx(separate), apart


def test_finished_pretraining_is_not_estimated() -> None:
    records = as_run(pretrained(), (0, 1), seconds=1000.0)
    cell = pretrained("tabllp-bdc")
    estimator = of_published(*records)
    assert seconds_of(estimator, cell, seeds=2) < 1000
    assert 1000 < seconds_of(estimator, cell, seeds=3) < 2000, "a third seed is new"
    assert seconds_of(of_published(*records, pretrained=False), cell, seeds=2) > 2000, "its weights are gone"
    estimator.learn(as_run(cell, (2,), seconds=1000.0)[0])
    assert seconds_of(estimator, cell, seeds=3) < 1000


def test_estimate_states_range_and_origin() -> None:
    assert str(Estimate({Basis.SAME: 600.0})) == "about 10 min (7 min to 15 min, from this journal)"
    both = str(Estimate({Basis.SAME: 600.0, Basis.GUESS: 600.0}))
    assert both.endswith("from this journal and a rough guess)")
    assert str(Estimate({Basis.SAME: 600.0, Basis.GUESS: 1.0})).endswith("from this journal)")
    assert str(Estimate()) == str(Estimate({Basis.GUESS: 0.2})) == "less than a second"
