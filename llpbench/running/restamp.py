"""Keep stale results honestly: a sample of them is made again, and only if that gives the same numbers, the rest is
stamped with today's code.

The sample is drawn of cells, by a stated seed: every method as often as any other, then every dataset, bag size,
encoder and device. Each cell is run as it was: the same seeds together, on the same device, with as many threads. Every
figure of its records must be the same to nine digits, which is all that the order of a sum in float64 can change: a
difference of one bit in training grows far beyond that. New figures may have been added. What no sampled run speaks for
stays stale: another method, device, or a dataset, bagging or encoder whose own source has changed; and what has failed.

A search for hyperparameters is kept with the runs of its method, as it trains what they train, and is not made again: a
change of the search itself has to repeat them. Its own file in `tuning/` stays of the code before, which
matters to a longer search alone: that starts over, as after any change of code, rather than go on with trials of which
none has been compared.

Products of matrices are not the same to the last bit on CPUs of different kinds, and training makes much of little.
Where a journal was made elsewhere, a *reference* says what the code before the change gives here: a journal in which it
has made sampled runs on this machine. They are then compared with it, and the new stamp says so.
"""

from __future__ import annotations

import hashlib
import json
import math
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import llpbench
from llpbench.core.cell import Cell, Environment
from llpbench.core.errors import LLPBenchError
from llpbench.core.files import replace_file
from llpbench.core.provenance import NUMERICS, code_facts, utc_now
from llpbench.core.record import Record, TuningRecord
from llpbench.core.registry import METHODS, load_plugin
from llpbench.core.source import cell_sources
from llpbench.core.text import plural
from llpbench.results.journal import Journal, record_in, to_line, tuning_in
from llpbench.results.merging import journal_files, merge
from llpbench.results.schema import decode
from llpbench.results.staleness import cell_spec, changed_parts, comparison
from llpbench.running.estimates import make_estimator
from llpbench.running.executors import attempt
from llpbench.running.interrupts import interruptible
from llpbench.running.run_progress import Display
from llpbench.running.runner import about
from llpbench.running.samples import Group, Part, draw, trained_together
from llpbench.running.samples import parts as parts_of
from llpbench.running.schedule import Job

MEMORY = ".restamp.json"
"""beside the journal, while a restamp is unfinished: the runs that have been made again with equal results"""


@dataclass(frozen=True)
class Restamped:
    """What became of a restamp."""

    cells: int
    """sampled"""
    compared: int
    """runs made again"""
    renewed: int
    """runs that have got a new stamp"""
    difference: str = ""
    """the run and figure that came out otherwise; "" if none did"""
    left: tuple[str, ...] = ()
    """what is still stale, one line for each method and reason"""
    searches: int = 0
    """that have got a new stamp"""


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
    """Make a sample of the stale runs of `out` again, and stamp all that it speaks for if nothing differs.

    `reference`: a journal of the same runs by the code before the change, compared with instead where it has them.

    The journal is replaced as a whole at the end, or not at all. Raises `LLPBenchError` if there is no journal, if
    nothing in it is stale, and if not a single stale run can be made again here.
    """
    journal_files(str(out))
    for plugin in plugins:
        load_plugin(plugin)
    known = _reference(reference) if reference else {}
    with interruptible(), Journal(out) as journal:
        found = _Stale(journal)
        chosen = draw(found.groups, sample, seed)
        if not chosen:
            raise LLPBenchError(f"no run of {str(out)!r} can be restamped: {found.why_none}")
        groups = [group for groups in chosen for group in groups]
        jobs = [Job(group.cell, group.seeds) for group in groups]
        runs = sum(len(job.seeds) for job in jobs)
        environment = Environment(device="cpu", data_dir=data_dir, plugins=tuple(plugins))
        estimator = make_estimator(journal.contents.records.values(), environment, gpu=False, kept=False)
        with display:
            display.say(
                f"{len(chosen)} of {plural(len(found.groups), 'cell')} with stale runs, drawn with seed {seed}: "
                f"{plural(runs, 'run')} to make again, {about(estimator.total(jobs))}"
            )
            display.begin(runs)
            difference = _make_again(groups, known, out / MEMORY, display, data_dir, tuple(plugins))
        if difference:
            return Restamped(len(chosen), runs, 0, difference)
        covered = {part for group in groups for record in group.records for part in parts_of(record)}
        renewed, left = found.split(covered)
        searches, more = found.split_searches(covered)
        referred = {record["run"] for group in groups for record in group.records} & known.keys()
        commits = sorted({str(known[run]["code"].get("commit")) for run in referred})
        stamp = {"when": utc_now(), **_commit(), "sample": runs}
        stamp |= {"reference": {"runs": len(referred), "commits": commits}} if referred else {}
        _renew(journal, renewed, searches, stamp)
        (out / MEMORY).unlink(missing_ok=True)
        return Restamped(len(chosen), runs, len(renewed), left=(*left, *more), searches=len(searches))


