"""The plan, how long its work takes, in which order that is started, and what a run shows of it."""

from __future__ import annotations

import io
import json
import math
import pickle
import re
import time
from collections.abc import Iterable
from dataclasses import replace
from statistics import median
from typing import Any

import pytest
from bench import refusal
from factory import by_run, failed, make_cell_of, make_record, record, runs
from rich.console import Console

from llpbench.cli.main import _plan_rows
from llpbench.core.cell import Cell, Epoch, Protocol, Tuning
from llpbench.core.errors import LLPBenchError
from llpbench.core.record import Record
from llpbench.report.study_tables import study_tables
from llpbench.results.frame import tidy
from llpbench.results.journal import Contents
from llpbench.results.merging import journal_files
from llpbench.results.studies import STUDIES
from llpbench.running.display import Display, _auc_text
from llpbench.running.estimates import FACTOR, Estimator, _timings_of, estimate_text
from llpbench.running.obstacles import Obstacle, Resolved, obstacles, resolver
from llpbench.running.planning import Plan, Planned, expand
from llpbench.running.schedule import Job, Schedule
from llpbench.running.settings import Settings, resolve
from llpbench.training.specification import make_cell


def cells_of(settings: Settings) -> list[Cell]:
    return [one.cell for one in expand(settings)]


def unplanned(*cells: Cell) -> list[Planned]:
    return [*map(Planned, map(resolver(), cells))]


def test_direct_method_is_planned_once_without_encoder() -> None:
    flags = {"methods": "bag-mean-linear,dllp", "encoders": "mlp,saint", "bag-sizes": "64,256"}
    assert sorted(map(str, cells_of(resolve(flags)))) == [
        f"{entry} on adult ordered {size}"
        for entry in ("bag-mean-linear", "dllp mlp", "dllp saint")
        for size in (256, 64)
    ]


def test_entries_are_resolved_once_and_not_sent_to_jobs() -> None:
    flags = {"methods": "dllp,bag-gp", "datasets": "AD", "encoders": "saint", "baggings": "ordered:columns=age+sex"}
    neural, direct = expand(resolve(flags))
    assert neural.encoder is not None
    assert (neural.method.name, neural.encoder.name, neural.dataset.name) == ("dllp", "saint", "adult")
    assert neural.cell.bagging == "ordered:columns=age+sex"
    assert (direct.method.name, direct.encoder) == ("bag-gp", None)
    plan = Plan.of(map(Planned, (neural, direct)), (0,), {})
    assert plan.to_run == [neural, direct]
    sent = pickle.dumps(plan.jobs)  # workers load plugins after they have started
    assert not any(name in sent for name in (b"DatasetSpec", b"Entry", b"Resolved"))


def test_cells_have_precision_ensemble_and_hyperparameters() -> None:
    def expanded(**flags: Any) -> list[Cell]:
        return cells_of(resolve({"methods": "dllp,bag-mean-linear", **flags}))

    (neural, direct), (same, again) = expanded(precision="bfloat16"), expanded(precision="float32")
    assert neural.spec["precision"] == "bfloat16"
    assert direct.id == again.id
    assert neural.id != same.id == (same_dllp := expanded()[0]).id
    assert [cell.ensemble for cell in expanded(ensemble="5")] == [5, 1]
    assert [cell.average for cell in expanded(average="half")] == ["half:30", ""]
    assert [cell.average for cell in expanded(average="ema:7", methods="dllp,supervised")] == ["ema:7", ""]
    changed, same = expanded(set=("dllp.hidden=128",))
    assert changed.params == {**neural.params, "hidden": 128}
    assert (changed.id != neural.id, same) == (True, direct)
    several = ("bag-mean-linear.strength=0.1,1", "bag-mean-linear.model=ridge,logistic")
    grid = cells_of(resolve({"methods": "bag-mean-linear", "set": several}))
    found = {(cell.params["strength"], cell.params["model"]) for cell in grid}
    assert found == {(strength, model) for strength in (0.1, 1.0) for model in ("ridge", "logistic")}
    bag, none = expanded(methods="dllp", pretraining="bag,none", set=("pretraining.aggregator=attention",))
    assert bag.pretraining_params["aggregator"] == "attention"
    assert bag.pretraining_params["learning_rate"] == 1e-3  # the encoder's own
    assert (none.pretraining_params, none.id) == ({}, same_dllp.id)
    with pytest.raises(LLPBenchError, match="--pretraining"):
        expanded(methods="dllp", set=("pretraining.aggregator=attention",))


