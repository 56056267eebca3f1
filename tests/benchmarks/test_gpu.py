"""The script for a GPU, part by part on a CPU: what it checks can fail, and it goes on where it ended."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from factory import make_record

from benchmarks.gpu import campaign, correctness, measures, part, tables, traces
from benchmarks.gpu.part import PROCESS, run_part
from benchmarks.gpu.rows import FILE, Box, Rows
from benchmarks.gpu.sizes import FULL, REHEARSAL
from llpbench.core.cell import Environment, Epoch
from llpbench.core.provenance import cell_versions
from llpbench.core.record import Record
from llpbench.core.tables import Table
from llpbench.data.loading import locate
from llpbench.data.specs import dataset_spec
from llpbench.results.journal import Contents, Journal
from llpbench.running.executors import Message, Outcome
from llpbench.running.schedule import Ended, Limit
from llpbench.running.schedule import Job as Work
from llpbench.training.device import Machine

CPU = torch.device("cpu")


@pytest.fixture
def rows(tmp_path: Path) -> Rows:
    return Rows(tmp_path, "cpu")


class TestRows:
    def test_finished_parts_are_skipped_and_unfinished_ones_come_last(self, rows: Rows, tmp_path: Path) -> None:
        for key, status in (("a", "started"), ("a", "ok"), ("b", "started"), ("c", "failed")):
            rows.add("part", key, status)
        assert rows.to_do("part", ["a", "b", "c", "d"]) == ["c", "d", "b"]
        assert rows.to_do("other", ["a"]) == ["a"]
        Rows(tmp_path, "H100").add("part", "e", "ok")  # of another device
        with (tmp_path / FILE).open("a") as file:
            file.write('{"part": "part", "ke')
        assert [row.key for row in rows.every()] == ["a", "a", "b", "c"]


class TestCorrectness:
    @pytest.mark.parametrize("key", ["tabllp-bdc mlp", "supervised mlp"])
    def test_cpu_agrees_with_itself(self, key: str) -> None:
        values = correctness.check(key, CPU)
        assert values["wrong"] == []
        assert values["against CPU"]["gradient"] == 0.0
        assert values.get("permuted", "") == ("identical" if key.startswith("tabllp") else "")

    def test_label_leak_is_found(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def flipped(table: Table, bags: Any) -> Table:
            labels = table.row_labels.copy()
            labels[bags.ravel()] = 0  # other counts
            return replace(table, labels=labels)

        monkeypatch.setattr(traces, "permuted_within", flipped)
        values = correctness.check("dllp mlp", CPU)
        assert values["wrong"] == ["permuted: differs: a label reaches the method"]

    def test_differing_numbers_are_found(self) -> None:
        subject = traces.Subject("dllp", "mlp")
        trace = subject.trace([0, 1], Machine(), 2)
        moved = replace(trace, gradients=trace.gradients + 0.1 * trace.gradients.roll(1, dims=1))
        assert not correctness.within(traces.distance(trace, moved), correctness.LOSS, correctness.GRADIENT)
        lost = replace(trace, losses=trace.losses * float("nan"))
        assert not correctness.within(traces.distance(trace, lost), correctness.LOSS, correctness.GRADIENT)
        assert correctness.within(traces.distance(trace, trace), 0.0, 0.0)


COMPILES: list[bool | None] = []
"""of the processes that the last run started"""


class Scripted:
    """A worker that trains nothing: `answers` are what it makes of each job."""

    def __init__(self, answer: Callable[[Work], Outcome]) -> None:
        self.answer = answer
        self.jobs: list[Work] = []

    def __call__(self, environment: Environment) -> Scripted:
        assert environment.pretrained is not None
        COMPILES.append(environment.compile)
        return self

    def end(self) -> None:
        """Nothing runs."""

    def run_job(self, job: Work, limit: Limit, on_message: Callable[[Message], None]) -> Outcome:
        assert limit.budget > 0
        on_message(Epoch(6, 300, "auc", 0.5, len(job.seeds)))
        self.jobs.append(job)
        return self.answer(job)


def recorded(job: Work) -> list[Record]:
    """Records of a job by today's code."""
    cell = job.cell
    versions = cell_versions(cell.method, cell.dataset, cell.bagging, cell.encoder)
    return [make_record(cell, seed, versions=versions) for seed in job.seeds]


