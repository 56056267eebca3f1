"""Runs: missing and stale runs are computed once, and finished runs survive any end of the process."""

from __future__ import annotations

import os
import random
import re
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from bench import PLUGIN, LLPBench, arguments, as_they_were, make_settings, start, timeless
from factory import make_record
from rich.console import Console

from llpbench import load_results
from llpbench.core.cell import Cell, Epoch
from llpbench.core.errors import LLPBenchError
from llpbench.core.provenance import NUMERICS
from llpbench.core.record import Record, SomeDone, TuningRecord
from llpbench.core.registry import REGISTRIES, load_plugin
from llpbench.report.wording import STALE_NOTE
from llpbench.results import staleness
from llpbench.results.journal import FILE, LOCK, Contents, Journal
from llpbench.results.staleness import stale_reasons
from llpbench.running import runner
from llpbench.running.display import Display
from llpbench.running.executors import Listener, Outcome
from llpbench.running.executors.inline import Inline
from llpbench.running.runner import _RunSummary
from llpbench.running.schedule import Ended, Job, Schedule
from llpbench.training import device

KILLS = int(os.environ.get("LLPBENCH_TEST_KILLS", "1"))
"""how often the test of SIGKILL kills"""


Lines = list[dict[str, Any]]
SLOW = ("quick-a.seconds=0.2", "quick-b.seconds=0.2")
SLOWLY = ("--set", SLOW[0], "--set", SLOW[1])


class Silent(Display):
    """A display that remembers what was said."""

    def __init__(self) -> None:
        super().__init__(Console(quiet=True), live=False)
        self.said: list[str] = []
        self.tracebacks: list[str] = []
        self.jobs: list[str] = []

    def begin(self, runs: int) -> None: ...

    def estimate(self, seconds: float) -> None: ...

    def say(self, text: str, *, warning: bool = False) -> None:
        if text.startswith("What failed:"):  # the debug executor shows tracebacks
            self.tracebacks.append(text)
            return
        assert "\n" not in text
        self.said.append(text)

    def started(self, job: Job) -> None: ...

    def progressed(self, job: Job, epoch: Epoch) -> None: ...

    def finished(self, job: Job, records: Sequence[Record]) -> None:
        self.jobs.append(str(job))

    def search_finished(self, job: Job, record: TuningRecord, more: int) -> None:
        self.jobs.append(str(job))


def run(plugin: Path, out: Path, **flags: Any) -> tuple[_RunSummary, Silent]:
    display = Silent()
    return runner.run(make_settings(plugin, out, **flags), display), display


def journal(out: Path) -> list[Record]:
    return list(Contents.read(out / FILE).records.values())


