"""How long work takes: from this journal, from the published timings, or a guess, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from statistics import median
from typing import Any

import pytest
from factory import make_cell_of, make_record

from llpbench.core.cell import Cell, Environment, Protocol
from llpbench.core.provenance import NUMERICS
from llpbench.core.record import Record
from llpbench.core.registry import ENCODERS
from llpbench.core.source import entry_hash
from llpbench.results.merging import read_published
from llpbench.running.estimates import Basis, Estimate, Estimator, make_estimator, published_timings, timings_of
from llpbench.running.runner import about
from llpbench.running.schedule import Job
from llpbench.running.timings import PACE, PACE_SHALLOW, Timings, table_sizes
from llpbench.training import compilation
from llpbench.training.specification import make_cell

QUICK = Protocol(epochs=10, patience=3)


def no_timings() -> Timings:
    raise AssertionError("this journal knows enough")


def no_measuring(encoder: str) -> float:
    raise AssertionError(f"{encoder} need not be measured")


def of_journal(*records: Record, **options: Any) -> Estimator:
    """That of a journal that knows enough."""
    return Estimator(records, no_timings, no_measuring, table_sizes(None), **options)


def of_published(*records: Record, rates: dict[str, float | None] | None = None, **options: Any) -> Estimator:
    """That of a machine on which the calibration takes `rates`, in 1e-7 seconds a value and epoch, by encoder."""
    told = {"mlp": 5.0} if rates is None else rates

    def measure(encoder: str) -> float | None:
        rate = told[encoder]
        return None if rate is None else rate * 1e-7

    return Estimator(records, published_timings, measure, table_sizes(None), **options)


def seconds_of(estimator: Estimator, cell: Cell, seeds: int = 1) -> float:
    return estimator.estimate(Job(cell, tuple(range(seeds)))).seconds


def bases_of(estimator: Estimator, *cells: Cell) -> set[Basis]:
    return set(estimator.total([Job(cell, (0,)) for cell in cells]).bases)


# This journal


def test_an_estimate_is_the_median_of_the_nearest_runs() -> None:
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


def test_epochs_grow_with_the_patience_up_to_the_most_there_may_be() -> None:
    cell = make_cell_of()
    estimator = of_journal(make_record(cell, seconds=40.0, epochs=40))
    for epochs, patience, expected in ((300, 20, 40), (300, 10, 20), (30, 20, 30), (1000, 200, 400)):
        other = replace(cell, protocol=Protocol(epochs, patience))
        assert seconds_of(estimator, other) == pytest.approx(expected)
    assert bases_of(estimator, replace(cell, protocol=QUICK)) == {Basis.NEAR}, "as long as nobody knows its epochs"


def test_failures_and_other_hardware_say_nothing_about_time() -> None:
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


def test_memory_is_known_from_runs_of_the_same_shape() -> None:
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


# Published timings


def a_cell(method: str = "dllp", **options: Any) -> Cell:
    return make_cell(method, "adult", **{"bag_size": 256, "encoder": "mlp", "protocol": QUICK, **options})


def test_what_is_published_is_scaled_to_this_machine() -> None:
    usual, slow = of_published(), of_published(rates={"mlp": 10.0})
    for method in ("tabllp-bdc", "llp-gan"):
        cell = a_cell(method)
        assert seconds_of(slow, cell) == pytest.approx(2 * seconds_of(usual, cell))
        assert bases_of(slow, cell) == {Basis.PUBLISHED}
    cell = a_cell("bag-mean-linear")
    assert seconds_of(slow, cell) == seconds_of(usual, cell), "a fit is no training"
    assert bases_of(of_published(rates={}), cell) == {Basis.ELSEWHERE}, "so nothing need be measured"
    usual.learn(make_record(cell, seconds=100 * seconds_of(usual, cell)))
    assert bases_of(usual, a_cell("bag-soft-label-linear")) == {Basis.PUBLISHED}


def test_own_runs_tell_the_speed_of_this_machine_without_measuring() -> None:
    cell, other = a_cell("dllp"), a_cell("tabllp-bdc")
    before = of_published()
    own = make_record(cell, seconds=3 * seconds_of(before, cell), epochs=24)
    estimator = Estimator([own], published_timings, no_measuring, table_sizes(None))
    speed = seconds_of(estimator, other) / seconds_of(before, other)
    assert speed > 1
    estimator.learn(make_record(cell, 1, seconds=30 * seconds_of(before, cell), epochs=24))
    assert seconds_of(estimator, other) > speed * seconds_of(before, other), "it learns as work is done"


def test_published_runs_are_as_long_as_those_of_other_datasets_let_expect() -> None:
    """The factor that estimates state is what it claims to be: four of five lie within."""
    known = read_published().records.values()
    misses = []
    for dataset in ("adult", "california", "credit", "electricity"):
        estimator = of_others(*(record for record in known if record["spec"]["dataset"] != dataset))
        for record in known:
            if record["spec"]["dataset"] == dataset and record["spec"]["pretraining"] == "none":
                estimate = estimator.estimate(Job(Cell.of(record["spec"]), (0,)))
                misses.append(math.log(record["times"]["total"] / estimate.seconds) / math.log(estimate.factor))
    assert sum(abs(miss) <= 1 for miss in misses) / len(misses) > 0.75
    assert abs(median(misses)) < 0.3


def of_others(*records: Record) -> Estimator:
    """That of a machine as fast as another, which made these records."""
    return Estimator((), lambda: timings_of(records), lambda _: None, table_sizes(None))


def test_published_rates_are_those_of_all_datasets_and_epochs_those_of_one() -> None:
    cells = [make_cell_of(dataset=dataset) for dataset in ("adult", "bank-marketing", "bank-marketing")]
    loaded, *quiet = (make_record(cell, seed, seconds=40.0) for seed, cell in enumerate(cells))
    in_load = make_record(cells[0], seconds=4000.0, epochs=20)
    values = (48842 * 14) / (45211 * 16)
    assert seconds_of(of_others(loaded, *quiet), cells[0]) == pytest.approx(40.0, rel=0.1)
    assert seconds_of(of_others(in_load, *quiet), cells[0]) == pytest.approx(20.0 * values), "half as many epochs"


def test_published_runs_of_gpus_tell_nothing_of_cpus() -> None:
    cell = make_cell_of()
    on_gpu = make_record(cell, seconds=0.1, hardware={"device": "cuda"})
    assert seconds_of(of_others(make_record(cell, seconds=40.0), on_gpu, on_gpu), cell) == pytest.approx(40.0)


# Guesses


def test_there_is_an_estimate_for_what_nobody_has_timed() -> None:
    estimator = of_published(rates={"mlp": 5.0, "saint": 300.0, "saint-row": None})
    for cell in (make_cell_of("mine"), make_cell_of("mine", encoder=None), make_cell_of("dllp", dataset="unheard-of")):
        assert math.isfinite(seconds_of(estimator, cell))
    assert bases_of(estimator, make_cell_of("mine")) == {Basis.GUESS}
    assert bases_of(estimator, make_cell_of("mine", encoder="mlp"), a_cell("dllp")) == {
        Basis.GUESS,
        Basis.PUBLISHED,
    }
    own_network = replace(make_cell_of("mine", encoder=None), protocol=QUICK)
    assert seconds_of(estimator, own_network) > seconds_of(estimator, make_cell_of("mine", encoder=None))


def test_an_encoder_without_timings_is_as_dear_as_it_is_measured_to_be() -> None:
    known = [each for each in read_published().records.values() if each["spec"]["encoder"] in (None, "mlp")]
    rates = {"mlp": 5e-7, "saint": 300e-7, "saint-row": None}
    estimator = Estimator((), lambda: timings_of(known), rates.__getitem__, table_sizes(None))
    ratio = {method: seconds_of(estimator, a_cell(method, encoder="saint")) for method in ("dllp", "tabllp-bdc")}
    mlp = {method: seconds_of(estimator, a_cell(method)) for method in ratio}
    assert ratio["dllp"] / mlp["dllp"] == pytest.approx(60)
    assert 1 < ratio["tabllp-bdc"] / mlp["tabllp-bdc"] < 60, "some of what a method costs is its own"
    assert bases_of(estimator, a_cell(encoder="saint")) == {Basis.GUESS}
    broken = a_cell(encoder="saint-row")
    assert seconds_of(estimator, broken) == pytest.approx(mlp["dllp"]), "one that cannot be trained: its cells will say"


def test_compiled_and_in_bfloat16_an_encoder_takes_as_much_less_as_it_gains() -> None:
    """Whatever the runs were that are known, and however the calibration, which compiles nothing, trains."""
    fast, slow = PACE["bfloat16"], PACE["float32"]
    reference = a_cell(encoder="saint")
    cell = replace(reference, precision="bfloat16")
    hardware = {"device": "cpu", "compiled": True}
    own = make_record(cell, seconds=30.0, hardware=hardware)
    estimator = of_journal(own, pace=lambda one: PACE[one.precision])
    assert seconds_of(estimator, cell) == pytest.approx(30.0)
    assert seconds_of(estimator, reference) == pytest.approx(30.0 * fast / slow)
    uncompiled = of_journal(own)
    assert seconds_of(uncompiled, cell) == pytest.approx(30.0 * fast)
    with_mlp = make_record(a_cell(), seconds=30.0, hardware=hardware)
    assert seconds_of(of_journal(with_mlp), a_cell()) == pytest.approx(30.0 * PACE_SHALLOW)
    without_encoder = make_record(a_cell("llp-gan", encoder=None), seconds=30.0, hardware=hardware)
    assert seconds_of(of_journal(without_encoder), a_cell("llp-gan", encoder=None)) == pytest.approx(30.0)
    on_gpu = make_record(cell, seconds=30.0, hardware={"device": "cuda", "compiled": True})
    assert seconds_of(of_journal(on_gpu, gpu=True), cell) == pytest.approx(30.0)
    guessed = [
        seconds_of(of_published(rates={"mlp": 5.0, "saint": 300.0}, pace=lambda _, pace=pace: pace), cell)
        for pace in (1.0, 3.0)
    ]
    assert guessed[0] == pytest.approx(3.0 * guessed[1])


@pytest.mark.parametrize(
    ("asked", "epochs", "encoder", "pace"),
    [
        (None, 100, "saint", PACE["float32"]),
        (None, 1, "saint", 1.0),
        (True, 1, "saint", PACE["float32"]),
        (False, 100, "saint", 1.0),
        (None, 100, "mlp", 1.0),
        (True, 1, "mlp", PACE_SHALLOW),
        (None, 100, "saint-row", 1.0),
    ],
)
def test_it_is_foreseen_what_will_be_compiled(
    asked: bool | None, epochs: int, encoder: str, pace: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compilation, "compiler_exists", lambda: True)
    cell = a_cell(encoder=encoder, protocol=Protocol(epochs, patience=min(epochs, 10)))
    own = make_record(cell, seconds=10.0)
    estimator = make_estimator([own], Environment(compile=asked), pytest.fail, gpu=False, kept=True)
    assert seconds_of(estimator, cell) == pytest.approx(10.0 / pace)


def test_cpu_timings_are_a_guess_for_a_gpu() -> None:
    assert bases_of(of_published(gpu=True), a_cell()) == {Basis.GUESS}
    assert bases_of(of_published(gpu=True), a_cell("bag-mean-linear")) == {Basis.GUESS}


# Pretraining


def pretrained(method: str = "dllp", **options: Any) -> Cell:
    return a_cell(method, pretraining="self+bag", **options)


def as_run(cell: Cell, seeds: Iterable[int], seconds: float) -> list[Record]:
    sources = {"encoder": entry_hash(ENCODERS.entry("mlp"))}
    times = {"total": 1.0, "pretraining": seconds}
    return [make_record(cell, seed, times=times, sources=sources, numerics=NUMERICS) for seed in seeds]


def test_pretraining_is_part_of_an_estimate_once_for_all_that_share_it() -> None:
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


def test_what_was_pretrained_before_is_not_estimated_again() -> None:
    records = as_run(pretrained(), (0, 1), seconds=1000.0)
    cell = pretrained("tabllp-bdc")
    estimator = of_published(*records)
    assert seconds_of(estimator, cell, seeds=2) < 1000
    assert 1000 < seconds_of(estimator, cell, seeds=3) < 2000, "a third seed is new"
    assert seconds_of(of_published(*records, kept=False), cell, seeds=2) > 2000, "its weights are gone"
    of_other_code = [{**record, "numerics": NUMERICS - 1} for record in records]
    assert seconds_of(of_published(*of_other_code), cell, seeds=2) > 2000  # type: ignore[arg-type]
    estimator.learn(as_run(cell, (2,), seconds=1000.0)[0])
    assert seconds_of(estimator, cell, seeds=3) < 1000


# Sureness


def test_errors_of_many_jobs_partly_cancel() -> None:
    one = Estimate.of(10.0, Basis.PUBLISHED)
    many = Estimate.sum([one] * 16)
    assert many.seconds == 160
    assert 1 < many.factor < one.factor
    assert Estimate.sum([one]).factor == pytest.approx(one.factor)
    assert many.bases == {Basis.PUBLISHED: 160}
    assert Estimate.sum([]) == Estimate()


def test_an_estimate_says_how_sure_it_is_and_why() -> None:
    same, guess = Estimate.of(600.0, Basis.SAME), Estimate.of(600.0, Basis.GUESS)
    assert about(same) == "about 10 min (8 min to 13 min, from this journal)"
    assert about(guess) == "about 10 min (2 min to 40 min, from a rough guess for what nobody has timed)"
    both = about(Estimate.sum([same, guess]))
    assert both.endswith("from this journal and a rough guess for what nobody has timed)")
    assert about(Estimate.sum([same, Estimate.of(1.0, Basis.GUESS)])).endswith("from this journal)")
    assert about(Estimate()) == about(Estimate.of(0.2, Basis.GUESS)) == "less than a second"
