"""Keep stale results honestly: make a sample of them again, and only if all figures are equal, stamp the rest.

The sample is drawn of cells by a seed: every method as often as any other, then every dataset, bag size, encoder and
device. Each cell runs as it did: the same seeds together, the same device, as many threads. Figures must be the same to
nine digits, which is what the order of a sum in float64 can change; new figures may have been added. Runs with a
method, device or changed source that no sampled run has stay stale, and so do failed runs. A search for hyperparameters
is kept with the runs of its method and is not repeated.

Products of matrices differ between kinds of CPUs, and training amplifies that. For a journal of another machine, give a
*reference*: a journal of the same runs, made on this machine by the code before the change.
"""

from __future__ import annotations

import hashlib
import math
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from llpbench.results.journal import Journal, record_in, to_line, tuning_in
from llpbench.results.merging import journal_files, merge
from llpbench.results.schema import decode
from llpbench.results.staleness import cell_spec, changed_parts, comparison
from llpbench.running.estimates import make_estimator
from llpbench.running.executors import run_job
from llpbench.running.interrupts import interruptible
from llpbench.running.run_progress import Display
from llpbench.running.runner import about
from llpbench.running.schedule import Job

Part = tuple[str, str]
"""Something that a run is of, such as `("method", "dllp")`."""


@dataclass(frozen=True)
class Restamped:
    """Result of a restamp."""

    cells: int
    """Sampled cells."""
    compared: int
    """Runs that were repeated."""
    renewed: int
    """Runs with a new stamp."""
    difference: str = ""
    """The first run and figure that differ; "" if none does."""
    left: tuple[str, ...] = ()
    """Runs that are still stale, one line for each method and reason."""
    searches: int = 0
    """Searches with a new stamp."""


@dataclass(frozen=True)
class Group:
    """Runs of a cell that trained together, failed ones included."""

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
    """Make a sample of the stale runs of `out` again, and stamp all that it speaks for if nothing differs.

    `reference`: journals to compare with instead, where they have a run. The journal is replaced as a whole at the end,
    or not at all. Raises `LLPBenchError` if there is no journal, or no stale run that can be repeated here.
    """
    journal_files(str(out))
    for plugin in plugins:
        load_plugin(plugin)
    known = _reference(reference) if reference else {}
    with interruptible(), Journal(out) as journal:
        contents, why = journal.contents, comparison()
        entries: dict[str, Record | TuningRecord] = {**contents.records, **contents.tunings}
        stale = {name: entry for name, entry in entries.items() if why(entry)}
        unfit = {name: "failed" for name, entry in stale.items() if entry["status"] != "ok"}
        unfit |= dict.fromkeys(stale.keys() & contents.disputed, "disputed")
        cells = _cells(contents.records.values(), stale.keys() - unfit.keys())
        if not cells:
            raise LLPBenchError(f"no run of {str(out)!r} can be restamped: {_why_none(stale, contents.records)}")
        chosen = draw(cells, sample, seed)
        groups = [group for groups in chosen for group in groups]
        runs = sum(len(group.records) for group in groups)
        environment = Environment(device="cpu", data_dir=data_dir, plugins=tuple(plugins))
        estimator = make_estimator(contents.records.values(), environment, gpu=False, pretrained=False)
        with display:
            display.say(
                f"{len(chosen)} of {plural(len(cells), 'cell')} with stale runs, drawn with seed {seed}: "
                f"{plural(runs, 'run')} to make again, {about(estimator.total(group.job for group in groups))}"
            )
            display.begin(runs)
            if found := _first_difference(groups, known, display, environment):
                return Restamped(len(chosen), runs, 0, found)
        covered = {part for group in groups for record in group.records for part in _parts(record)}
        left = {name: unfit.get(name) or _lacking(entry, covered) for name, entry in stale.items()}
        renewed = {name: entry for name, entry in stale.items() if not left[name]}
        facts = code_facts()
        stamp: dict[str, Any] = {"when": utc_now(), "commit": facts["commit"], "dirty": facts["dirty"], "sample": runs}
        if referred := {record["run"] for group in groups for record in group.records} & known.keys():
            commits = sorted({str(known[run]["code"].get("commit")) for run in referred})
            stamp["reference"] = {"runs": len(referred), "commits": commits}
        journal.replace(_stamped_lines(journal.path, renewed, stamp))
        lines = Counter(
            (f"{cell_spec(stale[name])['method']}: {reason}", "run" if name in contents.records else "tuning")
            for name, reason in left.items()
            if reason
        )
        searches = len(renewed.keys() & contents.tunings)
        told = tuple(f"{text} ({plural(number, what)})" for (text, what), number in sorted(lines.items()))
        return Restamped(len(chosen), runs, len(renewed) - searches, left=told, searches=searches)