@pytest.fixture(scope="module")
def finished(plugin: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The journal of a run that nothing disturbs."""
    out = tmp_path_factory.mktemp("undisturbed")
    with as_they_were():
        load_plugin(plugin)
        run(plugin, out, set=SLOW)
    return out / FILE


@pytest.fixture
def undisturbed(finished: Path, tiny_bench: Path) -> list[dict[str, Any]]:  # noqa: ARG001
    """What a run that nothing disturbs writes into its journal."""
    return timeless([*Contents.read(finished).records.values()])


def test_second_run_does_only_missing_work(tiny_bench: Path, tmp_path: Path) -> None:
    outcome, display = run(tiny_bench, tmp_path)
    assert (outcome.incomplete, len(display.jobs)) == (False, 4)
    assert [record["status"] for record in journal(tmp_path)] == ["ok"] * 8
    assert {path.name for path in tmp_path.iterdir()} == {FILE, LOCK}
    assert outcome.contents.records == Contents.read(tmp_path / FILE).records
    assert display.said == ["8 runs to do in 4 cells; less than a second; debug, 1 at a time"]
    before = (tmp_path / FILE).read_bytes()
    _, display = run(tiny_bench, tmp_path)
    assert display.said == ["nothing to run: 0 runs to do in 0 cells, 8 done"]
    assert (tmp_path / FILE).read_bytes() == before
    _, display = run(tiny_bench, tmp_path, seeds="4", bag_sizes="16,32")
    assert (tmp_path / FILE).read_bytes().startswith(before)
    sizes = ("16 (2 seeds)", "32 (4 seeds)")
    assert sorted(display.jobs) == [f"quick-{x} on tiny ordered {size}" for x in "ab" for size in sizes]


def test_failed_runs_are_repeated_on_request_only(tiny_bench: Path, tmp_path: Path) -> None:
    flags = {"methods": "quick-a,broken", "bag_sizes": "8"}
    outcome, _ = run(tiny_bench, tmp_path, **flags)
    assert outcome.incomplete
    failed = [record for record in journal(tmp_path) if record["status"] == "failed"]
    assert [record["seed"] for record in failed] == [0, 1]
    assert "ValueError: no luck" in failed[0]["reason"]
    assert "\n" not in failed[0]["reason"]
    outcome, display = run(tiny_bench, tmp_path, **flags)
    assert outcome.incomplete
    assert display.jobs == []
    outcome, display = run(tiny_bench, tmp_path, **flags, retry="failed")
    assert outcome.incomplete
    assert display.jobs == ["broken on tiny ordered 8 (2 seeds)"]
    assert len((tmp_path / FILE).read_text().splitlines()) == 6


def test_impossible_cells_are_skipped_with_reason(tiny_bench: Path, tmp_path: Path) -> None:
    outcome, display = run(tiny_bench, tmp_path / "a", bag_sizes="8,41", methods="quick-a")
    assert not outcome.incomplete
    assert display.said[0].startswith("impossible: bag size 41 is larger than the 40 validation rows of 'tiny'.")
    outcome, display = run(tiny_bench, tmp_path / "b", datasets="tiny,absent", methods="quick-a")
    assert outcome.incomplete, "data that cannot be loaded are a failure"
    assert display.said[0].startswith("impossible: dataset 'absent' has no file")
    with pytest.raises(LLPBenchError, match="bag size 41"):
        run(tiny_bench, tmp_path / "c", bag_sizes="41")


def test_time_budget_leaves_rest_for_next_run(tiny_bench: Path, tmp_path: Path) -> None:
    slow = {"set": ("quick-a.seconds=0.4", "quick-b.seconds=0.4"), "seeds": "1", "bag_sizes": "8,16,32"}
    outcome, display = run(tiny_bench, tmp_path, **slow, time_budget="1.5s")
    done = len(journal(tmp_path))
    assert 1 <= done < 6
    assert not outcome.incomplete
    assert re.findall(r"\d+", display.said[-1]) == [str(6 - done)]
    run(tiny_bench, tmp_path, **slow)
    assert len(journal(tmp_path)) == 6


def test_interrupt_keeps_finished_runs(tiny_bench: Path, tmp_path: Path, undisturbed: Lines) -> None:
    class Interrupted(Silent):
        def finished(self, job: Job, records: Sequence[Record]) -> None:
            super().finished(job, records)
            os.kill(os.getpid(), random.Random(len(self.jobs)).choice([signal.SIGINT, signal.SIGTERM]))

    flags = {"set": SLOW}
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    for done in (2, 4):
        with pytest.raises(KeyboardInterrupt):
            runner.run(make_settings(tiny_bench, tmp_path, **flags), Interrupted())
        assert len(journal(tmp_path)) == done
        assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before
    run(tiny_bench, tmp_path, **flags)
    assert timeless(journal(tmp_path)) == undisturbed


def test_torn_line_is_repaired_by_next_run(
    tiny_bench: Path, tmp_path: Path, finished: Path, undisturbed: Lines
) -> None:
    out = tmp_path
    path = out / FILE
    path.write_bytes(finished.read_bytes()[:-700])
    _, display = run(tiny_bench, out, set=SLOW)
    assert "torn" in display.said[0]
    assert len(display.jobs) == 1
    assert timeless(journal(out)) == undisturbed
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], lines[3][:50] + b"\n", *lines[4:]]))
    _, display = run(tiny_bench, out, set=SLOW)
    assert "line 4" in display.said[0]
    assert timeless(journal(out)) == undisturbed


def whole_lines(out: Path) -> int:
    """Number of complete lines of a journal. Its size says less: a loaded system can kill a process within a write."""
    return (out / FILE).read_bytes().count(b"\n") if (out / FILE).exists() else 0


@pytest.mark.slow
def test_run_killed_at_random_ends_as_undisturbed(
    plugin: Path, tmp_path: Path, undisturbed: Lines, llpbench: LLPBench
) -> None:
    moment, out, done = random.Random(), tmp_path / "killed", 0
    for _ in range(KILLS):
        lines = whole_lines(out)
        process = start([*arguments(plugin, out, *SLOWLY), "--executor", "inline"])
        while process.poll() is None and whole_lines(out) <= lines:
            time.sleep(0.01)  # until it has something to lose
        time.sleep(moment.uniform(0.0, 0.3))
        process.kill()
        _, errors = process.communicate()
        assert whole_lines(out) > lines or process.returncode == 0, errors
        assert len(journal(out)) >= done, "a finished run was lost"
        done = len(journal(out))
    assert done > 0
    llpbench.succeed(*arguments(plugin, out, *SLOWLY))
    assert timeless(journal(out)) == undisturbed
    assert "quick-b" in (out / "README.md").read_text()


def test_out_of_memory_job_is_retried_alone(tiny_bench: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[tuple[str, tuple[int, ...]]] = []
    waiting: list[list[int]] = []

    def crowded(cell: Cell, seeds: Sequence[int], *_: object) -> list[Record]:
        tried.append((cell.method, tuple(seeds)))
        waiting.append([record["seed"] for record in journal(tmp_path) if record["status"] == "out-of-memory"])
        first = tried.count((cell.method, tuple(seeds))) == 1
        status = "out-of-memory" if cell.method == "quick-b" or (first and len(seeds) == 3) else "ok"
        return [make_record(cell, seed, status if seed > 0 else "ok") for seed in seeds]  # type: ignore[arg-type]

    class TwoSlots(Inline):
        slots = 2

    def choose(settings: Any, *_: object) -> tuple[Inline, str]:
        return TwoSlots(settings.environment, crowded, debug=True), ""  # type: ignore[arg-type]

    monkeypatch.setattr(runner, "_pick_executor", choose)
    outcome, display = run(tiny_bench, tmp_path, seeds="3", bag_sizes="8")
    assert tried == [("quick-a", (0, 1, 2)), ("quick-b", (0, 1, 2)), ("quick-a", (1, 2)), ("quick-b", (1, 2))]
    assert waiting == [[]] * 4, "a waiting retry is not in the journal: an interrupted run repeats it"
    assert "quick-a on tiny ordered 8 (3 seeds): out of memory while sharing the device; retrying alone" in display.said
    assert [record["spec"]["method"] for record in outcome.failed] == ["quick-b"] * 2, "no third attempt"


def test_job_without_record_is_reported(tiny_bench: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = {
        8: [Ended("killed", "by somebody")],
        16: [Ended("killed", "by somebody")] * 2,
        32: [Ended("lost", "with its machine")] * 2,
        33: [Ended("lost", "with its machine")] * 3,
        34: [Ended("interrupted", "Ray died")] * 9,
        35: [Ended("timed-out", "too long")],
        36: [Ended("stopped")],
    }
    tried: list[tuple[int, bool, int]] = []

    class Unlucky(Inline):
        def run(self, schedule: Schedule, listener: Listener) -> None:
            while (job := schedule.next()) is not None:
                size = job.cell.bag_size or 0
                tried.append((size, job.alone, job.attempt))
                listener.started(job)
                made: Outcome = [make_record(job.cell, seed) for seed in job.seeds]
                listener.notify(job, ends[size].pop() if ends[size] else made)

    monkeypatch.setattr(runner, "_pick_executor", lambda settings, *_: (Unlucky(settings.environment), ""))
    sizes = ",".join(map(str, ends))
    _, display = run(tiny_bench, tmp_path, methods="quick-a", seeds="2", bag_sizes=sizes)
    found = {record["spec"]["bag_size"]: (record["status"], record["reason"]) for record in journal(tmp_path)}
    good = dict.fromkeys((8, 32, 34), ("ok", ""))
    bad = {16: ("failed", "by somebody"), 33: ("failed", "with its machine"), 35: ("timed-out", "too long")}
    assert found == {**good, **bad}
    assert [each for each in tried if each[0] == 8] == [(8, False, 1), (8, True, 1)]
    assert [each for each in tried if each[0] == 33] == [(33, False, 1), (33, False, 2), (33, False, 3)]
    assert re.findall(r"\d+", display.said[-1]) == ["2"]
    assert "quick-a on tiny ordered 8 (2 seeds): by somebody; retrying alone" in display.said


def test_finished_seeds_of_an_ended_job_stay(tiny_bench: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = {8: Ended("timed-out", "too long"), 16: Ended("killed", "by somebody"), 32: Ended("stopped"), 33: None}
    tried: list[tuple[int, tuple[int, ...]]] = []

    class Partly(Inline):
        def run(self, schedule: Schedule, listener: Listener) -> None:
            while (job := schedule.next()) is not None:
                size = job.cell.bag_size or 0
                tried.append((size, job.seeds))
                listener.started(job)
                made = [make_record(job.cell, seed) for seed in job.seeds]
                listener.notify(job, SomeDone(made[:1]))
                listener.notify(job, ends.pop(size, None) or made)

    monkeypatch.setattr(runner, "_pick_executor", lambda settings, *_: (Partly(settings.environment), ""))
    _, display = run(tiny_bench, tmp_path, methods="quick-a", seeds="2", bag_sizes="8,16,32,33")
    found = sorted((line["spec"]["bag_size"], line["seed"], line["status"]) for line in journal(tmp_path))
    both = [(size, seed, "ok") for size in (16, 33) for seed in (0, 1)]
    assert found == sorted([(8, 0, "ok"), (8, 1, "timed-out"), (32, 0, "ok"), *both])
    assert [seeds for size, seeds in tried if size == 16] == [(0, 1), (1,)]
    assert re.findall(r"\d+", display.said[-1]) == ["1"], "runs that are left"


def test_missing_device_is_refused(tiny_bench: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "compiler_exists", lambda: False)
    lacking = ({"device": "cuda:99"}, {"device": "cpu", "precision": "bfloat16"}, {"device": "cpu", "compile": True})
    for flags in lacking:
        with pytest.raises(LLPBenchError) as error:
            run(tiny_bench, tmp_path, **flags)
        with pytest.raises(LLPBenchError) as planned:
            runner.preview(make_settings(tiny_bench, tmp_path, **flags), pytest.fail)
        assert str(planned.value) == str(error.value)
        assert "\n" not in str(error.value)
        assert journal(tmp_path) == []


def test_disputed_run_counts_as_done(tiny_bench: Path, tmp_path: Path) -> None:
    run(tiny_bench, tmp_path)
    with Journal(tmp_path) as made:
        other = deepcopy(next(iter(made.contents.records.values())))
        other["results"]["auc"]["test"]["auc"] = 0.125
        made.append(other)
    assert Contents.read(tmp_path / FILE).disputes
    _, display = run(tiny_bench, tmp_path)
    assert display.jobs == [], "running again would not resolve the dispute"


def test_run_without_cluster_is_refused_and_leaves_nothing(tiny_bench: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    for out in (tmp_path / "new" / "folder", mine):
        with pytest.raises(LLPBenchError, match=r"no Ray cluster can be joined at '127.0.0.1:1' \(Connection.*refused"):
            run(tiny_bench, out, executor="ray", ray_address="127.0.0.1:1")
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.slow
def test_ray_interrupted_and_resumed_gives_same_records(plugin: Path, tmp_path: Path, undisturbed: Lines) -> None:
    out = tmp_path / "ray"
    elsewhere = tmp_path / "checkout" / "llpbench"  # of another version, say: not what Ray's processes may import
    elsewhere.mkdir(parents=True)
    (elsewhere / "__init__.py").write_text("raise RuntimeError('imported from where the run was started')\n")
    command = [*arguments(plugin, out, *SLOWLY), "--executor", "ray"]
    with tempfile.TemporaryDirectory(dir="/tmp") as temporary:  # Ray's sockets need a short path
        environment = {**os.environ, "TMPDIR": temporary}
        process = start(command, env=environment, cwd=elsewhere.parent, start_new_session=True)
        while process.poll() is None and not journal(out):
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to Ray's processes too
        output, errors = process.communicate(timeout=120)
        assert [*Path(temporary).glob("*/*")] == []
    assert process.returncode == 130, errors
    assert errors.splitlines()[-1].startswith("llpbench: interrupted.")
    assert "Traceback" not in errors
    assert output == ""
    assert 0 < len(journal(out)) < 8
    run(plugin, out, set=SLOW)
    assert timeless(journal(out)) == undisturbed


CARELESS = '''
import warnings
import numpy as np
import torch
from llpbench import DirectMethod, register_method


@register_method("careless", reference="Doe 2026")
class Careless(DirectMethod):
    """The overall shares, and no manners."""

    def fit(self, train, schema, rng):
        torch.set_default_dtype(torch.float64)
        torch.set_grad_enabled(False)
        np.random.seed(1)
        np.seterr(all="raise")
        warnings.simplefilter("error")
        return lambda rows: np.tile(train.prior, (len(rows.numeric), 1))
'''
OTHERS = "bag-mean-linear,llp-vat,dllp"


def test_careless_plugin_does_not_change_other_results(plugin: Path, tmp_path: Path) -> None:
    """Every executor does its jobs in the processes of this one."""
    careless = tmp_path / "careless.py"
    careless.write_text(CARELESS)
    found, shown = [], []
    for methods, executor in ((OTHERS, "debug"), (f"careless,{OTHERS}", "inline")):
        flags = {"methods": methods, "bag_sizes": "8", "executor": executor, "epochs": "3", "encoders": "mlp"}
        settings, display = make_settings(plugin, tmp_path / executor, **flags), Silent()
        with as_they_were():
            summary = runner.run(replace(settings, plugin=(str(plugin), str(careless))), display)
        records = summary.contents.records.values()
        assert {record["status"] for record in records} == {"ok"}
        found.append(timeless([record for record in records if record["spec"]["method"] != "careless"]))
        shown.append([line for line in display.said if " changed " in line])
    assert found[0] == found[1]
    assert len(found[0]) == 6
    assert [len(lines) for lines in shown] == [0, 1]
    assert "careless" in shown[1][0]


VOTES = '''
"""Votes by district: only counts are known."""

from llpbench.core.registry import register_dataset
from llpbench.data.sources import Parquet


@register_dataset("votes", source=Parquet("people.parquet"), bags=Parquet("districts.parquet"), by=("district",))
def votes(frame):
    """Who voted what?"""
    return frame
'''


def write_votes(folder: Path) -> Path:
    rng = np.random.default_rng(0)
    district = np.sort(rng.integers(0, 60, 900))
    age = rng.normal(size=60)[district] + rng.normal(size=900)
    yes = rng.random(900) < 1 / (1 + np.exp(-2 * age))
    people = pd.DataFrame({"age": age, "noise": rng.normal(size=900), "district": district})
    people.to_parquet(folder / "people.parquet")
    counts = pd.DataFrame({"no": ~yes, "yes": yes}).groupby(district).sum().astype(float)
    counts.iloc[0] = np.nan  # suppressed
    counts.rename_axis("district").reset_index().to_parquet(folder / "districts.parquet")
    plugin = folder / "votes.py"
    plugin.write_text(VOTES, encoding="utf-8")
    return plugin


def test_dataset_without_labels_is_trained_and_judged_by_bags(llpbench: LLPBench, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ("--datasets", "votes", "--plugin", str(write_votes(tmp_path)), "--executor", "debug", "--seeds", "2")
    methods = ("--methods", "bag-share,bag-mean-linear,dllp,supervised-gbdt", "--epochs", "3")
    result = llpbench.succeed("run", *words, *methods, "--baggings=given,random", "--bag-sizes=16", "--out", str(out))
    assert "given bags, mPIoU of validation bags" in result.out
    assert "'supervised-gbdt' needs labels of rows, but 'votes' has none" in result.err
    assert "no labels of rows, so 'random' bags cannot be counted. Choose --baggings given" in result.err
    records = Contents.read(out / FILE).records.values()
    assert len(records) == 6
    for record in records:
        assert record["status"] == "ok"
        assert {"auc", "accuracy"}.isdisjoint(record["results"])
        assert set(record["results"]["l1"]["test"]) == {"mpiou", "l1"}
    page = (out / "README.md").read_text(encoding="utf-8")
    assert page.index("| bag-mean-linear ") < page.index("| bag-share (floor) ")
    shown = (out / "index.html").read_text(encoding="utf-8")
    assert re.search("<h2>[^<]*given bags[^<]*</h2>", shown)
    results = load_results(out)
    board, scores = results.leaderboard(), results.scores
    assert [*board["method"]] == [*results.leaderboard("l1")["method"]] == ["bag-mean-linear", "dllp", "bag-share"]
    assert {*board["metric"]} == {"mpiou"}
    assert board["rank"].isna().all()
    assert {*zip(scores["criterion"], scores["metric"], strict=True)} == {("mpiou", "mpiou"), ("l1", "l1")}
    assert "bag-mean-linear" in repr(results)
    assert results.plot("time").figure.axes
    with pytest.raises(LLPBenchError, match="mpiou 'given'"):
        results.plot("time", bagging="ordered")


@pytest.fixture
def bench(plugin: Path, tmp_path: Path) -> Path:
    """A plugin that tests edit."""
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "tiny.parquet").write_bytes((plugin.parent / "tiny.parquet").read_bytes())
    path = folder / "tiny_bench.py"
    path.write_text(PLUGIN)
    return path


@pytest.fixture
def again(llpbench: LLPBench, bench: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """Run the same command as in a new process: the plugin is loaded again. Returns its first line and result."""
    original = {registry.kind: dict(registry._entries) for registry in REGISTRIES.values()}

    def again(*more: str):  # type: ignore[no-untyped-def]
        for registry in REGISTRIES.values():
            monkeypatch.setattr(registry, "_entries", dict(original[registry.kind]))
        monkeypatch.setattr("llpbench.core.registry._loaded_plugins", {})
        sys.modules.pop("llpbench_plugin_tiny_bench", None)
        result = llpbench(*arguments(bench, bench.parent / "out", "--bag-sizes", "8", "--seeds", "1", *more))
        return (result.err or result.out).splitlines()[0], result

    return again


def records(bench: Path) -> list[Record]:
    return journal(bench.parent / "out")


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


DONE = "nothing to run: 0 runs to do in 0 cells, 2 done"


def test_runs_of_later_code_are_not_repeated(again, bench: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    again()
    with monkeypatch.context() as patch:
        patch.setattr(staleness, "NUMERICS", 99)
        assert f"stale: quick-a: version of engine {NUMERICS}, now 99 (1 run)" in again("--dry-run")[1].out
    path = bench.parent / "out" / FILE
    path.write_text(path.read_text().replace(f'"numerics":{NUMERICS}', f'"numerics":{NUMERICS + 1}'))
    before = path.read_bytes()
    told, result = again()
    assert result.code == 2
    for named in ("quick-a", f"version of engine {NUMERICS + 1}, now {NUMERICS}", "--keep-stale", "--out"):
        assert named in told
    assert path.read_bytes() == before
    assert again("--keep-stale")[1].code == 0


def test_older_method_does_not_repeat_runs_of_newer_one(again, bench: Path) -> None:  # type: ignore[no-untyped-def]
    edit(bench, '"quick-a", ', '"quick-a", version=2, ')
    again()
    before = records(bench)
    edit(bench, "version=2", "version=1")
    told, result = again()
    assert (result.code, records(bench)) == (2, before)
    assert "quick-a" in told
    assert again("--keep-stale")[1].code == 0
    edit(bench, "version=1", "version=10")
    again()
    assert [run["versions"]["method"] for run in records(bench) if run["spec"]["method"] == "quick-a"] == ["10"]


def test_edited_plugin_is_run_again_unless_stale_runs_are_kept(again, bench: Path) -> None:  # type: ignore[no-untyped-def]
    first, _ = again()
    assert first.startswith("2 runs to do in 2 cells;")
    assert again()[0] == DONE
    out, before = bench.parent / "out", {record["run"]: record for record in records(bench)}
    edit(bench, "rows.numeric @ weights", "2 * rows.numeric @ weights")
    _, result = again("--dry-run")
    assert "stale: quick-a: file of method changed; file of dataset changed (1 run)" in result.out
    content = (out / FILE).read_bytes()
    assert again("--keep-stale")[0] == "nothing to run: 0 runs to do in 0 cells, 2 stale and kept"
    assert (out / FILE).read_bytes() == content
    assert STALE_NOTE in (out / "README.md").read_text()
    assert "stale" in again("--keep-stale", "--dry-run")[1].out
    assert again()[0].startswith("2 runs to do in 2 cells, 2 of them stale;")
    assert "stale" not in (out / "README.md").read_text()
    assert again()[0] == DONE
    after = {record["run"]: record for record in records(bench)}
    assert before.keys() == after.keys()
    assert all(before[run]["versions"] != after[run]["versions"] for run in before)
    assert Contents.read(out / FILE).disputes == [], "other code, no dispute"


def test_runs_without_plugin_are_not_stale(again, bench: Path, llpbench: LLPBench) -> None:  # type: ignore[no-untyped-def]
    again()
    assert stale_reasons(records(bench)) == {}
    first, *others = changed = records(bench)
    older: Any = {**first, "data": {**first["data"], "fingerprint": "another table"}, "finished": "2020-01-01"}
    assert stale_reasons([older, *others]).keys() == {first["run"]}
    search: Any = {**older, "tuning": "s", "run": None, "spec": {"cell": first["spec"]}}
    assert stale_reasons([search, *changed]).keys() == {"s"}
    for record in changed:
        record["versions"]["method"] = "1"
    (reason,) = set(stale_reasons(changed).values())
    assert reason.startswith("version of method 1, now file:")
    for record in changed:
        record["spec"]["method"] = "not-here"
    assert stale_reasons(changed) == {}
    edit(bench, "rows.numeric @ weights", "2 * rows.numeric @ weights")
    out = bench.parent / "out"
    process = start(["report", "--no-plots", "--out", str(out), "--plugin", str(bench)])
    process.communicate(timeout=120)
    assert process.returncode == 0
    assert STALE_NOTE in (out / "README.md").read_text()
    llpbench.succeed("report", "--no-plots", "--out", str(out))
