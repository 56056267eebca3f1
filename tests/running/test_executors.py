"""Executors compute jobs, whatever happens to them; Ray does so as the inline one does."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from factory import make_cell_of, make_record
from scripted import scripted, scripted_jobs, scripted_slowly

from llpbench.core.cell import Environment, Epoch
from llpbench.core.errors import LLPBenchError
from llpbench.core.files import private_root
from llpbench.core.provenance import cell_versions, software
from llpbench.core.record import Record, SomeDone
from llpbench.results.journal import SAVED, Contents, Journal
from llpbench.running import channel, ray_host, worker
from llpbench.running.channel import Alive
from llpbench.running.cluster import Finished, Heard, NodeFiles, Nodes, Room, TrialRequest
from llpbench.running.estimates import Estimator
from llpbench.running.executors import Listener, Message, Outcome, Resources, Warned
from llpbench.running.executors import ray as ray_executor
from llpbench.running.executors.inline import Inline
from llpbench.running.runner import _pick_executor
from llpbench.running.schedule import Ended, Job, Schedule
from llpbench.running.settings import resolve

JOB = Job(make_cell_of("bag-mean-linear", encoder=None), (0, 1))


class Diary(Listener):
    """A listener that records messages, and re-queues out-of-memory jobs."""

    def __init__(self, schedule: Schedule | None = None) -> None:
        self.schedule = schedule
        self.lines: list[str] = []
        self.records: list[Record] = []

    def started(self, job: Job) -> None:
        self.lines.append(f"started {job.cell.bag_size}")

    def warned(self, text: str) -> None:
        self.lines.append(text)

    def notify(self, job: Job, message: Message | Outcome) -> None:
        size, again = job.cell.bag_size, None
        match message:
            case Alive():
                pass
            case Warned(text):
                self.warned(text)
            case Epoch():
                self.lines.append(f"epoch {size} {message.epoch} {message.value}")
            case SomeDone(records):
                self.records += records
            case Ended():
                self.lines.append(f"{message.how} {size}: {message.reason}")
                again = job if message.how == "lost" else None
            case list():
                self.lines.append(f"finished {size}{' alone' * job.alone}")
                self.records += message
                if any(record["status"] == "out-of-memory" for record in message):
                    again = Job(job.cell, job.seeds, alone=True)
            case _:
                self.lines.append(f"found {size} {message['status']}")
        if self.schedule is not None and again is not None:
            self.schedule.put(again)


def reasons(records: Sequence[Record]) -> dict[str, str]:
    return {record["run"]: f"{record['status']}: {record['reason']}" for record in records}


def test_debug_executor_runs_jobs_in_this_process(tmp_path: Path) -> None:
    schedule = Schedule(scripted_jobs(2, 3, 4, 5), lambda _: 1.0)
    diary = Diary(schedule)
    Inline(Environment(data_dir=str(tmp_path)), scripted, debug=True).run(schedule, diary)
    traceback = diary.lines.pop(3)
    assert traceback.startswith("What failed:\nTraceback (most recent call last):")
    assert 'raise RuntimeError("two\\nlines")' in traceback  # the line of code
    assert diary.lines == [
        *("started 2", "finished 2", "started 3", "finished 3", "started 4", "finished 4"),
        *("started 5", "epoch 5 7 nan", "finished 5", "started 4", "epoch 4 7 nan", "finished 4 alone"),
    ]


def test_inline_executor_survives_crashing_jobs(tmp_path: Path) -> None:
    schedule = Schedule(scripted_jobs(1, 20, 21, 23, 5), lambda _: 1.0, timeout=lambda _: 2.0)
    diary = Diary(schedule)
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    before = children.read_text()
    Inline(Environment(data_dir=str(tmp_path)), scripted).run(schedule, diary)
    assert children.read_text() == before, "no process is left"
    assert [line.partition(":")[0] for line in diary.lines] == [
        *("started 1", "failed 1"),
        *("started 20", "killed 20"),
        *("started 21", "failed 21"),
        *("started 23", "timed-out 23"),
        *("started 5", "epoch 5 7 nan", "finished 5"),
    ]
    assert [name in line for name, line in zip(("SIGKILL", "SIGSEGV"), diary.lines[3:6:2], strict=True)] == [True] * 2


def test_time_budget_stops_running_jobs(tmp_path: Path) -> None:
    schedule = Schedule(scripted_jobs(5, 23, 6), lambda job: float(job.cell.bag_size == 6), end=time.monotonic() + 3.0)
    diary = Diary(schedule)
    begin = time.monotonic()
    Inline(Environment(data_dir=str(tmp_path)), scripted).run(schedule, diary)
    assert time.monotonic() - begin < 10
    assert diary.lines == ["started 5", "epoch 5 7 nan", "finished 5", "started 23", "stopped 23: "]
    assert schedule.waiting == []
    assert [job.cell.bag_size for job in schedule.left] == [6]


def test_job_code_cannot_block_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "_SECONDS_TO_EXIT", 1.0)
    schedule = Schedule(scripted_jobs(24, 25, 26, 27, 5), lambda _: 1.0, timeout=lambda _: 30.0)
    diary = Diary(schedule)
    Inline(Environment(data_dir=str(tmp_path)), scripted).run(schedule, diary)
    assert [line.partition(":")[0] for line in diary.lines] == [
        *("started 24", "finished 24"),
        *("started 25", "epoch 25 7 nan", "finished 25"),
        *("started 26", "failed 26"),
        *("started 27", "epoch 27 7 nan", "finished 27"),
        *("started 5", "epoch 5 7 nan", "finished 5"),
    ]
    found = reasons(diary.records)
    assert found[scripted_jobs(24)[0].cell.run_id(0)] == "failed: KeyboardInterrupt: by hand"
    assert [record["status"] for record in diary.records] == ["failed"] * 2 + ["ok"] * 6


def test_errors_become_failed_records_and_interrupts_are_passed_on() -> None:
    for size, reason in ((2, "bad data"), (3, "RuntimeError: two lines"), (22, "SystemExit: 7")):
        (job,) = scripted_jobs(size)
        records = job.run(Environment(), lambda _: None, scripted)
        assert isinstance(records, list)
        assert reasons(records) == {job.cell.run_id(seed): f"failed: {reason}" for seed in (0, 1)}
        for record in records:
            assert record.keys() == Record.__required_keys__
            assert record["spec"] == job.cell.spec
            assert record["method"] == {"kind": "direct", "role": "", "reference": "Goodman 1953", "changed": {}}
            assert record["dataset"]["code"] == "AD"
            assert record["versions"] == cell_versions("bag-mean-linear", "adult", "ordered", None)

    def interrupted(*_: object) -> list[Record]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        JOB.run(Environment(), lambda _: None, interrupted)


# Choice


def chosen(resources: Resources, jobs: Sequence[Job], seconds: float = 60.0, **flags: Any) -> tuple[str, str]:
    """The choice for jobs of so many seconds a seed."""
    settings = resolve({name: str(value) for name, value in flags.items()})
    estimator = Estimator([make_record(jobs[0].cell, seconds=seconds)])
    executor, note = _pick_executor(settings, jobs, resources, estimator)
    return executor.name, note


def test_auto_executor_is_ray_for_parallel_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = scripted_jobs(5, 6)
    assert chosen(Resources(2), jobs) == ("ray", "")
    assert chosen(Resources(1), jobs) == ("inline", "")
    assert chosen(Resources(2), jobs[:1]) == ("inline", "")
    assert chosen(Resources(2), jobs, threads=2) == ("inline", "")
    assert chosen(Resources(4), jobs, threads=2) == ("ray", "")
    assert chosen(Resources(2, 2), jobs, device="cuda:1") == ("inline", "")
    assert chosen(Resources(2), jobs, executor="inline") == ("inline", "")
    assert chosen(Resources(1), jobs[:1], executor="ray") == ("ray", "")
    assert chosen(Resources(2), jobs, seconds=1) == ("inline", ""), "not for a few seconds of work"
    with monkeypatch.context() as patch:
        patch.setenv("PATH", "/nowhere")
        assert chosen(Resources(2), jobs) == ("ray", ""), "bash is in a folder of the system"
        patch.setattr(os, "defpath", "/nowhere")
        with pytest.raises(LLPBenchError, match="bash"):
            chosen(Resources(2), jobs)
    with pytest.raises(LLPBenchError, match="--device cuda:1"):
        chosen(Resources(2, 2), jobs, executor="ray", device="cuda:1")
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "ray" else find(name))
    name, note = chosen(Resources(2), jobs)
    assert (name, bool(note)) == ("inline", True)
    assert chosen(Resources(1), jobs) == ("inline", "")
    with pytest.raises(LLPBenchError):
        chosen(Resources(2), jobs, executor="ray")


def test_capacity_of_cpus_and_gpus() -> None:
    direct, neural = Job(make_cell_of("ridge", encoder=None), (0,)), Job(make_cell_of(), (0, 1))
    alone = Job(neural.cell, (0,), alone=True)

    def rooms(executor: Any, *nodes: Room, gpu_megabytes: float = 0.0) -> list[Room]:
        executor._nodes = Nodes(nodes, gpu_megabytes)
        return [executor._needs(job) for job in (direct, neural, alone)]

    cpu = ray_executor.RayExecutor(Environment(threads=2), Resources(9))
    assert cpu.slots == 4
    assert rooms(cpu, Room(8, 0, 9e4)) == [Room(2, 0, 1024), Room(2, 0, 1024), Room(8, 0, 1024)]
    assert rooms(cpu, Room(1, 0, 500), Room(1, 0, 9e4)) == [Room(1, 0, 500)] * 3, "no more than a machine has"
    known = ray_executor.RayExecutor(Environment(), Resources(16, 2), lambda _: 15_000.0, lambda _: 3000.0)
    both = Room(16, 2, 9e4), Room(32, 0, 9e4)
    assert rooms(known, *both, gpu_megabytes=80_000.0) == [Room(1, 0, 4096), Room(1, 0.25, 4096), Room(1, 1, 4096)]
    assert rooms(known, *both) == [Room(1, 0, 4096), Room(1, 1, 4096), Room(1, 1, 4096)], "memory unknown"
    assert ray_executor.RayExecutor(Environment(threads=8), Resources(2)).slots == 1
    megabytes = (1_000, 8_001, 30_000, 40_000, 900_000)
    assert [Nodes((), 80_000).gpu_share(each) for each in megabytes] == [1 / 8, 1 / 4, 1 / 2, 1, 1]
    assert [Nodes((), memory).gpu_share(None) for memory in (140_000, 40_000, 8_000)] == [1 / 8, 1 / 2, 1]
    assert Room.sum([Room(1, 0.5, 10), Room(2, 0, 5)]) == Room(3, 0.5, 15)
    assert [Room(2, 1, 10).holds(other) for other in (Room(2, 0.5, 10), Room(1, 0, 11))] == [True, False]


class Script:
    """Ray's process with a record of all answers. After its messages it sends `idle` again and again."""

    def __init__(self, *messages: Any, idle: Any = None) -> None:
        self.messages = [*messages]
        self.idle = idle
        self.answers: list[Any] = []

    def receive(self, seconds: float, silence: float = 0.0) -> Any:
        if seconds <= 0:
            raise TimeoutError
        time.sleep(0.01)
        return self.messages.pop(0) if self.messages else self.idle

    def send(self, value: Any) -> None:
        self.answers.append(value)

    def end(self, *, gently: bool) -> None: ...