def _reference(paths: Sequence[Path]) -> dict[str, Record]:
    """Return the runs of a reference. Raises `LLPBenchError` if today's code made any: they would prove nothing."""
    known, why = merge(paths).records, comparison()
    for record in known.values():
        if record["spec"]["method"] in METHODS.names() and not why(record):  # nobody can tell of other methods
            raise LLPBenchError(
                f"run {record['run']} of the reference was made by today's code and cannot be a reference. "
                "Create it with the previous version."
            )
    return known


def _why_none(stale: Mapping[str, Any], records: Mapping[str, Record]) -> str:
    """Return why no run can be sampled."""
    strange = sorted({record["spec"]["method"] for record in records.values()} - set(METHODS.names()))
    if not stale and strange:
        return f"{', '.join(strange)} cannot be found. Give --plugin, as their runs were given it."
    if not stale:
        return "none is stale. Nothing is to do."
    return "its stale runs have failed, or cannot be repeated on this machine. Run them again instead."


def _cells(records: Iterable[Record], wanted: Iterable[str]) -> dict[str, list[Group]]:
    """Return groups that hold a wanted run and can be repeated on this machine, by cell."""
    import torch

    devices = {"cpu", "cuda"} if torch.cuda.is_available() else {"cpu"}
    found: dict[str, list[Group]] = {}
    for group in trained_together(records):
        runs = {record["run"] for record in group.records}
        if runs & {*wanted} and group.records[0]["hardware"].get("device") in devices:
            found.setdefault(group.cell.id, []).append(group)
    return found


