"""Cells of the paper's protocol, one after the other: each finished one is lines of an ordinary journal.

`--preset paper`: SAINT, ordered bags of 256, ten seeds as one population. Skipped are cells that another journal holds;
datasets that are not on this machine are named and skipped. A cell that did not end in about as much time as there is
now is tried with half as many seeds at once: seeds get the same numbers alone as together, up to rounding.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

from benchmarks.gpu.rows import Box, Row, Rows, Values
from benchmarks.gpu.sizes import Sizes
from benchmarks.gpu.timing import neural
from llpbench.core.cell import Cell, Epoch
from llpbench.core.record import Record
from llpbench.core.registry import METHODS
from llpbench.data.loading import locate
from llpbench.data.specs import built_in_facts, dataset_spec
from llpbench.results.journal import FILE, Journal
from llpbench.results.merging import journal_files, merge
from llpbench.results.staleness import comparison
from llpbench.running.executors import Message, Warned
from llpbench.running.obstacles import resolver
from llpbench.running.planning import Plan, Planned, expand
from llpbench.running.schedule import Ended, Job, Limit
from llpbench.running.settings import Settings, resolve
from llpbench.running.worker import Worker

PART = "campaign"

FIRST = (
    ("dllp", "none"),
    ("supervised", "none"),
    ("llp-vat", "none"),
    ("tabllp-bdc", "none"),
    ("tabllp-bdc", "self+bag"),
)
"""methods and what they start from, in the order in which they are run"""
DATASETS = ("credit", "electricity", "california", "adult", "bank_marketing")
"""likewise; only then come the other methods, on all of them"""

_LEAST_SECONDS = 30.0
"""with less time left no cell is started"""


def cells(sizes: Sizes) -> list[Cell]:
    """Every cell of the campaign, in order."""
    named = {name for name, _ in FIRST}
    others = [(name, "none") for name in METHODS.names() if neural(name) and name not in named]
    pairs = [(dataset, *pair) for dataset in DATASETS for pair in FIRST]
    pairs += [(dataset, *pair) for pair in others for dataset in DATASETS]
    return [one.cell for dataset, method, start in pairs for one in expand(settings(sizes, dataset, method, start))]


def settings(sizes: Sizes, dataset: str, method: str, pretraining: str) -> Settings:
    """What `llpbench run --preset paper` would be told for a cell."""
    flags = {"datasets": dataset, "methods": method, "pretraining": pretraining, **sizes.campaign}
    if pretraining == "none":
        flags.pop("set", None)  # it sets pretraining
    return resolve(flags, preset="paper")


def run_all(
    rows: Rows, out: Path, device: str, sizes: Sizes, box: Box, data_dir: str | None, journals: Sequence[str]
) -> None:
    """Run cells until the time is over; `journals`: whose cells are not run again."""
    wanted, absent = _wanted(out, sizes, data_dir, journals)
    least = min(_LEAST_SECONDS, box.left / 4)
    for dataset in absent:
        rows.add(PART, f"data {dataset}", "skipped", {"reason": "not on this machine, see --data-dir"})
    with tempfile.TemporaryDirectory() as kept, Journal(out) as journal:
        environment = replace(
            settings(sizes, "adult", "dllp", "none").environment, device=device, data_dir=data_dir, pretrained=kept
        )
        # recorded, not compiled: compiling takes a minute, as long as a whole cell
        worker = Worker(replace(environment, compile=False))
        with contextlib.ExitStack() as stack:
            stack.callback(worker.end)
            while box.left > least and (job := _next(wanted, rows, box)) is not None:
                rows.add(PART, _key(job.cell), "started")
                _run(job, worker, journal, rows, box)
                done = set(job.seeds)
                left = (seed for seed in wanted[job.cell.id].wanted if seed not in done)
                wanted[job.cell.id] = replace(wanted[job.cell.id], wanted=tuple(left))


def _wanted(
    out: Path, sizes: Sizes, data_dir: str | None, journals: Sequence[str]
) -> tuple[dict[str, Planned], list[str]]:
    """The cells with seeds that no journal holds, and the datasets that are not on this machine."""
    paths = [path for name in journals for path in journal_files(name)]
    paths += [out / FILE] if (out / FILE).is_file() else []
    records = merge(paths).records if paths else {}
    every = cells(sizes)
    names = dict.fromkeys(cell.dataset for cell in every)
    absent = [name for name in names if locate(dataset_spec(name), data_dir) is None]
    here = [cell for cell in every if cell.dataset not in absent]
    plan = Plan.of(
        map(Planned, map(resolver(), here)), range(sizes.seeds), records, why_stale=comparison(records.values())
    )
    return {each.cell.id: each for each in plan.cells}, absent


def _next(wanted: dict[str, Planned], rows: Rows, box: Box) -> Job | None:
    """The first cell that may end in time; as many seeds as were not too many before."""
    for planned in wanted.values():
        seeds = planned.wanted[: _at_once(planned, rows, box)]
        seconds = expected_seconds(planned.cell, rows)
        hopeless = any(
            stopped["seeds"] <= len(seeds) and stopped["seconds"] > box.left for stopped in _stopped(planned, rows)
        )
        if seeds and not hopeless and (seconds is None or seconds < box.left):
            return Job(planned.cell, seeds)
    return None


def _at_once(planned: Planned, rows: Rows, box: Box) -> int:
    """Half as many seeds as the fewest that did not end in about as much time as there is now, at least one."""
    stopped = [values["seeds"] for values in _stopped(planned, rows) if values["seconds"] > box.left / 2]
    return max(min(stopped) // 2, 1) if stopped else len(planned.wanted)


def _stopped(planned: Planned, rows: Rows) -> list[Values]:
    """Return the facts about the tries of a cell that did not end in time."""
    return [row.values for row in _ended(rows, "stopped") if row.values["cell"] == planned.cell.id]


def expected_seconds(cell: Cell, rows: Rows) -> float | None:
    """The least that a cell will take, from cells of the same method on other data; None if none is finished."""
    done = [row.values for row in _ended(rows, "done")]
    same = [each for each in done if (each["method"], each["pretraining"]) == (cell.method, cell.pretraining)]
    if not same:
        return None
    work = median(each["seconds"] / _values(each["dataset"]) for each in same)
    return float(0.5 * work * _values(cell.dataset))


def _values(dataset: str) -> int:
    """Rows times features."""
    facts = built_in_facts()[dataset]
    return facts.rows * len(facts.columns)


def _ended(rows: Rows, how: str) -> list[Row]:
    return [row for row in rows.every() if row.part == PART and row.values.get("how") == how]


def _run(job: Job, worker: Worker, journal: Journal, rows: Rows, box: Box) -> None:
    """Run a job and write its outcome to `rows`. Runs that ended in time are in the journal."""
    clock, epochs = time.perf_counter(), [0]

    warnings: list[str] = []

    def receive(message: Message) -> None:
        if isinstance(message, Epoch):
            epochs[0] = max(epochs[0], message.epoch + 1)
        elif isinstance(message, Warned):
            warnings.append(message.text)

    made = worker.run_job(job, Limit(budget=box.left), receive)
    cell, values = job.cell, _facts(job, time.perf_counter() - clock, epochs[0])
    values |= {"warnings": "; ".join(warnings)} if warnings else {}
    if isinstance(made, Ended):
        rows.add(PART, _key(cell), "failed", values | {"how": made.how, "reason": made.reason})
        return
    assert isinstance(made, list)
    for record in made:
        journal.append(record)
    failed = sorted({record["reason"] for record in made if record["status"] != "ok"})
    values |= {"how": "done", "auc": _mean_auc(made), "reason": "; ".join(failed), **_times(made)}
    rows.add(PART, _key(cell), "failed" if failed else "ok", values)


def _facts(job: Job, seconds: float, epochs: int) -> Values:
    cell = job.cell
    return {
        "cell": cell.id,
        "method": cell.method,
        "pretraining": cell.pretraining,
        "dataset": cell.dataset,
        "seeds": len(job.seeds),
        "seconds": seconds,
        "last epoch": epochs,
    }


def _times(records: Sequence[Record]) -> Values:
    """Sums over the seeds, which share them, and their largest memory."""
    ok = [record for record in records if record["status"] == "ok"]
    parts = ("total", "train", "warm-up", "evaluate", "pretraining")
    times = [dict(record["times"]) for record in ok]
    found: Values = {f"{name} s": sum(float(each.get(name) or 0.0) for each in times) for name in parts}
    found["epochs"] = sum(record["epochs"] for record in ok) / max(len(ok), 1)
    found["memory_mb"] = max((record["memory_mb"] or 0.0 for record in ok), default=None)
    return found


def _mean_auc(records: Sequence[Record]) -> float | None:
    """Test AUC, epochs chosen by validation AUC; None if no seed has one."""
    found = [float(record["results"]["auc"]["test"]["auc"] or 0.0) for record in records if "auc" in record["results"]]
    return sum(found) / len(found) if found else None


def _key(cell: Cell) -> str:
    start = f" {cell.pretraining}" if cell.pretraining != "none" else ""
    return f"{cell.method}{start} {cell.dataset}"
