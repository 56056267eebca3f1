"""Executors compute jobs, whatever happens to them; Ray does so as the inline one does."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from factory import make_cell_of, make_record
from scripted import scripted, scripted_jobs

from llpbench.core.cell import Environment, Epoch
from llpbench.core.errors import LLPBenchError
from llpbench.core.record import Record, TuningRecord
from llpbench.core.source import cell_sources
from llpbench.running.cluster import Asked, Finished, Nodes, Progressed, Room, Started
from llpbench.running.estimates import make_estimator
from llpbench.running.executors import Debug, attempt
from llpbench.running.inline import HeadStart, Inline
from llpbench.running.resources import Resources
from llpbench.running.runner import choose
from llpbench.running.schedule import Deadline, Ended, Job, Schedule
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

    def ended(self, job: Job, end: Ended) -> None:
        self.lines.append(f"{end.how} {job.cell.bag_size}: {end.reason}")
        if self.schedule is not None and end.how == "lost":
            self.schedule.put(job)

    def warned(self, text: str) -> None:
        self.lines.append(text)


def reasons(records: Sequence[Record]) -> dict[str, str]:
    return {record["run"]: f"{record['status']}: {record['reason']}" for record in records}


def test_debug_computes_one_job_after_the_other_in_this_process(tmp_path: Path) -> None:
    schedule = Schedule(scripted_jobs(2, 3, 4, 5), lambda _: 1.0)
    diary = Diary(schedule)
    Debug(Environment(data_dir=str(tmp_path)), scripted).run(schedule, diary)
    traceback = diary.lines.pop(3)
    assert traceback.startswith("What failed:\nTraceback (most recent call last):")
    assert 'raise RuntimeError("two\\nlines")' in traceback  # the line of code
    assert diary.lines == [
        *("started 2", "finished 2"),
        *("started 3", "finished 3"),
        *("started 4", "finished 4"),
        *("started 5", "epoch 5 7 nan", "finished 5"),
        *("started 4", "epoch 4 7 nan", "finished 4 alone"),
    ]


def test_inline_outlives_whatever_a_job_does_to_its_process(tmp_path: Path) -> None:
    schedule = Schedule(scripted_jobs(1, 20, 21, 23, 5), lambda _: 1.0, timeout=lambda _: 4.0)
    diary = Diary(schedule)
    before = children()
    Inline(Environment(data_dir=str(tmp_path)), scripted).run(schedule, diary)
    assert children() == before, "no process is left"
    assert diary.lines == [
        *("started 1", "failed 1: its code ended the process (exit code 3)"),
        *("started 20", "killed 20: worker killed (SIGKILL), possibly out of memory"),
        *("started 21", "failed 21: its process crashed (SIGSEGV)"),
        *("started 23", "timed-out 23: took longer than 4 s. Give it more by --cell-timeout."),
        *("started 5", "epoch 5 7 nan", "finished 5"),
    ]


def test_the_end_of_the_time_budget_stops_what_runs(tmp_path: Path) -> None:
    schedule = Schedule(scripted_jobs(5, 23, 6), lambda job: float(job.cell.bag_size == 6), Deadline.after(3.0))
    diary = Diary(schedule)
    begin = time.monotonic()
    Inline(Environment(data_dir=str(tmp_path)), scripted).run(schedule, diary)
    assert time.monotonic() - begin < 10
    assert diary.lines == ["started 5", "epoch 5 7 nan", "finished 5", "started 23", "stopped 23: "]
    assert schedule.waiting == []
    assert [job.cell.bag_size for job in schedule.left] == [6]


def test_no_code_of_a_job_keeps_its_process_from_the_next_job(tmp_path: Path) -> None:
    schedule = Schedule(scripted_jobs(24, 25, 26, 27, 5), lambda _: 1.0, timeout=lambda _: 30.0)
    diary = Diary(schedule)
    Inline(Environment(data_dir=str(tmp_path)), scripted).run(schedule, diary)
    assert diary.lines[:-3] == [
        *("started 24", "finished 24"),
        *("started 25", "epoch 25 7 nan", "finished 25"),
        *("started 26", "failed 26: its code ended the process (exit code 1)"),
        *("started 27", "epoch 27 7 nan", "finished 27"),
    ]
    assert diary.lines[-3:] == ["started 5", "epoch 5 7 nan", "finished 5"]
    found = reasons(diary.records)
    assert found[scripted_jobs(24)[0].cell.run_id(0)] == "failed: KeyboardInterrupt: by hand"
    assert [record["status"] for record in diary.records] == ["failed"] * 2 + ["ok"] * 6


def children() -> set[str]:
    """Processes that this one has started and that are alive."""
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


def test_what_goes_wrong_is_a_record_and_never_an_exception() -> None:
    for size, reason in ((2, "bad data"), (3, "RuntimeError: two lines"), (22, "SystemExit: 7")):
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

    class Later(Debug):
        def run(self, schedule: Schedule, listener: Any) -> None:
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
    assert chosen(Resources(2, 2), jobs, device="cuda:1") == ("inline", "")
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
    with pytest.raises(LLPBenchError, match="got --device cuda:1"):
        chosen(Resources(2, 2), scripted_jobs(5), executor="ray", device="cuda:1")


def test_room_on_cpus_and_gpus() -> None:
    from llpbench.running.ray_executor import RayExecutor

    direct, neural = Job(make_cell_of("ridge", encoder=None), (0,)), Job(make_cell_of(), (0, 1))
    alone = Job(neural.cell, (0,), alone=True)

    def rooms(executor: RayExecutor, *nodes: Room, gpu_megabytes: float = 0.0) -> list[Room]:
        executor._nodes = Nodes(nodes, gpu_megabytes)
        return [executor._needs(job) for job in (direct, neural, alone)]

    cpu = RayExecutor(Environment(threads=2), Resources(9))
    assert cpu.slots == 4
    assert rooms(cpu, Room(8, 0, 9e4)) == [Room(2, 0, 1024), Room(2, 0, 1024), Room(8, 0, 1024)]
    assert rooms(cpu, Room(1, 0, 500), Room(1, 0, 9e4)) == [Room(1, 0, 500)] * 3, "no more than a machine has"
    known = RayExecutor(Environment(), Resources(16, 2), lambda _: 15_000.0, lambda _: 3000.0)
    both = Room(16, 2, 9e4), Room(32, 0, 9e4)
    assert rooms(known, *both, gpu_megabytes=80_000.0) == [Room(1, 0, 4096), Room(1, 0.25, 4096), Room(1, 1, 4096)]
    assert rooms(known, *both) == [Room(1, 0, 4096), Room(1, 1, 4096), Room(1, 1, 4096)], "memory unknown"
    assert RayExecutor(Environment(threads=8), Resources(2)).slots == 1


class Script:
    """Ray's process, of which all that it says is written down."""

    def __init__(self, *messages: Any) -> None:
        self.messages = [*messages]
        self.answers: list[Any] = []

    def receive(self, seconds: float) -> Any:  # noqa: ARG002
        return self.messages.pop(0)

    def send(self, value: Any) -> None:
        self.answers.append(value)

    def end(self, *, gently: bool) -> None: ...


