"""The plan, and the order in which work is started."""

from __future__ import annotations

import pickle
import time
from typing import Any

import pytest
from factory import make_cell_of, make_record

from llpbench.cli.main import _plan_rows
from llpbench.core.cell import Cell
from llpbench.core.errors import LLPBenchError
from llpbench.core.record import Record
from llpbench.running.cluster import Nodes
from llpbench.running.obstacles import Obstacle, Resolved, obstacles, resolver
from llpbench.running.planning import Plan, Planned, expand
from llpbench.running.schedule import Job, Schedule
from llpbench.running.settings import Settings, resolve
from llpbench.training.specification import make_cell


def by_run(*records: Record) -> dict[str, Record]:
    return {record["run"]: record for record in records}


def described(**flags: Any) -> list[str]:
    return [*map(str, cells_of(resolve({name.replace("_", "-"): value for name, value in flags.items()})))]


def cells_of(settings: Settings) -> list[Cell]:
    return [one.cell for one in expand(settings)]


def unplanned(*cells: Cell) -> list[Planned]:
    return [*map(Planned, map(resolver(), cells))]


def test_direct_method_is_planned_once_without_encoder() -> None:
    cells = described(methods="bag-mean-linear,dllp", encoders="mlp,saint", bag_sizes="64,256")
    assert sorted(cells) == [
        "bag-mean-linear on adult ordered 256",
        "bag-mean-linear on adult ordered 64",
        "dllp mlp on adult ordered 256",
        "dllp mlp on adult ordered 64",
        "dllp saint on adult ordered 256",
        "dllp saint on adult ordered 64",
    ]


def test_entries_are_resolved_once_and_not_sent_to_jobs() -> None:
    flags = {"methods": "dllp,bag-gp", "datasets": "AD", "encoders": "saint", "baggings": "ordered:columns=age+sex"}
    neural, direct = expand(resolve(flags))
    assert neural.encoder is not None
    assert (neural.method.name, neural.encoder.name, neural.dataset.name) == ("dllp", "saint", "adult")
    assert neural.bagging == {"columns": ("age", "sex")}
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
    assert neural.id != same.id == expanded()[0].id
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


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"methods": "dlp"}, r"'dlp'\. Did you mean dllp"),
        ({"methods": ""}, "no method"),
        ({"datasets": "adlut"}, r"'adlut'\. Did you mean adult"),
        ({"baggings": ""}, "no bagging"),
        ({"baggings": "ordered:colums=age"}, "'colums'"),
        ({"encoders": "mpl"}, r"'mpl'\. Did you mean mlp"),
        ({"methods": "dllp", "set": ("dllp.hiden=3",)}, r"'hiden'\. Did you mean hidden"),
        ({"methods": "dllp", "set": ("dllp.weight_decay=x",)}, r"dllp\.weight_decay .* got x"),
        ({"methods": "dllp", "set": ("supervised.hidden=128",)}, "'supervised'"),
    ],
)
def test_unknown_names_are_refused(flags: dict[str, Any], message: str) -> None:
    with pytest.raises(LLPBenchError, match=message) as error:
        expand(resolve(flags))
    assert "\n" not in str(error.value)


def test_cell_states_follow_journal() -> None:
    cells = [make_cell_of(size=size) for size in (1, 2, 3, 4, 5)]
    records = by_run(
        make_record(cells[0], 0),
        make_record(cells[0], 1),
        make_record(cells[1], 0),
        make_record(cells[1], 1, "failed"),
        make_record(cells[2], 0, "out-of-memory"),
        make_record(cells[4], 7),
    )

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


def test_gpu_shares_follow_memory() -> None:
    megabytes = (1_000, 8_001, 30_000, 40_000, 900_000)
    assert [Nodes((), 80_000).gpu_share(each) for each in megabytes] == [1 / 8, 1 / 4, 1 / 2, 1, 1]
    assert [Nodes((), memory).gpu_share(None) for memory in (140_000, 40_000, 8_000)] == [1 / 8, 1 / 2, 1]


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


def test_pretraining_hyperparameters_are_set_by_name() -> None:
    flags = {"methods": "dllp", "pretraining": "bag,none", "set": ("pretraining.aggregator=attention",)}
    bag, none = cells_of(resolve(flags))
    assert bag.pretraining_params["aggregator"] == "attention"
    assert bag.pretraining_params["learning_rate"] == 1e-3  # the encoder's own
    assert none.pretraining_params == {}
    assert none.id == cells_of(resolve({"methods": "dllp"}))[0].id
