"""Which runs of a journal belong to which line of a study, and what is read off them.

What a study leaves open (mostly bagging, bag size and encoder, always the protocol) may differ between runs: each such
*setting* that the journal holds is kept apart, so that nothing is mixed.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from math import fsum, isfinite
from typing import Any

from llpbench.core.cell import Protocol
from llpbench.core.criteria import CRITERIA, METRICS
from llpbench.core.record import Record
from llpbench.core.studies import Line, Study
from llpbench.report import wording as words
from llpbench.report.boards import REFERENCE, Summary, summarise
from llpbench.results.frame import NO_PROTOCOL, value_of

OPEN = ("bagging", "bag_size", "encoder")
"""what a study may leave open"""

PAPER = {"bagging": "ordered", "bag_size": 256}
"""what the paper's tables are for where they do not say it"""
PAPERS_ENCODER, PAPERS_HARDWARE = "saint", "2080"
"""the latter stands in the name of its GPU: a time on another says nothing about the paper's"""


def _minutes(record: Record, *parts: str) -> float | None:
    known = [record["times"][part] for part in parts if record["times"].get(part) is not None]
    return sum(known) / 60 if known else None


def _diagnostic(name: str, times: float = 1.0) -> Callable[[Record, str], float | None]:
    def read(record: Record, criterion: str) -> float | None:
        value = record["results"][criterion]["diagnostics"].get(name)
        return None if value is None else times * value

    return read


MEASURES: Mapping[str, Callable[[Record, str], float | None]] = {
    **{name: partial(value_of, metric=name) for name in METRICS},
    "cas": _diagnostic("cas"),
    "pair-accuracy": _diagnostic("pair-accuracy", 100),
    "minutes": lambda record, _: _minutes(record, "warm-up", "train", "evaluate"),
    "pretraining minutes": lambda record, _: _minutes(record, "pretraining"),
}
"""what a line reads off a run, under its criterion"""

SHARED = ("minutes", "pretraining minutes")
"""measures that seeds which train together share"""


@dataclass(frozen=True)
class Setting:
    """Values of some runs that their study leaves open; None for those that its lines fix."""

    bagging: str | None
    bag_size: int | None
    encoder: str | None
    protocol: str
    """as JSON"""
    ensemble: int = 1
    """networks that are averaged"""
    precision: str = REFERENCE

    @property
    def is_papers(self) -> bool:
        """Whether the paper's numbers are for this, but for how long and with which encoder one trains."""
        return all(getattr(self, part) in (None, value) for part, value in PAPER.items())

    @property
    def has_papers_network(self) -> bool:
        """Whether the encoder (where lines leave it open) is the paper's, too, of single networks."""
        return self.encoder in (None, PAPERS_ENCODER) and self.ensemble == 1

    @property
    def trains_as_paper(self) -> bool:
        """Whether network and protocol are the paper's."""
        return self.has_papers_network and json.loads(self.protocol) in (None, asdict(Protocol()))

    def __str__(self) -> str:
        size = None if self.bag_size is None else words.bags_text(self.bag_size)
        encoder = None if self.encoder is None else f"encoder {self.encoder}"
        protocol = words.protocol_text(json.loads(self.protocol))
        several = f"ensembles of {self.ensemble}" if self.ensemble > 1 else None
        precision = self.precision if self.precision != REFERENCE else None
        return " · ".join(part for part in (self.bagging, size, encoder, protocol, several, precision) if part)


@dataclass
class StudyRuns:
    """The runs behind one table."""

    runs: dict[tuple[int, str], list[Record]] = field(default_factory=lambda: defaultdict(list))
    """by line (its number) and dataset, failed ones too"""

    @property
    def failed(self) -> list[Record]:
        """Failed runs, each once."""
        return [run for run in self.every.values() if run["status"] != "ok"]

    @property
    def every(self) -> dict[str, Record]:
        """By run id."""
        return {run["run"]: run for runs in self.runs.values() for run in runs}


def classes_of(runs: Iterable[Record]) -> str:
    """Meaning of AUC if a dataset of some runs has more than two classes, as a sentence; "" where none has."""
    return words.classes_text(
        sorted({(run["spec"]["dataset"], run["dataset"].get("classes")) for run in runs}, key=str)
    )


def collect(study: Study, records: Iterable[Record]) -> dict[Setting, StudyRuns]:
    lines = study.lines
    by_method: dict[str, list[int]] = defaultdict(list)
    for place, line in enumerate(lines):
        by_method[line.fixed["method"]].append(place)
    found: dict[Setting, StudyRuns] = defaultdict(StudyRuns)
    without: list[tuple[int, Record]] = []
    """runs of methods that bring their own network: they join every encoder; direct ones join every protocol, too"""
    for record in records:
        for place in by_method.get(record["spec"]["method"], ()):
            if not matches(lines[place], record):
                continue
            if record["spec"]["encoder"] is None and "encoder" not in lines[place].fixed:
                without.append((place, record))
            else:
                found[_setting(lines[place], record)].runs[place, record["spec"]["dataset"]].append(record)
    for place, record in sorted(without, key=lambda each: each[1]["spec"]["protocol"] is None):
        own = _setting(lines[place], record)
        joined = [
            setting
            for setting in found
            if (setting.bagging, setting.bag_size) == (own.bagging, own.bag_size)
            and (own.protocol == NO_PROTOCOL or own == replace(setting, encoder=own.encoder))
        ]
        for setting in joined or [own]:
            found[setting].runs[place, record["spec"]["dataset"]].append(record)
    return found


