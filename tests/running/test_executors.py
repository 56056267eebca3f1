"""Executors compute jobs, whatever happens to them; Ray does so as the inline one does."""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from factory import make_cell_of, make_record

from llpbench.core.cell import Cell, Environment, Epoch
from llpbench.core.errors import LLPBenchError
from llpbench.core.record import Record, TuningRecord
from llpbench.core.source import cell_sources
from llpbench.running.estimates import make_estimator
from llpbench.running.executors import HeadStart, Inline, attempt
from llpbench.running.resources import Resources
from llpbench.running.runner import choose
from llpbench.running.schedule import Job, Schedule
from llpbench.running.settings import Settings, resolve

JOB = Job(make_cell_of("bag-mean-linear", encoder=None), (0, 1))


class Diary:
    """A listener that writes down what it hears, and puts back what ran out of memory."""

    def __init__(self, schedule: Schedule | None = None) -> None:
        self.schedule = schedule
        self.lines: list[str] = []
        self.records: list[Record] = []

    def started(self, job: Job) -> None:
        self.lines.append(f"started {job.cell.bag_size}")

    def progressed(self, job: Job, epoch: Epoch) -> None:
        self.lines.append(f"epoch {job.cell.bag_size} {epoch.epoch} {epoch.value}")

    def finished(self, job: Job, records: list[Record]) -> None:
        self.lines.append(f"finished {job.cell.bag_size}{' alone' * job.alone}")
        self.records += records
        if self.schedule is not None and any(record["status"] == "out-of-memory" for record in records):
            self.schedule.put(Job(job.cell, job.seeds, alone=True))

    def found(self, job: Job, record: TuningRecord) -> None:
        self.lines.append(f"found {job.cell.bag_size} {record['status']}")


def scripted(
    cell: Cell, seeds: Sequence[int], environment: Environment, on_epoch: Callable[[Epoch], None] | None
) -> list[Record]:
    """A cell whose bag size says what happens to it."""
    time.sleep(0.6)  # longer than Ray's executor waits between two reports
    if cell.bag_size == 1:
        os._exit(1)
    if cell.bag_size == 2:
        raise LLPBenchError("bad data")
    if cell.bag_size == 3:
        raise RuntimeError("two\nlines")
    if cell.bag_size == 4 and not Path(environment.data_dir or "").joinpath("again").exists():
        Path(environment.data_dir or "").joinpath("again").touch()
        return [make_record(cell, seed, "out-of-memory") for seed in seeds]
    assert on_epoch is not None
    on_epoch(Epoch(epoch=7, epochs=9, criterion="auc", value=float("nan"), members=len(seeds)))
    return [make_record(cell, seed) for seed in seeds]


def scripted_jobs(*sizes: int) -> list[Job]:
    return [Job(make_cell_of("bag-mean-linear", size, encoder=None), (0, 1)) for size in sizes]


def reasons(records: Sequence[Record]) -> dict[str, str]:
    return {record["run"]: f"{record['status']}: {record['reason']}" for record in records}


def test_inline_computes_one_job_after_the_other(tmp_path: Path) -> None:
    schedule = Schedule(scripted_jobs(2, 3, 4, 5), lambda _: 1.0)
    diary = Diary(schedule)
    Inline(Environment(data_dir=str(tmp_path)), scripted).run(schedule, diary)
    assert diary.lines == [
        *("started 2", "finished 2"),
        *("started 3", "finished 3"),
        *("started 4", "finished 4"),
        *("started 5", "epoch 5 7 nan", "finished 5"),
        *("started 4", "epoch 4 7 nan", "finished 4 alone"),
    ]


def test_what_goes_wrong_is_a_record_and_never_an_exception() -> None:
    for size, reason in ((2, "bad data"), (3, "RuntimeError: two lines")):
        (job,) = scripted_jobs(size)
        records = attempt(job, Environment(), lambda _: None, scripted)
        assert reasons(records) == {job.cell.run_id(seed): f"failed: {reason}" for seed in (0, 1)}
        for record in records:
            assert record.keys() == Record.__required_keys__
            assert record["spec"] == job.cell.spec
            assert record["method"] == {"kind": "direct", "role": "", "reference": "Goodman 1953", "changed": {}}
            assert record["dataset"]["code"] == "AD"
            assert record["sources"] == cell_sources("bag-mean-linear", "adult", "ordered", None)


def test_an_interrupt_passes() -> None:
    def interrupted(*_: object) -> list[Record]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        attempt(JOB, Environment(), lambda _: None, interrupted)


def test_cheap_direct_methods_are_done_before_what_takes_long_to_start() -> None:
    direct, neural = scripted_jobs(7, 8, 9), [Job(make_cell_of(size=10), (0,))]
    schedule = Schedule([*direct, *neural], lambda job: 99.0 if job.cell.bag_size == 8 else 1.0)
    here, there = Diary(), Diary()

    class Later(Inline):
        def run(self, schedule: Schedule, listener: Any, *_: Any) -> None:
            assert listener is here
            super().run(schedule, there)

    executor = HeadStart("later", 3, lambda: Later(Environment(), scripted), Environment(), scripted)
    executor.run(schedule, here)
    assert [line for line in here.lines if line.startswith("started")] == ["started 7", "started 9"]
    assert [line for line in there.lines if line.startswith("started")] == ["started 10", "started 8"]
    idle = HeadStart("never", 1, lambda: pytest.fail("nothing is left to start it for"), Environment(), scripted)
    idle.run(Schedule(direct[:1], lambda _: 1.0), here)
    assert here.lines.count("started 7") == 2


