"""Runs of a study: which runs of a journal belong to which line, and what is read from them.

A study may leave bagging, bag size and encoder open, and always leaves the protocol open. Runs that differ in these are
different *settings* and are never mixed.
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
"""Parts of a cell that a study may leave open."""

PAPER = {"bagging": "ordered", "bag_size": 256}
"""Setting of the paper's tables."""

PAPERS_ENCODER = "saint"


def _minutes(record: Record, *parts: str) -> float | None:
    seconds = [record["times"][part] for part in parts if record["times"].get(part) is not None]
    return sum(seconds) / 60 if seconds else None


def _diagnostic(name: str, factor: float = 1.0) -> Callable[[Record, str], float | None]:
    def read(record: Record, criterion: str) -> float | None:
        value = record["results"][criterion]["diagnostics"].get(name)
        return None if value is None else factor * value

    return read


MEASURES: Mapping[str, Callable[[Record, str], float | None]] = {
    **{name: partial(value_of, metric=name) for name in METRICS},
    "cas": _diagnostic("cas"),
    "pair-accuracy": _diagnostic("pair-accuracy", 100),
    "minutes": lambda record, _: _minutes(record, "warm-up", "train", "evaluate"),
    "pretraining minutes": lambda record, _: _minutes(record, "pretraining"),
}
"""Functions that read a value of a run under a criterion."""

TIMES = ("minutes", "pretraining minutes")
"""Measures that seeds share if they are trained together."""


@dataclass(frozen=True)
class Setting:
    """Values that a study leaves open; None for those that its lines fix."""

    bagging: str | None
    bag_size: int | None
    encoder: str | None
    protocol: str
    """as JSON"""
    ensemble: int = 1
    """number of averaged networks"""
    precision: str = REFERENCE

    @property
    def is_papers(self) -> bool:
        """Whether bagging and bag size are the paper's."""
        return all(getattr(self, part) in (None, value) for part, value in PAPER.items())

    @property
    def has_papers_network(self) -> bool:
        """Whether the network is the paper's encoder, without an ensemble."""
        return self.encoder in (None, PAPERS_ENCODER) and self.ensemble == 1

    @property
    def trains_as_paper(self) -> bool:
        """Whether network and protocol are the paper's."""
        return self.has_papers_network and json.loads(self.protocol) in (None, asdict(Protocol()))

    def __str__(self) -> str:
        sizes = {None: "", 0: "bags of their own sizes"}
        parts = (
            self.bagging,
            sizes.get(self.bag_size, f"bags of {self.bag_size}"),
            f"encoder {self.encoder}" if self.encoder is not None else "",
            words.protocol_text(json.loads(self.protocol)),
            f"ensembles of {self.ensemble}" if self.ensemble > 1 else "",
            self.precision if self.precision != REFERENCE else "",
        )
        return " · ".join(part for part in parts if part)


@dataclass
class StudyRuns:
    """Runs of a study in one setting."""

    runs: dict[tuple[int, str], list[Record]] = field(default_factory=lambda: defaultdict(list))
    """by line (its number) and dataset, including failed runs"""

    @property
    def all_runs(self) -> list[Record]:
        """Each run once."""
        return [*{run["run"]: run for runs in self.runs.values() for run in runs}.values()]

    @property
    def datasets(self) -> list[str]:
        """Datasets with a run, sorted."""
        return sorted({dataset for _, dataset in self.runs})


def collect(study: Study, records: Iterable[Record]) -> dict[Setting, StudyRuns]:
    """Return the runs of a study by setting.

    Methods with their own network belong to every encoder, direct methods to every protocol, too.
    """
    lines = study.lines
    settings: dict[Setting, StudyRuns] = defaultdict(StudyRuns)
    without_encoder: list[tuple[int, Record]] = []
    for record in records:
        for number, line in enumerate(lines):
            if not matches(line, record):
                continue
            if record["spec"]["encoder"] is None and "encoder" not in line.fixed:
                without_encoder.append((number, record))
            else:
                settings[_setting(line, record)].runs[number, record["spec"]["dataset"]].append(record)
    for number, record in sorted(without_encoder, key=lambda item: item[1]["spec"]["protocol"] is None):
        plain = _setting(lines[number], record)
        joined = [
            setting
            for setting in settings
            if (setting.bagging, setting.bag_size) == (plain.bagging, plain.bag_size)
            and (plain.protocol == NO_PROTOCOL or plain == replace(setting, encoder=plain.encoder))
        ]
        for setting in joined or [plain]:
            settings[setting].runs[number, record["spec"]["dataset"]].append(record)
    return settings


