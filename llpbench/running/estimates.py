"""Estimates learnt from the journal: how long a run will take, and how much GPU memory a cell will want."""

from __future__ import annotations

from bisect import insort
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from llpbench.core.record import Record
from llpbench.running.schedule import Job

Key = tuple[Any, ...]


class Estimator:
    """Median seconds of a run: of the same method, encoder, dataset and size if there are any, else of ever more."""

    def __init__(self, records: Iterable[Record] = (), *, gpu: bool = False) -> None:
        """Learn from the records that were computed on a GPU, or from those that were not."""
        self._gpu = gpu
        self._seconds: defaultdict[Key, list[float]] = defaultdict(list)
        self._megabytes: dict[Key, float] = {}
        for record in records:
            self.learn(record)

    def learn(self, record: Record) -> None:
        """Take one more record into account; failed ones say nothing, they may have ended early."""
        times = record["times"]
        on_gpu = str(record["hardware"].get("device", "cpu")).startswith("cuda")
        if record["status"] != "ok" or times.get("total") is None:
            return
        keys = list(_keys(record["spec"]))
        if on_gpu and record["memory_mb"] is not None:
            each = record["memory_mb"] / max(record["members"], 1)
            self._megabytes[keys[0]] = max(each, self._megabytes.get(keys[0], 0.0))
        if on_gpu == self._gpu or record["spec"]["protocol"] is None:  # direct methods run on the CPU anyway
            for key in keys:
                insort(self._seconds[key], times["total"] + (times.get("data") or 0.0))

    def seconds(self, job: Job) -> float | None:
        """Seconds that a job will take, None if nothing like it was ever run."""
        for key in _keys(job.cell.spec):
            if known := self._seconds.get(key):
                return known[len(known) // 2] * len(job.seeds)
        return None

    def total(self, jobs: Iterable[Job]) -> float | None:
        """Seconds that all jobs will take one after the other, None if any of them is unknown."""
        each = [self.seconds(job) for job in jobs]
        known = [seconds for seconds in each if seconds is not None]
        return sum(known) if len(known) == len(each) else None

    def megabytes(self, job: Job) -> float | None:
        """Peak GPU memory that a job will want, None if its cell's shape was never run on a GPU."""
        each = self._megabytes.get(next(_keys(job.cell.spec)))
        return None if each is None else each * len(job.seeds)


def _keys(spec: dict[str, Any]) -> Iterator[Key]:
    """The groups that a cell belongs to, finest first. Only cells of as many epochs are alike."""
    method, encoder, dataset, size = spec["method"], spec["encoder"], spec["dataset"], spec["bag_size"]
    epochs = (spec["protocol"] or {}).get("epochs")
    yield epochs, encoder, method, dataset, size
    yield epochs, encoder, method, dataset, None
    yield epochs, encoder, None, dataset, None
    yield epochs, encoder, method, None, None
    yield epochs, encoder, None, None, None