def test_table_of_study_shows_its_cells_of_encoder_with_other_scaling() -> None:
    cells = cells_of(resolve({"study": "robustness", "datasets": "adult", "encoders": "tabm"}))
    assert {cell.numbers for cell in cells if cell.encoder == "tabm"} == {"z"}
    method = {"kind": "neural", "role": "", "reference": "", "changed": {}}
    done = [make_record(cell, seed, method=method) for cell in cells for seed in range(2)]
    (study,) = study_tables(STUDIES["robustness"], tidy(done))
    assert not any(ours.is_empty for ours in study.table.columns[-1][1])


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"methods": "dlp"}, r"'dlp'\. Did you mean dllp"),
        ({"baggings": ""}, "no bagging"),
        ({"baggings": "ordered:colums=age"}, "'colums'"),
        ({"encoders": "mpl"}, r"'mpl'\. Did you mean mlp"),
        ({"methods": "dllp", "set": ("dllp.hiden=3",)}, r"'hiden'\. Did you mean hidden"),
        ({"methods": "dllp", "set": ("dllp.weight_decay=x",)}, r"dllp\.weight_decay .* got x"),
        ({"methods": "dllp", "set": ("supervised.hidden=128",)}, "'supervised'"),
    ],
)
def test_unknown_names_are_refused(flags: dict[str, Any], message: str) -> None:
    with refusal(message):
        expand(resolve(flags))


def test_cell_states_follow_journal() -> None:
    cells = [make_cell_of(size=size) for size in (1, 2, 3, 4, 5)]
    failed = [(1, 1, "failed"), (2, 0, "out-of-memory")]
    ran: list[tuple[int, int, Any]] = [(0, 0, "ok"), (0, 1, "ok"), (1, 0, "ok"), (4, 7, "ok"), *failed]
    records = by_run(*(make_record(cells[place], seed, status) for place, seed, status in ran))

    def find(one: Resolved) -> Obstacle | None:
        assert one.cell is not cells[0], "finished cells have no obstacle"
        return Obstacle("too large", lasting=True) if one.cell is cells[3] else None

    plan = Plan.of(unplanned(*cells), (0, 1), records).with_obstacles(find)
    assert [cell.state for cell in plan.cells] == ["done", "failed", "to run", "impossible", "to run"]
    assert [cell.missing for cell in plan.cells] == [(), (), (1,), (0, 1), (0, 1)]
    assert [cell.wanted for cell in plan.cells] == [cell.missing for cell in plan.cells]
    assert plan.jobs == [Job(cells[2], (1,)), Job(cells[4], (0, 1))]
    assert plan.reasons == ["too large"]
    assert len([*_plan_rows(plan)]) == 5
    with pytest.raises(LLPBenchError, match="no data"):
        Plan.of(unplanned(cells[0]), (0,), {}).with_obstacles(lambda _: Obstacle("no data", lasting=False))
    assert Plan(()).with_obstacles(lambda _: None).jobs == []

    again = Plan.of(unplanned(*cells[:3]), (0, 1), records, repeat=("failed",))
    assert [cell.wanted for cell in again.cells] == [(), (1,), (0, 1)]
    again = Plan.of(unplanned(*cells[:3]), (0, 1), records, repeat=("done",))
    assert [cell.wanted for cell in again.cells] == [(0, 1), (0,), (1,)]