def matches(line: Line, record: Record) -> bool:
    """Whether a run is one of a line's: it has what the line fixes, and else only defaults."""
    spec, fixed = record["spec"], line.fixed
    if spec["method"] != fixed["method"]:
        return False
    if spec["pretraining"] not in line.pretrainings and spec["encoder"] is not None:
        return False
    if spec.get("max_bags") != fixed.get("max_bags") or "numbers" in spec:
        return False
    if any(part in fixed and spec[part] != fixed[part] for part in OPEN):
        return False
    named = {**fixed.get("params", {})}
    named |= {f"pretraining.{name}": value for name, value in fixed.get("pretraining_params", {}).items()}
    held = {**spec["params"]}
    held |= {f"pretraining.{name}": value for name, value in spec["pretraining_params"].items()}
    if any(held.get(name) != value for name, value in named.items()):
        return False
    return set(record["method"]["changed"]) <= set(named)


def _setting(line: Line, record: Record) -> Setting:
    spec = record["spec"]
    left: dict[str, Any] = {part: None if part in line.fixed else spec[part] for part in OPEN}
    engine = {part: spec[part] for part in ("ensemble", "precision") if part in spec}
    return Setting(**left, protocol=json.dumps(spec["protocol"], sort_keys=True), **engine)


def is_comparable(line: Line, setting: Setting, runs: Iterable[Record]) -> bool:
    """Whether network and, for times, hardware are the paper's, so that a difference needs an explanation."""
    timed = line.fixed["measure"] in SHARED
    return setting.has_papers_network and not (
        timed and any(PAPERS_HARDWARE not in run["hardware"].get("name", "") for run in runs)
    )


@dataclass(frozen=True)
class LineScore:
    """Score of a line on one dataset."""

    summary: Summary | None
    failed: int
    chosen: str = ""
    """what validation chose among, and what it chose; "" where a line leaves no choice"""


def read_line(line: Line, runs: Sequence[Record]) -> LineScore:
    """Over seeds; where a line leaves several pretrainings to validation, of the best one."""
    own, chosen = runs_of_line(line, runs)
    values = values_of_line(line, runs)
    found = summarise([value for _, value in sorted(values.items())])
    if found is not None and line.fixed["measure"] in SHARED and any(run["members"] > 1 for run in own):
        found = Summary(found.mean, None, found.n)  # seeds that train together have the same: there is no spread
    return LineScore(found, sum(run["status"] != "ok" for run in own), chosen)


def values_of_line(line: Line, runs: Sequence[Record]) -> dict[int, float]:
    """By seed, what a line reads off its runs."""
    criterion, measure = line.fixed["criterion"], MEASURES[line.fixed["measure"]]
    own, _ = runs_of_line(line, runs)
    found = {run["seed"]: measure(run, criterion) for run in own if criterion in run["results"]}
    return {seed: value for seed, value in found.items() if value is not None and isfinite(value)}


def runs_of_line(line: Line, runs: Sequence[Record]) -> tuple[list[Record], str]:
    """Those that a line shows, and as `LineScore.chosen`: of several cells, whose defaults have changed since, the one
    with most runs."""
    by_cell: dict[str, dict[str, list[Record]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        by_cell[run["spec"]["pretraining"]][run["cell"]].append(run)
    cells = {name: max(found.items(), key=lambda item: (len(item[1]), item[0]))[1] for name, found in by_cell.items()}
    if len(line.pretrainings) > 1 and cells:
        best = _best(line, cells)
        return cells[best], f"{best}, best of {len(cells)} of {len(line.pretrainings)}"
    return [run for found in cells.values() for run in found], ""


def _best(line: Line, cells: Mapping[str, list[Record]]) -> str:
    """The pretraining with the best mean of the criterion on validation rows, never on test rows, over the seeds that
    all of them have; over their own where they share none."""
    criterion = CRITERIA[line.fixed["criterion"]]
    values = {
        name: {
            run["seed"]: value
            for run in runs
            if criterion.name in run["results"] and (value := run["results"][criterion.name]["validation"]) is not None
        }
        for name, runs in cells.items()
    }
    known = {name: found for name, found in values.items() if found}
    shared = set.intersection(*map(set, known.values())) if known else set()

    def mean(name: str) -> float:
        found = [value for seed, value in known[name].items() if seed in shared or not shared]
        return (fsum(found) / len(found)) * (1 if criterion.maximise else -1)

    return max(sorted(known), key=mean, default=min(cells))