# Choice


def chosen(resources: Resources, jobs: Sequence[Job], seconds: float = 60.0, **flags: Any) -> tuple[str, str]:
    """The choice for jobs of so many seconds a seed."""
    settings: Settings = resolve({name: str(value) for name, value in flags.items()})
    records = [make_record(jobs[0].cell, seconds=seconds)]
    estimator = make_estimator(records, settings.environment, pytest.fail, gpu=False, kept=False)
    executor, note = choose(settings, jobs, resources, estimator)
    return executor.name, note


def test_auto_is_ray_where_several_jobs_can_run_at_a_time() -> None:
    jobs = scripted_jobs(5, 6)
    assert chosen(Resources(2), jobs) == ("ray", "")
    assert chosen(Resources(1), jobs) == ("inline", "")
    assert chosen(Resources(2), jobs[:1]) == ("inline", "")
    assert chosen(Resources(2), jobs, threads=2) == ("inline", "")
    assert chosen(Resources(4), jobs, threads=2) == ("ray", "")
    assert chosen(Resources(2, 2, 80_000), jobs, device="cuda:1") == ("inline", "")
    assert chosen(Resources(2), jobs, executor="inline") == ("inline", "")
    assert chosen(Resources(1), jobs[:1], executor="ray") == ("ray", "")


def test_auto_does_not_start_ray_for_a_few_seconds_of_work() -> None:
    jobs = scripted_jobs(5, 6)
    assert chosen(Resources(2), jobs, seconds=1) == ("inline", "")
    assert chosen(Resources(2), jobs, seconds=60) == ("ray", "")


def test_without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "ray" else find(name))
    name, note = chosen(Resources(2), scripted_jobs(5, 6))
    assert name == "inline"
    assert note == "Ray is not installed: cells run one after the other."
    assert chosen(Resources(1), scripted_jobs(5, 6)) == ("inline", "")
    with pytest.raises(LLPBenchError, match=r"Ray is not installed\. Install"):
        chosen(Resources(2), scripted_jobs(5, 6), executor="ray")


def test_ray_cannot_be_told_a_gpu() -> None:
    with pytest.raises(LLPBenchError, match="however: --device cuda:1"):
        chosen(Resources(2, 2, 80_000), scripted_jobs(5), executor="ray", device="cuda:1")


def test_room_on_cpus_and_gpus() -> None:
    from llpbench.running.ray_executor import RayExecutor, _Room

    direct, neural = Job(make_cell_of("ridge", encoder=None), (0,)), Job(make_cell_of(), (0, 1))
    alone = Job(neural.cell, (0,), alone=True)
    cpu = RayExecutor(Environment(threads=2), Resources(9))
    assert cpu.slots == 4
    assert [cpu._needs(job) for job in (direct, neural, alone)] == [_Room(2, 0), _Room(2, 0), _Room(8, 0)]
    gpu = RayExecutor(Environment(), Resources(16, 2, 80_000), lambda _: 15_000.0)
    assert [gpu._needs(job) for job in (direct, neural, alone)] == [_Room(1, 0), _Room(1, 0.25), _Room(1, 1)]
    assert RayExecutor(Environment(threads=8), Resources(2)).slots == 1


# Ray itself


class Strict(Diary):
    """A listener that cannot take more than so many results."""

    def __init__(self, schedule: Schedule, most: int) -> None:
        super().__init__(schedule)
        self.most = most

    def finished(self, job: Job, records: list[Record]) -> None:
        super().finished(job, records)
        if sum(line.startswith("finished") for line in self.lines) == self.most:
            raise LLPBenchError("the disk is full")


@pytest.fixture
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray's processes can import this file, and what it imports."""
    here = Path(__file__).parent
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, (here, here.parent))))


@pytest.mark.slow
@pytest.mark.usefixtures("importable")
def test_ray_goes_on_whatever_happens_to_its_processes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from llpbench.running.ray_executor import RayExecutor

    jobs = scripted_jobs(1, 2, 3, 4, 5, 6)
    schedule = Schedule(jobs, lambda _: 1.0)
    diary = Strict(schedule, most=7)
    with pytest.raises(LLPBenchError, match=r"^the disk is full$"):
        RayExecutor(Environment(data_dir=str(tmp_path)), Resources(2), run=scripted).run(schedule, diary)
    found = reasons(diary.records)
    assert {
        job.cell.bag_size: found[job.cell.run_id(seed)].partition(" (")[0] for job in jobs for seed in job.seeds
    } == {
        1: "failed: its process died: killed",
        2: "failed: bad data",
        3: "failed: RuntimeError: two lines",
        4: "ok: ",
        5: "ok: ",
        6: "ok: ",
    }
    assert diary.lines.index("finished 4") < diary.lines.index("finished 4 alone")
    assert {line for line in diary.lines if line.startswith("epoch")} == {f"epoch {size} 7 nan" for size in (4, 5, 6)}
    captured = capfd.readouterr()
    assert captured.out + captured.err == ""