def test_runs_of_other_code_are_repeated_unless_kept() -> None:
    cell = make_cell_of()
    records = by_run(make_record(cell, 0), make_record(cell, 1, numerics=0), make_record(cell, 2, "failed", numerics=0))

    def why(record: Record) -> str:
        return "changed" if record["numerics"] == 0 else ""

    def planned(*repeat: str) -> Plan:
        return Plan.of(unplanned(cell), (0, 1, 2, 3), records, repeat=repeat, why_stale=why)

    (each,) = planned("stale").cells
    assert (each.done, each.failed, each.stale, each.missing) == ((0,), (), {1: "changed", 2: "changed"}, (3,))
    assert (each.state, each.wanted) == ("stale", (1, 2, 3))
    assert str(planned("stale")) == "3 runs to do in 1 cell, 2 of them stale, 1 done"
    assert planned("stale").changes == ["dllp: changed (2 runs)"]
    assert str(planned()) == "1 run to do in 1 cell, 1 done, 2 stale and kept"
    assert planned("failed").cells[0].wanted == (2, 3), "a stale failed run counts as failed"
    impossible = Plan.of(
        unplanned(cell, make_cell_of(size=1)), (0, 1), records, repeat=("stale",), why_stale=why
    ).with_obstacles(lambda each: Obstacle("no data", lasting=False) if each.cell is cell else None)
    assert [each.state for each in impossible.cells] == ["impossible", "to run"]
    assert str(impossible) == "2 runs to do in 1 cell, 1 done, 1 impossible"


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ({"bag_size": 1024, "max_bags": 38}, ""),
        ({"bag_size": 1024, "max_bags": 39}, "38 training bags, fewer than --max-bags 39."),
        ({"bag_size": 4884}, ""),
        ({"bag_size": 4885}, "bag size 4885 is larger than the 4,884 validation rows of 'adult'. Choose --bag-sizes"),
        ({"bagging": "column:by=occupation"}, ""),
        ({"bagging": "column:by=occupation+ocupation"}, "dataset 'adult' has no column 'ocupation'"),
        ({"bagging": "kmeans:clusters=4884"}, ""),
        ({"bagging": "kmeans:clusters=4885"}, "more clusters than 'adult' has validation rows. Choose at most 4,884."),
        ({"bagging": "kmeans:clusters=4885:split=bags"}, ""),
        ({"bagging": "column:by=sex:least=48843"}, "more rows per bag than the 48,842 of 'adult'."),
        ({"bagging": "column:by=sex:least=10000"}, ""),
    ],
)
def test_cells_with_too_few_rows_are_impossible(cell: dict[str, Any], reason: str) -> None:
    one = resolver()(make_cell("bag-mean-linear", "adult", **{"bag_size": 64, **cell}))
    obstacle = obstacles(None, load=False)(one)
    assert (obstacle is not None) == bool(reason)
    if obstacle is not None:
        assert obstacle.lasting
        assert reason in obstacle.reason


def jobs(*sizes: int) -> list[Job]:
    return [Job(make_cell_of(size=size), (0,)) for size in sizes]


def drain(schedule: Schedule) -> list[int]:
    return [job.cell.bag_size or 0 for job in iter(schedule.next, None)]


def size_of(job: Job) -> float:
    return float(job.cell.bag_size or 0)


def test_few_cheap_jobs_start_before_slowest() -> None:
    schedule = Schedule(jobs(30, 3, 500, 40, 4, 12, 70), size_of)
    assert drain(schedule) == [3, 4, 12, 500, 70, 40, 30]
    schedule = Schedule(jobs(70, 500, 30, 40), size_of)
    assert drain(schedule) == [30, 500, 70, 40], "the cheapest starts first even if it is not cheap"


def test_jobs_beyond_time_budget_are_left() -> None:
    end = time.monotonic() + 200
    schedule = Schedule(jobs(1, 100, 10_000), size_of, end)
    assert (drain(schedule), [size_of(job) for job in schedule.left]) == ([1, 100], [10_000])
    schedule = Schedule(jobs(500, 900), size_of, end, lambda job: size_of(job) / 4)
    assert (drain(schedule), [size_of(job) for job in schedule.left]) == ([500], [900]), "it may end in time"
    known = {"seconds": 1.0}
    schedule = Schedule(jobs(1, 2, 3), lambda _: known["seconds"], end)
    assert schedule.next() is not None
    known["seconds"] = 1000.0
    assert (drain(schedule), len(schedule.left)) == ([], 2), "new estimates count"