def test_late_message_of_dead_machine_is_ignored() -> None:
    (job,) = scripted_jobs(5)
    records, lost = [make_record(job.cell)], Ended("lost", "its machine died")
    late = (Finished("a", lost), Heard("a", None), Heard("a", Epoch(1, 2, "auc", 0.5, 1)))
    begin = (Nodes((Room(1.0),)), TrialRequest("a"), Heard("a", None), Finished("a", records))
    told = (*begin, *late, TrialRequest("b"), None)
    executor, diary = ray_executor.RayExecutor(Environment(), Resources(1)), Diary()
    executor._host = host = cast(Any, Script(*told))
    executor.run(Schedule([job], lambda _: 1.0), diary)
    assert diary.lines == ["started 5", "finished 5"]
    assert host.answers[1:] == ["finished"]


def test_time_budget_ends_waiting_jobs() -> None:
    jobs = scripted_jobs(5, 6)
    schedule, diary = Schedule(jobs, lambda _: 0.0, end=time.monotonic() + 0.3), Diary()
    executor = ray_executor.RayExecutor(Environment(), Resources(1))
    executor._host = host = cast(Any, Script(Nodes((Room(1.0),)), TrialRequest("a"), idle=TrialRequest("b")))
    executor.run(schedule, diary)
    assert [type(answer).__name__ for answer in host.answers[:2]] == ["TrialJob", "str"]
    assert schedule.left == [jobs[1]]
    assert diary.lines == ["started 5", "stopped 5: "]


