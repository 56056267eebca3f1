"""Renewing the stamps of stale results: a sample of them is repeated, and if all numbers agree, the rest counts again.

A random sample of cells covers methods as evenly as possible, then datasets, bag sizes, encoders and devices. Each cell
is repeated with the same seeds together, on the same device, with as many threads. Numbers must agree to nine digits,
since the order of a sum changes the last ones. New numbers may have been added. Runs stay stale if the sample has no
run of their method, device or changed source, and if they failed. A search is renewed with the runs of its method and
is not repeated.

Matrix products differ between processors, and training amplifies the difference. For a journal of another machine,
give a *reference*: a journal of the same runs, made on this machine by the previous code.
"""

from __future__ import annotations

import hashlib
import math
import tempfile
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from llpbench.core.cell import Cell, Environment
from llpbench.core.errors import LLPBenchError
from llpbench.core.provenance import NUMERICS, code_facts, utc_now
from llpbench.core.record import Record, TuningRecord
from llpbench.core.registry import METHODS, load_plugin
from llpbench.core.source_hash import cell_sources
from llpbench.core.text import plural
from llpbench.results.journal import Journal, to_line
from llpbench.results.merging import journal_files, merge
from llpbench.results.schema import decode
from llpbench.results.staleness import cell_spec, changed_parts, comparison
from llpbench.running.display import Display
from llpbench.running.estimates import Estimator, published_timings, table_sizes
from llpbench.running.executors import run_job
from llpbench.running.interrupts import interruptible
from llpbench.running.runner import about
from llpbench.running.schedule import Job

Part = tuple[str, str]
"""A property of a run, such as `("method", "dllp")`."""


@dataclass(frozen=True)
class Restamped:
    """Outcome of a restamp."""

    cells: int
    """Number of sampled cells."""
    compared: int
    """Number of repeated runs."""
    renewed: int
    """Number of runs with a new stamp."""
    difference: str = ""
    """First run and number that differ; "" if all agree."""
    left: tuple[str, ...] = ()
    """Runs that are still stale, one line per method and reason."""
    searches: int = 0
    """Number of searches with a new stamp."""


@dataclass(frozen=True)
class Group:
    """Runs of a cell that trained together, including failed ones."""

    cell: Cell
    records: tuple[Record, ...]

    @property
    def job(self) -> Job:
        return Job(self.cell, tuple(record["seed"] for record in self.records))


def restamp(
    out: Path,
    display: Display,
    *,
    sample: int = 20,
    seed: int = 0,
    data_dir: str | None = None,
    plugins: Sequence[str] = (),
    reference: Sequence[Path] = (),
) -> Restamped:
    """Repeat a sample of the stale runs of `out`. If all numbers agree, stamp the runs that the sample represents.

    `reference`: journals with runs to compare with instead. Stamped records are added to the journal, all at once.
    Raises `LLPBenchError` if there is no journal, or no stale run that can be repeated on this machine.
    """
    journal_files(str(out))
    for plugin in plugins:
        load_plugin(plugin)
    references = _references(reference)
    with interruptible(), Journal(out) as journal:
        contents, why_stale = journal.contents, comparison()
        entries: dict[str, Record | TuningRecord] = {**contents.records, **contents.tunings}
        stale = {name: entry for name, entry in entries.items() if why_stale(entry)}
        reasons = {name: "failed" for name, entry in stale.items() if entry["status"] != "ok"}
        reasons |= dict.fromkeys(stale.keys() & contents.disputed, "disputed")
        cells = _cells(contents.records.values(), stale.keys() - reasons.keys())
        if not cells:
            raise LLPBenchError(f"no run of {str(out)!r} can be restamped: {_why_none(stale, contents.records)}")
        sampled = draw(cells, sample, seed)
        groups = [group for groups in sampled for group in groups]
        runs = [record["run"] for group in groups for record in group.records]
        sizes = table_sizes(data_dir)
        estimate = Estimator(contents.records.values(), published_timings, sizes).total(group.job for group in groups)
        environment = Environment(device="cpu", data_dir=data_dir, plugins=tuple(plugins))
        with display:
            display.say(
                f"{len(sampled)} of {plural(len(cells), 'cell')} with stale runs, drawn with seed {seed}: "
                f"{plural(len(runs), 'run')} to repeat, {about(estimate)}"
            )
            display.begin(len(runs))
            if difference := _first_difference(groups, references, display, environment):
                return Restamped(len(sampled), len(runs), 0, difference)
        covered = {part for group in groups for record in group.records for part in _parts(record)}
        reasons = {name: reasons.get(name) or _uncovered(entry, covered) for name, entry in stale.items()}
        stamp = _stamp(runs, references)
        stamped = [
            {**entry, "sources": _sources(entry), "numerics": NUMERICS, "restamped": stamp}
            for name, entry in stale.items()
            if not reasons[name]
        ]
        lines = (to_line(entry) for entry in stamped)  # type: ignore[arg-type]
        journal.replace(b"".join([journal.path.read_bytes(), *lines]))
    left = Counter(
        (f"{cell_spec(stale[name])['method']}: {reason}", "run" if name in contents.records else "search")
        for name, reason in reasons.items()
        if reason
    )
    texts = tuple(f"{text} ({plural(number, kind)})" for (text, kind), number in sorted(left.items()))
    searches = sum("tuning" in entry for entry in stamped)
    return Restamped(len(sampled), len(runs), len(stamped) - searches, left=texts, searches=searches)