def test_waiting_job_lets_smaller_ones_pass() -> None:
    schedule = Schedule(jobs(1, 2, 3), lambda _: 1.0)
    taken = schedule.next(lambda job: job.cell.bag_size == 2)
    assert taken is not None
    assert taken.cell.bag_size == 2
    assert schedule.next(lambda _: False) is None
    schedule.put(Job(taken.cell, (0,), alone=True))
    assert [job.alone for job in schedule.waiting] == [False, False, True]
    assert schedule.left == []


QUICK = Protocol(epochs=10, patience=3)


def of_journal(*records: Record, **options: Any) -> Estimator:
    """That of a journal that knows enough."""
    return Estimator(records, published=lambda: pytest.fail("this journal knows enough"), **options)


def of_published(*records: Record, **options: Any) -> Estimator:
    """That of a journal that knows little."""
    return Estimator(records, **options)


def seconds_of(estimator: Estimator, cell: Cell, seeds: int = 1) -> float:
    return estimator.seconds(Job(cell, tuple(range(seeds))))


def test_estimate_is_median_of_nearest_runs() -> None:
    cell = make_cell_of("dllp", 256)
    other_size, other_data = make_cell_of("dllp", 64), make_cell_of("dllp", 256, "bank-marketing")
    estimator = of_journal(make_record(other_size, seconds=20))
    assert seconds_of(estimator, cell) == pytest.approx(20)
    estimator.learn(make_record(other_data, seconds=90))
    assert seconds_of(estimator, cell) == pytest.approx(90 * (48842 * 14) / (45211 * 16)), "rows times columns"
    for seconds in (1, 30, 4):
        estimator.learn(make_record(cell, seconds=seconds))
    assert seconds_of(estimator, cell) == pytest.approx(4)
    assert seconds_of(estimator, cell, seeds=10) == pytest.approx(40)
    assert estimator.seconds(Job(cell, (0,)), Job(cell, (1, 2))) == pytest.approx(12)
    assert estimator.seconds() == 0


def test_search_takes_less_time_if_trials_are_stopped() -> None:
    cell = replace(make_cell_of(), protocol=Protocol(epochs=81))
    estimator = of_journal(make_record(cell, seconds=10.0))
    for eta, times in ((0, 9.0), (3, 9 * 2 / 3)):
        job = Job(cell, (0,), tuning=Tuning(cell, "fine", 9, {}, eta=eta))
        assert estimator.seconds(job) == pytest.approx(10 * times)


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
        assert seconds_of(estimator, cell) == seconds_of(of_published(), cell)
    assert seconds_of(of_journal(make_record(cell, hardware=gpu), gpu=True), cell) == pytest.approx(1)
    assert seconds_of(of_journal(make_record(direct), gpu=True), direct) == pytest.approx(1)
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
    own = make_record(cell, seconds=3 * seconds_of(usual, cell), epochs=10)
    estimator = of_published(own)
    assert seconds_of(estimator, other) == pytest.approx(3 * seconds_of(usual, other))
    assert seconds_of(estimator, fit) == seconds_of(usual, fit), "a fit is no training"
    estimator.learn(make_record(cell, 1, seconds=30 * seconds_of(usual, cell), epochs=10))
    assert seconds_of(estimator, other) > 3 * seconds_of(usual, other), "it learns as work is done"


def test_stated_factor_covers_four_of_five_published_cells() -> None:
    """Every tenth cell is left out at a time: of two tenths, which are enough."""
    known = Contents.read(*journal_files("published")).records.values()
    misses = []
    for part in range(2):
        left_out = {cell for cell in {record["cell"] for record in known} if int(cell, 16) % 10 == part}
        estimator = of_others(*(run for run in known if run["cell"] not in left_out))
        seconds: dict[str, list[float]] = {}
        for run in known:
            if run["cell"] in left_out and run["spec"]["pretraining"] == "none":
                seconds.setdefault(json.dumps(run["spec"]), []).append(run["times"]["total"])
        for spec, taken in seconds.items():
            misses.append(math.log(median(taken) / seconds_of(estimator, Cell.of(json.loads(spec)))))
    assert len(misses) > 200
    assert sum(abs(miss) <= math.log(FACTOR) for miss in misses) / len(misses) > 0.8
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
    pretraining = estimator.seconds(one) - seconds_of(estimator, a_cell(), seeds=2)
    assert pretraining > 0
    assert estimator.seconds(other) == pytest.approx(alone + pretraining)
    both = estimator.seconds(one, other)
    assert both == pytest.approx(estimator.seconds(one) + alone)
    for apart in ({"bag_size": 64}, {"bagging": "random"}, {"pretraining_params": {"view": "separated"}}):
        job = Job(pretrained(**apart), (0, 1))
        separate = estimator.seconds(one) + estimator.seconds(job)
        assert estimator.seconds(one, job) == pytest.approx(separate), apart