def test_job_finishes_when_process_is_free() -> None:
    """Else the next job takes a process that starts for another, whose start was then in vain."""
    from llpbench.running.ray_host import _Events

    told: list[Any] = []
    events = _Events(cast(Any, SimpleNamespace(send=told.append)))
    one, other = (cast(Any, SimpleNamespace(trial_id=name, error_file=None)) for name in "ab")
    for trial in (one, other):
        events.on_trial_start(0, [], trial)
        events.on_trial_result(0, [], trial, {"message": pickle.dumps([])})
    assert told == [Heard("a", None), Heard("b", None)]
    events.on_trial_complete(0, [], one)
    events.on_trial_error(0, [], other)  # its machine died just after it had told what it made
    assert told[2:] == [Finished("a", []), Finished("b", [])]
    events.on_trial_error(0, [], one)
    assert cast(Ended, told[4].outcome).how == "lost"


class Planted:
    """A pickle that creates a file when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("The actor died unexpectedly before finishing.\n\tclass_name: I", ("lost", "its process or machine died")),
        ("ray::train() (pid=1)\n  File\nOSError: [Errno 28] full\n", ("failed", "OSError: [Errno 28] full")),
    ],
)
def test_lost_trial_has_reason_and_its_pickle_is_not_loaded(tmp_path: Path, text: str, end: tuple[str, str]) -> None:
    (tmp_path / "error.txt").write_text(f"Failure # 1 (occurred at now)\n{text}")
    (tmp_path / "error.pkl").write_bytes(pickle.dumps(Planted(tmp_path / "executed")))
    files = {"error_file": str(tmp_path / "error.txt"), "pickled_error_file": str(tmp_path / "error.pkl")}
    found = ray_host._lost_trial(SimpleNamespace(**files))
    assert (found.how, found.reason[-len(end[1]) :]) == end
    assert not (tmp_path / "executed").exists()


def test_frozen_worker_is_ended_and_others_continue(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Impatient(Diary):
        def started(self, job: Job) -> None:
            super().started(job)
            if job.cell.bag_size == 28:
                monkeypatch.setattr(worker, "SECONDS_OF_SILENCE", 3.0)

        def notify(self, job: Job, message: Message | Outcome) -> None:
            super().notify(job, message)
            if isinstance(message, Ended):
                monkeypatch.undo()

    diary = Impatient()
    Inline(Environment(data_dir=str(tmp_path)), scripted).run(Schedule(scripted_jobs(5, 28, 6), lambda _: 1.0), diary)
    assert [line.partition(":")[0] for line in diary.lines if "epoch" not in line] == [
        *("started 5", "finished 5"),
        *("started 28", "killed 28"),
        *("started 6", "finished 6"),
    ]


@pytest.mark.parametrize("started", [True, False], ids=["frozen", "never-started"])
def test_silent_process_of_ray_is_ended_and_others_continue(monkeypatch: pytest.MonkeyPatch, *, started: bool) -> None:
    silent, other = scripted_jobs(23, 5)
    nodes, done = Nodes((Room(1.0),)), Finished("b", [make_record(other.cell)])
    first = Script(nodes, TrialRequest("a"), *[Heard("a", None)] * started, idle=Alive())
    hosts = [first, Script(nodes, TrialRequest("b"), Heard("b", None), done)]
    monkeypatch.setattr(ray_executor, "Child", lambda *_, **__: hosts.pop(0))
    monkeypatch.setattr(ray_executor, "_SECONDS_OF_SILENT_TRIAL", 0.1)
    diary = Diary()
    ray_executor.RayExecutor(Environment(), Resources(1)).run(Schedule([silent, other], lambda _: 1.0), diary)
    assert any(line.startswith(f"{'killed' if started else 'interrupted'} 23") for line in diary.lines)
    assert diary.lines[-2:] == ["started 5", "finished 5"]


def test_job_waits_for_room_in_cluster_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_executor, "_SECONDS_OF_SILENT_TRIAL", 0.05)
    (job,) = scripted_jobs(5)
    waiting = [Alive()] * 20
    executor, diary = ray_executor.RayExecutor(Environment(), Resources(1)), Diary()
    executor._setup = replace(executor._setup, address="head:6379")
    done = Heard("a", None), Finished("a", [make_record(job.cell)])
    executor._host = cast(Any, Script(Nodes((Room(1.0),)), TrialRequest("a"), *waiting, *done))
    executor.run(Schedule([job], lambda _: 1.0), diary)
    assert len(diary.lines) == 3, "one warning"
    assert diary.lines[1:] == ["started 5", "finished 5"]


# Ray itself


ATTACK = """
import sys
import ray