def _stamp(runs: Sequence[str], references: Mapping[str, Record]) -> dict[str, Any]:
    """Return the stamp of renewed records (`core.record.StampFacts`). `runs`: repeated ones."""
    code = code_facts()
    stamp = {"when": utc_now(), "commit": code["commit"], "dirty": code["dirty"], "sample": len(runs)}
    if compared := references.keys() & set(runs):
        commits = sorted({str(references[run]["code"].get("commit")) for run in compared})
        stamp["reference"] = {"runs": len(compared), "commits": commits}
    return stamp


def _references(paths: Sequence[Path]) -> dict[str, Record]:
    """Return the runs of a reference. Raises `LLPBenchError` if today's code made one, which would prove nothing."""
    references, why_stale = merge(paths).records, comparison()
    for record in references.values():
        if record["spec"]["method"] in METHODS.names() and not why_stale(record):  # others cannot be compared
            raise LLPBenchError(
                f"run {record['run']} of the reference was made by the current code and cannot be a reference. "
                "Create it with the previous version."
            )
    return references


def _why_none(stale: Mapping[str, Any], records: Mapping[str, Record]) -> str:
    """Return why no run can be sampled."""
    if stale:
        return "its stale runs have failed, or cannot be repeated on this machine. Run them again instead."
    unknown = sorted({record["spec"]["method"] for record in records.values()} - set(METHODS.names()))
    if unknown:
        return f"{', '.join(unknown)} cannot be found. Use --plugin as in the run."
    return "none is stale. There is nothing to do."


def _cells(records: Iterable[Record], wanted: Collection[str]) -> dict[str, list[Group]]:
    """Return groups with a wanted run that can be repeated on this machine, by cell."""
    import torch

    devices = {"cpu", "cuda"} if torch.cuda.is_available() else {"cpu"}
    cells: defaultdict[str, list[Group]] = defaultdict(list)
    for group in trained_together(records):
        is_wanted = any(record["run"] in wanted for record in group.records)
        if is_wanted and group.records[0]["hardware"].get("device") in devices:
            cells[group.cell.id].append(group)
    return cells