def test_finished_pretraining_is_not_estimated() -> None:
    records = as_run(pretrained(), (0, 1), seconds=1000.0)
    cell = pretrained("tabllp-bdc")
    estimator = of_published(*records)
    assert seconds_of(estimator, cell, seeds=2) < 1000
    assert 1000 < seconds_of(estimator, cell, seeds=3) < 2000, "a third seed is new"
    assert seconds_of(of_published(*records, pretrained=False), cell, seeds=2) > 2000, "its weights are gone"
    estimator.learn(as_run(cell, (2,), seconds=1000.0)[0])
    assert seconds_of(estimator, cell, seeds=3) < 1000


def test_estimate_states_range() -> None:
    assert estimate_text(600.0) == "about 10 min (3 min to 30 min)"
    assert estimate_text(0.0) == estimate_text(0.2) == "less than a second"


JOB = Job(make_cell_of(), (0, 1))


def shown(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return re.sub(r"\x1b\[[0-9;]*m", "", console.file.getvalue())


def test_live_display_shows_progress_and_failures() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=120, height=40)
    with Display(console, live=True) as display:
        display.begin(60)
        display.estimate(200.0)
        display.started(JOB)
        display.finished(JOB, [make_record(JOB.cell, 0), make_record(JOB.cell, 1, "failed")])
        for number in range(20):
            display.started(Job(make_cell_of(f"method-{number}"), (0,)))
        display.started(JOB)
        last = Job(make_cell_of("method-3"), (0,))
        display.progressed(last, Epoch(epoch=4, epochs=40, criterion="auc", value=0.8125, members=2))
        console.file = io.StringIO()
        display._bars.refresh()
        text = shown(console)
    for part in (r"2/60, 1 failed, until about", r"method-3 mlp .* epoch 5/40, auc 0.812"):
        assert re.search(part, text)
    assert "method-11 " in text
    assert "method-12 " not in text, "there is room for twelve"


def test_plain_display_escapes_markup() -> None:
    console = Console(file=io.StringIO(), width=40)
    with Display(console, live=False) as display:
        display.begin(4)
        display.say("[bold]a line that is longer than the width of the terminal[/]")
        display.started(JOB)
        for epoch in range(5):
            display.progressed(JOB, Epoch(epoch, 5, "auc", 0.5, 2))
        display.finished(JOB, [make_record(JOB.cell, 0), make_record(JOB.cell, 1, "failed")])
        display.started(JOB)
        display.finished(JOB, runs("dllp", 0.881, 0.883))
    said, _, failure, _, success = shown(console).splitlines()  # epochs have no line, and no line is wrapped
    assert said == "[bold]a line that is longer than the width of the terminal[/]"
    assert re.search(r"^failed dllp mlp .* 2/4 .*AUC 90\.0.*bad luck", failure)
    assert re.search(r"^ok dllp mlp .* 4/4 .*AUC 88\.2 ± 0\.1", success)


def test_cell_score_is_mean_over_labelled_seeds() -> None:
    coarse = record("dllp", aucs={"mpiou": 0.8, "l1": 0.8})
    assert _auc_text([coarse]) == _auc_text([failed()]) == _auc_text([]) == ""
    assert _auc_text([*runs("dllp", 0.881), failed(seed=1)]) == "AUC 88.1"
    assert _auc_text(runs("dllp", 0.8, 0.9)) == "AUC 85.0 ± 7.1"