def _reference(paths: Sequence[Path]) -> dict[str, Record]:
    """The runs of a reference. Raises `LLPBenchError` if today's code has made any: they would agree with anything."""
    known, why = merge(paths).records, comparison()
    for record in known.values():
        if record["spec"]["method"] in METHODS.names() and not why(record):  # of others nobody can tell
            raise LLPBenchError(
                f"run {record['run']} of the reference was made by today's code, and says nothing of the "
                "code before. Let a checkout of that make the reference."
            )
    return known


class _Stale:
    """The stale runs and searches of a journal, and which of the runs can be made again."""

    def __init__(self, journal: Journal) -> None:
        contents, why = journal.contents, comparison()
        self._runs = {run: record for run, record in contents.records.items() if why(record)}
        self._searches = {name: tuning for name, tuning in contents.tunings.items() if why(tuning)}
        self._disputed = contents.disputed
        self._strange = sorted({r["spec"]["method"] for r in contents.records.values()} - set(METHODS.names()))
        self._here = _devices()
        self.groups: dict[str, list[Group]] = {}
        """by cell: its populations that hold a run to be stamped and can be made again"""
        for group in trained_together(contents.records.values()):
            fit = any(self._may_be_stamped(record) for record in group.records if record["run"] in self._runs)
            if fit and group.records[0]["hardware"].get("device") in self._here:
                self.groups.setdefault(group.cell.id, []).append(group)

    @property
    def why_none(self) -> str:
        """Why no run can be sampled."""
        if not self._runs and self._strange:
            return f"{', '.join(self._strange)} cannot be found. Give --plugin, as their runs were given it."
        if not self._runs and self._searches:
            return "only searches are stale, and no stale run speaks for them. Search again instead."
        if not self._runs:
            return "none is stale. Nothing is to do."
        return "its stale runs have failed, or cannot be made again on this machine. Run them again instead."

    def split(self, covered: set[Part]) -> tuple[dict[str, Record], list[str]]:
        """The runs that a sample with these parts speaks for, and a line for each method and reason of the others."""
        renewed: dict[str, Record] = {}
        left: Counter[str] = Counter()
        for run, record in self._runs.items():
            method = record["spec"]["method"]
            if not self._may_be_stamped(record):
                left[f"{method}: {'disputed' if run in self._disputed else 'failed'}"] += 1
            elif lacking := _lacking(record, covered):
                left[f"{method}: {lacking}"] += 1
            else:
                renewed[run] = record
        return renewed, [f"{why} ({plural(runs, 'run')})" for why, runs in sorted(left.items())]

    def split_searches(self, covered: set[Part]) -> tuple[dict[str, TuningRecord], list[str]]:
        """The same of searches."""
        renewed: dict[str, TuningRecord] = {}
        left: Counter[str] = Counter()
        for name, tuning in self._searches.items():
            lacking = "failed" if tuning["status"] != "ok" else _lacking(tuning, covered)
            if lacking:
                left[f"{tuning['spec']['cell']['method']}: {lacking}"] += 1
            else:
                renewed[name] = tuning
        return renewed, [f"{why} ({plural(number, 'tuning')})" for why, number in sorted(left.items())]

    def _may_be_stamped(self, record: Record) -> bool:
        return record["status"] == "ok" and record["run"] not in self._disputed


def _make_again(
    groups: Sequence[Group],
    known: Mapping[str, Record],
    memory: Path,
    display: Display,
    data_dir: str | None,
    plugins: tuple[str, ...],
) -> str:
    """The first difference between records and their repetition, "" if there is none."""
    equal = _remembered(memory)
    engine = _engine()
    with tempfile.TemporaryDirectory(prefix="llpbench-") as folder:  # pretraining is part of what is made again
        for group in groups:
            told = [known.get(record["run"], record) for record in group.records]
            job, marks = Job(group.cell, group.seeds), {_mark(record, engine) for record in told}
            display.started(job)
            again = told
            if not marks <= equal:
                environment = _environment(group, data_dir, folder, plugins)
                again = attempt(job, environment, partial(display.progressed, job))
            display.finished(job, again)
            for before, after in zip(told, again, strict=True):
                if found := difference(before, after):
                    return found
            equal |= marks
            replace_file(memory, json.dumps(sorted(equal)))
    return ""


def difference(before: Record, after: Record) -> str:
    """The first figure that came out otherwise, in one line; "" if none did. New figures are no difference, nor is it
    that a run which more criteria watch has gone on for longer."""
    new = dict(_figures(record_of(after)))
    more = bool(after["results"].keys() - before["results"].keys())
    for name, value in _figures(record_of(before)):
        if name not in new or not (_same(value, new[name]) or (more and _goes_on(name, value, new[name]))):
            run = f"{before['run']} ({Cell.of(before['spec'])}, seed {before['seed']})"
            now = str(new.get(name, "nothing")) + (f" ({after['reason']})" if name == "status" else "")
            where = "" if _origin(before) == _origin(after) else "; its hardware or libraries were others"
            return f"{run}: {name} was {value}, now {now}{where}"
    return ""