def matches(line: Line, record: Record) -> bool:
    """Return whether a run has everything that a line fixes, and default hyperparameters otherwise."""
    spec, fixed = record["spec"], line.fixed
    if spec["method"] != fixed["method"]:
        return False
    if spec["pretraining"] not in line.pretrainings and spec["encoder"] is not None:
        return False
    if spec.get("max_bags") != fixed.get("max_bags") or "numbers" in spec:
        return False
    if any(part in fixed and spec[part] != fixed[part] for part in OPEN):
        return False
    wanted, values = (
        {**part.get("params", {})}
        | {f"pretraining.{name}": value for name, value in part.get("pretraining_params", {}).items()}
        for part in (fixed, spec)
    )
    is_wanted = all(values.get(name) == value for name, value in wanted.items())
    return is_wanted and set(record["method"]["changed"]) <= set(wanted)


def _setting(line: Line, record: Record) -> Setting:
    spec = record["spec"]
    parts: dict[str, Any] = {part: None if part in line.fixed else spec[part] for part in OPEN}
    parts |= {part: spec[part] for part in ("ensemble", "precision") if part in spec}
    return Setting(**parts, protocol=json.dumps(spec["protocol"], sort_keys=True))


@dataclass(frozen=True)
class LineScore:
    """Score of a line on a dataset."""

    summary: Summary | None
    failed: int
    chosen: str = ""
    """pretraining that validation chose; "" if the line fixes it"""


def read_line(line: Line, runs: Sequence[Record]) -> LineScore:
    """Return the score of a line from its runs on a dataset."""
    shown, chosen = _runs_of_line(line, runs)
    summary = summarise([value for _, value in sorted(values_of_line(line, runs).items())])
    if summary is not None and line.fixed["measure"] in TIMES and any(run["members"] > 1 for run in shown):
        summary = Summary(summary.mean, None, summary.n)  # seeds trained together have the same time
    return LineScore(summary, sum(run["status"] != "ok" for run in shown), chosen)


def values_of_line(line: Line, runs: Sequence[Record]) -> dict[int, float]:
    """Return the values of a line by seed."""
    criterion, measure = line.fixed["criterion"], MEASURES[line.fixed["measure"]]
    shown, _ = _runs_of_line(line, runs)
    values = {run["seed"]: measure(run, criterion) for run in shown if criterion in run["results"]}
    return {seed: value for seed, value in values.items() if value is not None and isfinite(value)}


def _runs_of_line(line: Line, runs: Sequence[Record]) -> tuple[list[Record], str]:
    """Return the runs that a line shows, and the choice of a pretraining in words.

    If defaults have changed there are several cells; the one with most runs is shown.
    """
    by_cell: dict[str, dict[str, list[Record]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        by_cell[run["spec"]["pretraining"]][run["cell"]].append(run)
    cells = {name: max(found.items(), key=lambda item: (len(item[1]), item[0]))[1] for name, found in by_cell.items()}
    if len(line.pretrainings) > 1 and cells:
        best = _best_pretraining(line, cells)
        return cells[best], f"{best}, best of {len(cells)} of {len(line.pretrainings)}"
    return [run for cell in cells.values() for run in cell], ""


def _best_pretraining(line: Line, cells: Mapping[str, list[Record]]) -> str:
    """Return the pretraining with the best mean criterion on validation rows, over the seeds that all share."""
    criterion = CRITERIA[line.fixed["criterion"]]
    values = {
        name: {
            run["seed"]: value
            for run in runs
            if criterion.name in run["results"] and (value := run["results"][criterion.name]["validation"]) is not None
        }
        for name, runs in cells.items()
    }
    known = {name: by_seed for name, by_seed in values.items() if by_seed}
    shared = set.intersection(*map(set, known.values())) if known else set()

    def mean(name: str) -> float:
        counted = [value for seed, value in known[name].items() if seed in shared or not shared]
        return (fsum(counted) / len(counted)) * (1 if criterion.maximise else -1)

    return max(sorted(known), key=mean, default=min(cells))