def trained_together(records: Iterable[Record]) -> Iterator[Group]:
    """Yield groups of runs that trained together: runs of a cell that were finished one after the other.

    Their number is in the records. Groups with a missing run and specifications of another version are skipped.
    """
    cells: defaultdict[tuple[str, int], list[Record]] = defaultdict(list)
    for record in records:
        if record["members"] > 0:
            cells[record["cell"], record["members"]].append(record)
    for (cell_id, members), runs in cells.items():
        try:
            cell = Cell.of(runs[0]["spec"])
        except TypeError:
            continue
        if cell.id != cell_id:
            continue
        runs.sort(key=lambda record: (record["finished"], record["seed"]))
        seeds = max(members // cell.ensemble, 1)
        for start in range(0, len(runs) - seeds + 1, seeds):
            yield Group(cell, tuple(sorted(runs[start : start + seeds], key=lambda record: record["seed"])))


def draw(cells: Mapping[str, list[Group]], number: int, seed: int) -> list[list[Group]]:
    """Return the groups of a random sample of cells, which covers methods evenly, then datasets and so on."""
    remaining = sorted(
        cells.values(), key=lambda groups: hashlib.sha256(f"{seed} {groups[0].cell.id}".encode()).digest()
    )
    sample: list[list[Group]] = []
    seen: Counter[Part] = Counter()
    while remaining and len(sample) < number:
        rarest = min(remaining, key=lambda groups: [seen[part] for part in _parts(groups[0].records[0])])
        remaining.remove(rarest)
        seen.update(_parts(rarest[0].records[0]))
        sample.append(rarest)
    return sample


def _parts(record: Record | TuningRecord) -> list[Part]:
    """Return the properties of a run or search that a sample covers, the most important first."""
    spec = cell_spec(record)
    names = ("method", "dataset", "bag_size", "encoder", "pretraining", "bagging", "max_bags")
    return [*((name, str(spec.get(name))) for name in names), ("device", str(record["hardware"].get("device")))]


def _uncovered(record: Record | TuningRecord, covered: set[Part]) -> str:
    """Return the properties of a run or search that decide its numbers and that no sampled run has, as text."""
    changed = {"method", "pretraining", "device", *changed_parts(record, _sources(record))}
    missing = {(kind, name) for kind, name in _parts(record) if kind in changed} - covered
    return f"no sampled run has {' and '.join(f'{kind} {name}' for kind, name in sorted(missing))}" if missing else ""


def _sources(record: Record | TuningRecord) -> dict[str, str | None]:
    spec = cell_spec(record)
    return cell_sources(spec["method"], spec["dataset"], spec["bagging"], spec["encoder"])


def _first_difference(
    groups: Sequence[Group], references: Mapping[str, Record], display: Display, environment: Environment
) -> str:
    """Repeat groups and return the first difference; "" if there is none."""
    with tempfile.TemporaryDirectory(prefix="llpbench-") as folder:  # for pretrained weights
        for group in groups:
            hardware = group.records[0]["hardware"]
            same_environment = Environment(
                device=hardware["device"],
                threads=hardware["threads"],
                compile=hardware["compiled"],
                members=len(group.records) * group.cell.ensemble,
                data_dir=environment.data_dir,
                pretrained=folder,
                plugins=environment.plugins,
            )
            display.started(group.job)
            repeated = run_job(group.job, same_environment, partial(display.progressed, group.job))
            assert isinstance(repeated, list), "records of runs, not of a search"
            display.finished(group.job, repeated)
            for before, after in zip(group.records, repeated, strict=True):
                if text := difference(references.get(before["run"], before), after):
                    return text
    return ""


def difference(before: Record, after: Record) -> str:
    """Return the first number that differs, in one line; "" if none does. New numbers do not count."""
    new = dict(_numbers(after))
    for name, value in _numbers(before):
        if name not in new or not _same(value, new[name]):
            run = f"{before['run']} ({Cell.of(before['spec'])}, seed {before['seed']})"
            now = str(new.get(name, "nothing")) + (f" ({after['reason']})" if name == "status" else "")
            facts = [(record["libraries"], record["hardware"].get("name")) for record in (before, after)]
            note = "" if facts[0] == facts[1] else "; hardware or libraries differ"
            return f"{run}: {name} was {value}, now {now}{note}"
    return ""


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


def _numbers(record: Record) -> Iterator[tuple[str, Any]]:
    """Yield the numbers of a record that must agree, with their names, as a line of a journal has them."""
    yield "status", record["status"]
    if record["status"] == "ok":
        written = decode(to_line(record))
        for name in ("data", "epochs", "parameters", "results", "curves", "earlier_curves"):
            yield from _flat(written.get(name, {}), name)


def _flat(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _flat(item, f"{name}.{key}")
    else:
        yield name, value