def test_what_a_machine_says_that_died_after_its_job_changes_nothing() -> None:
    from llpbench.running.ray_executor import RayExecutor

    (job,) = scripted_jobs(5)
    records, lost = [make_record(job.cell)], Ended("lost", "its machine died")
    late = (Finished("a", lost), Started("a"), Progressed("a", Epoch(1, 2, "auc", 0.5, 1)))
    told = (Nodes((Room(1.0),)), Asked("a"), Started("a"), Finished("a", records), *late, Asked("b"), None)
    executor, diary = RayExecutor(Environment(), Resources(1)), Diary()
    executor._host = host = cast(Any, Script(*told))
    executor.run(Schedule([job], lambda _: 1.0), diary)
    assert diary.lines == ["started 5", "finished 5"]
    assert host.answers[1:] == ["finished"]


def test_the_time_budget_is_kept_while_jobs_wait_for_room_that_never_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    from llpbench.running import ray_executor

    class Asking(Script):
        def receive(self, seconds: float) -> Any:
            if seconds <= 0:
                raise TimeoutError
            time.sleep(0.01)
            return self.messages.pop(0) if self.messages else Asked(f"trial {len(self.answers)}")

    monkeypatch.setattr(ray_executor, "_PATIENCE", 0.2)
    jobs = scripted_jobs(5, 6)
    schedule, diary = Schedule(jobs, lambda _: 0.0, Deadline.after(0.1)), Diary()
    executor = ray_executor.RayExecutor(Environment(), Resources(1))
    executor._host = host = cast(Any, Asking(Nodes((Room(1.0),))))
    executor.run(schedule, diary)
    assert [type(answer).__name__ for answer in host.answers[:2]] == ["Order", "str"]
    assert schedule.left == [jobs[1]]
    assert diary.lines == ["started 5", "stopped 5: "]


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