def run_campaign(
    rows: Rows,
    out: Path,
    monkeypatch: pytest.MonkeyPatch,
    answer: Callable[[Work], Outcome],
    most: int = 3,
    journals: tuple[str, ...] = (),
) -> list[Work]:
    """The jobs of a run that has time for so many."""
    box = Box.of(3600)

    def answered(job: Work) -> Outcome:
        if len(worker.jobs) == most:
            object.__setattr__(box, "end", time.time())
        return answer(job)

    worker = Scripted(answered)
    monkeypatch.delenv("LLPBENCH_DATA", raising=False)  # credit is missing
    COMPILES.clear()
    monkeypatch.setattr(campaign, "Worker", worker)
    campaign.run_all(rows, out, "cpu", FULL, box, None, journals)
    return worker.jobs


class TestCampaign:
    def test_campaign_orders_paper_cells_by_worth(self) -> None:
        cells = campaign.cells(FULL)
        first = [(cell.dataset, cell.method, cell.pretraining) for cell in cells[:6]]
        assert first == [*(("credit", *pair) for pair in campaign.FIRST), ("electricity", "dllp", "none")]
        # llp-gan brings its own network
        found = {(cell.bagging, cell.bag_size, cell.encoder) for cell in cells}
        assert found == {("ordered", 256, "saint"), ("ordered", 256, None)}
        assert {cell.protocol.epochs for cell in cells if cell.protocol} == {300}
        ids = [cell.id for cell in cells]
        assert len({*ids, *(cell.id for cell in campaign.cells(REHEARSAL))}) > len({*ids}) == len(ids)

    def test_campaign_resumes_and_skips_cells_of_others(self, rows: Rows, tmp_path: Path, monkeypatch: Any) -> None:
        monkeypatch.delenv("LLPBENCH_DATA", raising=False)
        assert tables.something_failed(rows), "nothing was done"
        every = [cell for cell in campaign.cells(FULL) if locate(dataset_spec(cell.dataset)) is not None]
        one = run_campaign(rows, tmp_path, monkeypatch, recorded, most=2)
        two = run_campaign(rows, tmp_path, monkeypatch, recorded, most=2)
        assert [job.cell.id for job in one + two] == [cell.id for cell in every[:4]]
        assert COMPILES == [False], "the first cells are run by one process that compiles nothing"
        assert {job.seeds for job in one} == {tuple(range(10))}
        assert len(Contents.read(tmp_path / "journal.jsonl").records) == 40
        assert rows.last(campaign.PART)["data credit"].status == "skipped"
        assert not tables.something_failed(rows)
        assert dict(tables._campaign(rows))["cell: dllp adult"].startswith("10 seeds in")
        with Journal(tmp_path / "theirs") as journal:
            journal.append(*recorded(Work(every[4], tuple(range(10)))), *recorded(Work(every[5], (0, 1, 2))))
        (job,) = run_campaign(rows, tmp_path, monkeypatch, recorded, 1, (str(tmp_path / "theirs"),))
        assert (job.cell.id, job.seeds) == (every[5].id, tuple(range(3, 10)))

    def test_unfinished_cell_is_retried_with_half_of_seeds(self, rows: Rows, tmp_path: Path, monkeypatch: Any) -> None:
        run_campaign(rows, tmp_path, monkeypatch, lambda _: Ended("stopped"), 1)
        (one,) = run_campaign(rows, tmp_path, monkeypatch, lambda _: Ended("stopped"), 1)
        assert one.seeds == tuple(range(10)), "it had little time"
        stopped = rows.last(campaign.PART)["dllp adult"].values
        assert (stopped["seeds"], stopped["last epoch"]) == (10, 7)
        rows.add(campaign.PART, "dllp adult", "failed", {**stopped, "seconds": 2000.0})
        two, three = run_campaign(rows, tmp_path, monkeypatch, recorded, 2)
        assert [job.cell.id for job in (two, three)] == [one.cell.id] * 2
        assert [job.seeds for job in (two, three)] == [(0, 1, 2, 3, 4), (5, 6, 7, 8, 9)]


def test_part_is_ended_when_its_time_is_over(rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part, "_GRACE", 0.0)  # otherwise a fast machine ends the part by itself
    start = time.monotonic()
    assert "time was over" in run_part(measures.PART, rows, tmp_path, "cpu", Box.of(0.0))
    assert time.monotonic() - start < 30
    assert PROCESS not in rows.last(measures.PART)