ray.init(address=sys.argv[1], log_to_driver=False)
print("executed", ray.get(ray.remote(num_cpus=0)(lambda: 6 * 7).remote()))
"""


class Hostile(Diary):
    """A listener that does its worst to the Ray of the run, and keeps a journal.

    It freezes the first Ray. It lets another process connect to the second, with no token. At the end it replaces the
    journal by a copy, which ends the run.
    """

    attack: subprocess.Popen[str] | None = None
    attacked = ""
    """what the attack printed"""

    def __init__(self, schedule: Schedule, journal: Journal) -> None:
        super().__init__(schedule)
        self.journal = journal
        self.addresses: list[str] = []
        self.folders: list[Path] = []
        self.frozen = 0
        self.warnings = 0

    def started(self, job: Job) -> None:
        super().started(job)
        if (address := argument_of_raylet(b"--gcs-address=")) in self.addresses:
            return
        self.addresses.append(address)
        self.folders.append(Path(argument_of_raylet(b"--temp_dir=")))
        assert any(folder.stat().st_mode & 0o077 == 0 for folder in self.folders[-1].parents), "Ray opens its own"
        if len(self.addresses) == 1:
            self.frozen = next(process for process, words in ours() if words[0].endswith(b"gcs_server"))
            os.kill(self.frozen, signal.SIGSTOP)
            return
        variables = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
        self.attack = subprocess.Popen(
            [sys.executable, "-c", ATTACK, address],
            env=variables | {"RAY_AUTH_MODE": "disabled", "RAY_gcs_rpc_server_reconnect_timeout_s": "5"},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def notify(self, job: Job, message: Message | Outcome) -> None:
        super().notify(job, message)
        if self.schedule is not None and isinstance(message, Ended) and message.how == "interrupted":
            self.schedule.put(job)
        if isinstance(message, list):
            if sum(line.startswith("finished") for line in self.lines) == 6:
                assert self.attack is not None
                self.attacked, _ = self.attack.communicate(timeout=120)
                path = self.journal.path
                shutil.copy(path, path.with_name("copy"))
                path.with_name("copy").replace(path)
            self.journal.append(*message)

    def warned(self, text: str) -> None:
        super().warned(text)
        self.warnings += 1


def ours() -> Iterator[tuple[int, list[bytes]]]:
    """Processes that this one has started, directly or not, and their command lines."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            if is_ours(process.name):
                yield int(process.name), words