def _goes_on(name: str, before: Any, after: Any) -> bool:
    """Whether a number of epochs, or a curve of them, is that of a longer training that began the same."""
    if name.startswith(("curves.", "earlier_curves.")):
        return _same(before, after[: len(before)])
    return bool(name == "epochs" and after > before)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


def record_of(record: Record) -> dict[str, Any]:
    """A record as it is read from a journal."""
    return decode(to_line(record))


def _figures(record: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Everything of a record that must come out again, by a name with dots."""
    kept = ("status", "data", "epochs", "parameters", "results", "curves", "earlier_curves")
    return _flat(
        {name: record[name] for name in (kept if record["status"] == "ok" else kept[:1]) if name in record}, ""
    )


def _flat(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _flat(item, f"{name}.{key}" if name else key)
    else:
        yield name, value


def _environment(group: Group, data_dir: str | None, folder: str, plugins: tuple[str, ...]) -> Environment:
    hardware = group.records[0]["hardware"]
    return Environment(
        device=hardware["device"],
        threads=hardware["threads"],
        compile=hardware["compiled"],
        members=len(group.records) * group.cell.ensemble,
        data_dir=data_dir,
        pretrained=folder,
        plugins=plugins,
    )


def _lacking(record: Record | TuningRecord, covered: set[Part]) -> str:
    """What a sample with some parts lacks to speak for a run or search, "" if nothing: of the parts that the engine
    computes with, and of those whose source has changed."""
    changed = {"method", "pretraining", "device", *changed_parts(record, _sources(record))}
    lacking = {(kind, name) for kind, name in parts_of(record) if kind in changed} - covered
    return f"no sampled run has {' and '.join(f'{kind} {name}' for kind, name in sorted(lacking))}" if lacking else ""


def _sources(record: Record | TuningRecord) -> dict[str, str | None]:
    spec = cell_spec(record)
    return cell_sources(spec["method"], spec["dataset"], spec["bagging"], spec["encoder"])


def _renew(
    journal: Journal, runs: Mapping[str, Record], searches: Mapping[str, TuningRecord], stamp: Mapping[str, Any]
) -> None:
    """Rewrite the lines of some records with today's code and a new stamp; every other line stays as it is.

    A stamped line moves behind later lines of the same run or search, since these would count as newer code.
    """
    path = journal.path
    lines: list[bytes] = []
    last: dict[str, int] = {}
    stamped: dict[str, bytes] = {}
    for line in path.read_bytes().split(b"\n")[:-1]:
        run = record_in(line, path)
        search = tuning_in(line, path) if run is None else None
        name = run["run"] if run is not None else search["tuning"] if search is not None else ""
        last[name] = len(lines)
        if run is not None and run == runs.get(name):
            stamped[name] = to_line(_stamped(run, stamp))
        elif search is not None and _is_of(search, searches.get(name)):
            stamped[name] = to_line(_stamped(search, stamp))
        else:
            lines.append(line + b"\n")
            continue
        lines.append(b"")
    for name, line in stamped.items():
        lines[last[name]] += line
    journal.replace(b"".join(lines))


def _is_of(line: TuningRecord, counting: TuningRecord | None) -> bool:
    """Whether a line of the journal is the record of a search that counts, whatever that remembers of others."""
    if counting is None:
        return False
    former: dict[str, Any] = {"former": None}
    return {**line, **former} == {**counting, **former}


def _stamped(record: Any, stamp: Mapping[str, Any]) -> Any:
    return {**record, "sources": _sources(record), "numerics": NUMERICS, "restamped": stamp}


def _devices() -> set[str]:
    import torch

    return {"cpu", "cuda"} if torch.cuda.is_available() else {"cpu"}


def _origin(record: Record) -> tuple[Any, ...]:
    return record["libraries"], record["hardware"].get("name")


def _commit() -> dict[str, Any]:
    facts = code_facts()
    return {"commit": facts["commit"], "dirty": facts["dirty"]}


def _remembered(memory: Path) -> set[str]:
    try:
        return set(json.loads(memory.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):  # none, or torn: then all is made again
        return set()


def _mark(record: Record, engine: str) -> str:
    """A record together with the code that it is compared with."""
    content = to_line(record) + json.dumps(_sources(record)).encode() + engine.encode()
    return hashlib.sha256(content).hexdigest()


def _engine() -> str:
    """A hash of all of llpbench as it stands, not only of what is known to matter."""
    folder = Path(llpbench.__file__).parent
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        found.update(path.read_bytes())
    return found.hexdigest()