def trained_together(records: Iterable[Record]) -> Iterator[Group]:
    """Yield runs that trained together: as many of a cell as each says, in the order in which they were finished.

    Groups with a missing run are left out, and so are specifications of another version.
    """
    cells: dict[tuple[str, int], list[Record]] = {}
    for record in records:
        if record["members"] > 0:
            cells.setdefault((record["cell"], record["members"]), []).append(record)
    for (cell_id, members), those in cells.items():
        try:
            cell = Cell.of(those[0]["spec"])
        except TypeError:
            continue
        if cell.id != cell_id:
            continue
        those.sort(key=lambda record: (record["finished"], record["seed"]))
        seeds = max(members // cell.ensemble, 1)
        for start in range(0, len(those) - seeds + 1, seeds):
            yield Group(cell, tuple(sorted(those[start : start + seeds], key=lambda record: record["seed"])))


def draw(cells: Mapping[str, list[Group]], number: int, seed: int) -> list[list[Group]]:
    """Return the groups of so many cells: methods as evenly as possible, then datasets and so on, else by chance."""
    rest = sorted(cells.values(), key=lambda each: hashlib.sha256(f"{seed} {each[0].cell.id}".encode()).digest())
    chosen: list[list[Group]] = []
    seen: Counter[Part] = Counter()
    while rest and len(chosen) < number:
        best = min(rest, key=lambda each: [seen[part] for part in _parts(each[0].records[0])])  # the first of equals
        rest.remove(best)
        seen.update(_parts(best[0].records[0]))
        chosen.append(best)
    return chosen


def _parts(record: Record | TuningRecord) -> list[Part]:
    """Return what a run or search is of, in the order in which a sample covers it."""
    spec = cell_spec(record)
    names = ("method", "dataset", "bag_size", "encoder", "pretraining", "bagging", "max_bags")
    return [*((name, str(spec.get(name))) for name in names), ("device", str(record["hardware"].get("device")))]


def _lacking(record: Record | TuningRecord, covered: set[Part]) -> str:
    """Return which part a sample lacks to speak for a run or search: one that computes, or one whose source changed."""
    changed = {"method", "pretraining", "device", *changed_parts(record, _sources(record))}
    lacking = {(kind, name) for kind, name in _parts(record) if kind in changed} - covered
    return f"no sampled run has {' and '.join(f'{kind} {name}' for kind, name in sorted(lacking))}" if lacking else ""


def _sources(record: Record | TuningRecord) -> dict[str, str | None]:
    spec = cell_spec(record)
    return cell_sources(spec["method"], spec["dataset"], spec["bagging"], spec["encoder"])


def _first_difference(
    groups: Sequence[Group], known: Mapping[str, Record], display: Display, environment: Environment
) -> str:
    """Repeat groups and return the first difference; "" if there is none."""
    with tempfile.TemporaryDirectory(prefix="llpbench-") as folder:  # pretraining is repeated, too
        for group in groups:
            hardware = group.records[0]["hardware"]
            own = Environment(
                device=hardware["device"],
                threads=hardware["threads"],
                compile=hardware["compiled"],
                members=len(group.records) * group.cell.ensemble,
                data_dir=environment.data_dir,
                pretrained=folder,
                plugins=environment.plugins,
            )
            display.started(group.job)
            again = run_job(group.job, own, partial(display.progressed, group.job))
            assert isinstance(again, list)
            display.finished(group.job, again)
            for before, after in zip(group.records, again, strict=True):
                if found := difference(known.get(before["run"], before), after):
                    return found
    return ""


def difference(before: Record, after: Record) -> str:
    """Return the first figure that differs, in one line; "" if none does.

    New figures do not count, nor that a run is longer because more criteria watch it.
    """
    new = dict(_figures(after))
    more = bool(after["results"].keys() - before["results"].keys())
    for name, value in _figures(before):
        if name not in new or not (_same(value, new[name]) or (more and _goes_on(name, value, new[name]))):
            run = f"{before['run']} ({Cell.of(before['spec'])}, seed {before['seed']})"
            now = str(new.get(name, "nothing")) + (f" ({after['reason']})" if name == "status" else "")
            facts = [(record["libraries"], record["hardware"].get("name")) for record in (before, after)]
            where = "" if facts[0] == facts[1] else "; its hardware or libraries were others"
            return f"{run}: {name} was {value}, now {now}{where}"
    return ""


def _goes_on(name: str, before: Any, after: Any) -> bool:
    """Return whether a number of epochs, or a curve of them, is that of a longer training that began the same."""
    if name.startswith(("curves.", "earlier_curves.")):
        return _same(before, after[: len(before)])
    return bool(name == "epochs" and after > before)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


def _figures(record: Record) -> Iterator[tuple[str, Any]]:
    """Yield what must come out again of a record as a journal has it, by a name with dots."""
    kept = ("status", "data", "epochs", "parameters", "results", "curves", "earlier_curves")
    written = decode(to_line(record))
    yield from _flat({name: written[name] for name in kept if name in written and record["status"] == "ok"}, "")
    if record["status"] != "ok":
        yield "status", record["status"]


def _flat(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _flat(item, f"{name}.{key}" if name else key)
    else:
        yield name, value


def _stamped_lines(path: Path, renewed: Mapping[str, Record | TuningRecord], stamp: Mapping[str, Any]) -> bytes:
    """Return the lines of a journal, those of `renewed` with today's code and a stamp; all others stay as they are.

    A stamped line moves behind later lines of the same run or search, since these would count as newer code.
    """
    lines: list[bytes] = []
    last: dict[str, int] = {}
    stamped: dict[str, bytes] = {}
    for line in path.read_bytes().split(b"\n")[:-1]:
        entry: Record | TuningRecord | None = record_in(line, path) or tuning_in(line, path)
        name = "" if entry is None else str(entry.get("run") or entry.get("tuning"))
        last[name] = len(lines)
        if entry is not None and _without_former(entry) == _without_former(renewed.get(name)):
            new = {**entry, "sources": _sources(entry), "numerics": NUMERICS, "restamped": stamp}
            stamped[name] = to_line(new)  # type: ignore[arg-type]
            lines.append(b"")
        else:
            lines.append(line + b"\n")
    for name, line in stamped.items():
        lines[last[name]] += line
    return b"".join(lines)


def _without_former(entry: Record | TuningRecord | None) -> dict[str, Any] | None:
    """Return an entry without what the journal remembers of a search's earlier results."""
    return None if entry is None else {name: value for name, value in entry.items() if name != "former"}