def argument_of_raylet(name: bytes) -> str:
    """As `ps` shows it to everybody."""
    raylets = (words for _, words in ours() if words[0].endswith(b"raylet"))
    return next(word for words in raylets for word in words if word.startswith(name)).removeprefix(name).decode()


def is_ours(process: str) -> bool:
    """Whether this process has started another, or what started it."""
    while process not in ("0", str(os.getpid())):
        process = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1]
    return process != "0"


@pytest.mark.slow
def test_ray_survives_kills_and_refuses_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    monkeypatch.setattr(ray_executor, "_SECONDS_OF_SILENCE", 8.0)
    monkeypatch.setattr(channel, "_SECONDS_TO_END", 4.0)
    monkeypatch.setenv("PATH", "/nowhere")
    jobs = scripted_jobs(1, 2, 3, 4, 5, 6)
    schedule = Schedule(jobs, lambda _: 1.0)
    executor = ray_executor.RayExecutor(Environment(data_dir=str(tmp_path)), Resources(2), run=scripted_slowly)
    journal = Journal(tmp_path / "out")
    diary = Hostile(schedule, journal)
    with pytest.raises(LLPBenchError), journal:
        executor.run(schedule, diary)
    captured = capfd.readouterr()
    assert captured.out + captured.err == ""

    assert not Path(f"/proc/{diary.frozen}").exists()
    assert diary.warnings == 1, "the first Ray is taken for dead, and the attack does not disturb the second"
    assert diary.attack is not None
    assert diary.attack.returncode != 0
    assert "executed" not in diary.attacked
    assert not any(folder.exists() for folder in diary.folders)
    assert all(address.startswith("127.0.0.1:") for address in diary.addresses)

    found = reasons(diary.records)
    assert any(line.startswith("failed 1: ") for line in diary.lines)
    expected = {2: "failed: bad data", 3: "failed: RuntimeError: two lines", **dict.fromkeys((4, 5, 6), "ok: ")}
    assert {job.cell.bag_size: found[job.cell.run_id(seed)] for job in jobs[1:] for seed in job.seeds} == expected
    assert diary.lines.index("finished 4") < diary.lines.index("finished 4 alone")
    assert {line for line in diary.lines if line.startswith("epoch")} == {f"epoch {size} 7 nan" for size in (4, 5, 6)}

    assert len(found) == 10
    assert Contents.read(tmp_path / "out" / SAVED).records == {record["run"]: record for record in diary.records}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NodeFiles:
    """As the driver has packed it, with the temporary folder of another machine."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    tables = {"credit": ("/driver/data/credit.parquet", 4, b"rows"), "movies": ("/driver/data/ml.zip", 3, b"zip")}
    tables["openml:31"] = ("/driver/data/openml-31.parquet", 5, b"toads")
    return NodeFiles("llpbench-1", software(), {"/driver/mine.py": b"x = 1\n"}, tables)


def test_missing_code_is_unpacked_once_per_machine(files: NodeFiles, tmp_path: Path) -> None:
    driver = Environment("/driver/data", pretrained="/driver/p", tuning="/driver/t", plugins=("/driver/mine.py",))
    fetched: list[bytes] = []

    def fetch(content: bytes) -> bytes:
        fetched.append(content)
        return content

    for _ in range(2):
        here = files.unpack(driver, "credit", fetch)
        assert here.data_dir is not None
        assert Path(here.data_dir, "credit.parquet").read_bytes() == b"rows"
        assert [Path(path).name for path in here.plugins] == ["mine.py"]
        assert Path(here.plugins[0]).read_bytes() == b"x = 1\n"
        assert here.pretrained == str(files.folder / "p")
        assert here.tuning == str(files.folder / "t")
    assert fetched == [b"rows"]
    assert files.folder == private_root() / "llpbench-1"
    assert files.folder.parent.parent == tmp_path
    assert files.folder.stat().st_mode & 0o077 == 0, "nobody else's business"
    others = {"movies": ("data-movies", "ml.zip"), "openml:31": ("data-openml-31", "openml-31.parquet")}
    for dataset, (folder, name) in others.items():
        assert files.unpack(driver, dataset, fetch).data_dir == str(files.folder / folder)
        assert (files.folder / folder / name).read_bytes() == files.tables[dataset][2]
    assert files.unpack(driver, "adult", fetch).data_dir is None, "it is embedded"


def test_shared_code_is_used_in_place_and_other_software_refused(files: NodeFiles, tmp_path: Path) -> None:
    for name, content in {"credit.parquet": b"rows", "mine.py": b"x = 1\n"}.items():
        (tmp_path / name).write_bytes(content)
    path, plugin = (str(tmp_path / name) for name in ("credit.parquet", "mine.py"))
    packed = replace(files, tables={"credit": (path, 4, b"rows")}, plugins={plugin: b"x = 1\n"})
    driver = Environment(data_dir=str(tmp_path), pretrained=str(tmp_path / "p"), plugins=(plugin,))
    assert packed.unpack(driver, "credit", pytest.fail) == driver
    (tmp_path / "mine.py").write_bytes(b"x = 2\n")
    assert packed.unpack(driver, "credit", pytest.fail).plugins != (plugin,), "another version of it"
    with pytest.raises(LLPBenchError, match=r"must have torch 1\.0 "):
        replace(files, software={**software(), "torch": "1.0"}).unpack(Environment(), "adult", pytest.fail)