@pytest.mark.slow
def test_ray_goes_on_whatever_happens_to_its_processes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from llpbench.running.ray_executor import RayExecutor

    jobs = scripted_jobs(1, 2, 3, 4, 5, 6)
    schedule = Schedule(jobs, lambda _: 1.0)
    diary = Strict(schedule, most=6)
    with pytest.raises(LLPBenchError, match=r"^the disk is full$"):
        RayExecutor(Environment(data_dir=str(tmp_path)), Resources(2), run=scripted).run(schedule, diary)
    found = reasons(diary.records)
    assert "failed 1: its code ended the process (exit code 3)" in diary.lines
    assert {job.cell.bag_size: found[job.cell.run_id(seed)] for job in jobs[1:] for seed in job.seeds} == {
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


ATTACK = """
import sys
import ray

ray.init(address=sys.argv[1], log_to_driver=False)
print("executed", ray.get(ray.remote(num_cpus=0)(lambda: 6 * 7).remote()))
"""


class Attacked(Diary):
    """A listener that lets another process, which knows no token, connect to the Ray of the run."""

    address = ""
    attack: subprocess.CompletedProcess[str]

    def started(self, job: Job) -> None:
        super().started(job)
        if not self.address:
            self.address = gcs_address()
            variables = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
            self.attack = subprocess.run(
                [sys.executable, "-c", ATTACK, self.address],
                env=variables | {"RAY_AUTH_MODE": "disabled", "RAY_gcs_rpc_server_reconnect_timeout_s": "5"},
                capture_output=True,
                text=True,
                timeout=120,
            )


def gcs_address() -> str:
    """Where the Ray that this process has started listens, as `ps` shows to everybody."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            named = [word for word in words if word.startswith(b"--gcs-address=")]
            if named and words[0].endswith(b"raylet") and is_ours(process.name):
                return named[0].decode().removeprefix("--gcs-address=")
    raise AssertionError("no Ray is running")


def is_ours(process: str) -> bool:
    """Whether this process has started another, or what started it."""
    while process not in ("0", str(os.getpid())):
        process = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1]
    return process != "0"


@pytest.mark.slow
def test_nobody_else_can_use_the_ray_of_a_run(tmp_path: Path) -> None:
    from llpbench.running.ray_executor import RayExecutor

    schedule = Schedule(scripted_jobs(5, 6, 7), lambda _: 1.0)
    diary = Attacked(schedule)
    RayExecutor(Environment(data_dir=str(tmp_path)), Resources(2), run=scripted).run(schedule, diary)
    assert "executed" not in diary.attack.stdout
    assert diary.attack.returncode != 0
    assert diary.address.startswith("127.0.0.1:")
    assert [record["status"] for record in diary.records] == ["ok"] * 6
    assert not [line for line in diary.lines if "died" in line], "the attack disturbs nothing"


class Stopping(Diary):
    """A listener that stops a process of the Ray of the run when the first job has started."""

    def __init__(self, schedule: Schedule, what: str) -> None:
        super().__init__(schedule)
        self.what = what
        self.stopped = 0

    def started(self, job: Job) -> None:
        super().started(job)
        if not self.stopped:
            self.stopped = next(
                int(process.name)
                for process in Path("/proc").glob("[0-9]*")
                if self.what in (process / "cmdline").read_bytes().decode(errors="replace") and is_ours(process.name)
            )
            os.kill(self.stopped, signal.SIGSTOP)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "ends"),
    [
        ("llpbench.running.ray_host", ["Ray died (no sign of life", "interrupted"]),
        ("gcs_server", ["Ray died (no sign of life", "interrupted"]),
        ("ray::", ["timed-out 23"]),
    ],
)
def test_what_is_frozen_is_taken_for_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, ends: list[str]
) -> None:
    from llpbench.running import ray_executor

    monkeypatch.setattr(ray_executor, "_SILENCE", 8.0)
    monkeypatch.setattr(ray_executor, "_GRACE", 8.0)
    sizes = (23, 5) if what == "ray::" else (5, 6)
    schedule = Schedule(scripted_jobs(*sizes), lambda _: 1.0, timeout=lambda _: 1.0 if what == "ray::" else 60.0)
    diary = Stopping(schedule, what)
    before = time.monotonic()
    ray_executor.RayExecutor(Environment(data_dir=str(tmp_path)), Resources(1), run=scripted).run(schedule, diary)
    assert time.monotonic() - before < 120
    assert all(any(line.startswith(end) for line in diary.lines) for end in ends), diary.lines
    assert not Path(f"/proc/{diary.stopped}").exists()
    assert [record["status"] for record in diary.records].count("ok") == 2, "the other job is done"
