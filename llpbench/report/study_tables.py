"""Tables of a study, with the paper's numbers beside ours. Each setting has its own table."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, isfinite
from typing import NamedTuple

from pandas import DataFrame, Series

from llpbench.core.studies import Study, StudyRow
from llpbench.core.text import plural, some_of
from llpbench.report import wording as words
from llpbench.report.boards import Summary
from llpbench.report.origin import device
from llpbench.report.reference import Printed, Reference, reference
from llpbench.report.report_table import Field, Heading, ReportTable, number, rows_of, text
from llpbench.report.study_runs import TIMES, Setting, StudyRuns, StudyScore, study_runs
from llpbench.results.frame import MACHINE

_FLAG = "⚑"
"""Mark of differences beyond two standard deviations."""

_PAPERS_HARDWARE = "2080"
"""Part of the name of the paper's GPU. Times on other hardware are not comparable."""


class PaperFigure(NamedTuple):
    """A number of the paper beside ours."""

    measure: str
    dataset: str
    printed: Printed
    ours: Summary
    is_comparable: bool
    """whether network and, for times, hardware are the paper's"""

    @property
    def difference(self) -> float:
        """Ours minus the paper's, rounded as it is shown."""
        return round(self.ours.mean - self.printed.mean, _digits(self.measure)) + 0.0  # never -0.0

    @property
    def is_beyond(self) -> bool:
        """Whether a comparable difference exceeds twice the larger standard deviation."""
        stds = [std for std in (self.printed.std, self.ours.std) if std is not None]
        return self.is_comparable and bool(stds) and abs(self.difference) > 2 * max(stds)

    def __str__(self) -> str:
        return f"{self.difference:+.{_digits(self.measure)}f}"


@dataclass(frozen=True)
class StudyTable:
    """Table of a study, with its comparable numbers."""

    table: ReportTable
    figures: tuple[PaperFigure, ...] = ()


def study_tables(study: Study, frame: DataFrame) -> list[StudyTable]:
    """Return the tables of a study made of the tidy table, one per setting; none if nothing of it has run."""
    settings, tables = study_runs(study, frame), []
    for place, (setting, runs) in enumerate(settings.items(), start=1):
        name = f"study-{study.name}" + ("" if len(settings) == 1 else f"-{place}")
        make = _robustness_table if study.layout == "robustness" else _scores_table
        tables.append(make(study, setting, runs, name))
        if study.contrasts:
            tables.append(_contrasts_table(study, setting, runs, f"{name}-contrasts"))
    return tables


def beside_paper(tables: Sequence[StudyTable]) -> tuple[list[ReportTable], str]:
    """Return the tables that compare with the paper, and a summary of their figures, each counted once."""
    compared = [study_table for study_table in tables if study_table.figures]
    figures = {figure for study_table in compared for figure in study_table.figures}
    comparable = [figure for figure in figures if figure.is_comparable]
    summary = words.caption(
        "beside_paper",
        figures=plural(len(figures), "figure"),
        tables=plural(len(compared), "table"),
        comparable=f"{len(comparable):,}",
        beyond=f"{sum(figure.is_beyond for figure in comparable):,}",
        others=f"{len(figures) - len(comparable):,}",
        flag=_FLAG,
    )
    return [study_table.table for study_table in compared], summary


def _scores_table(study: Study, setting: Setting, runs: StudyRuns, name: str) -> StudyTable:
    """Return a row for each row of the study and a column for each dataset."""
    printed = reference(study.reference) if study.reference and setting.is_papers else None
    columns = _columns(printed, runs)
    flagged: list[str] = []
    figures: list[PaperFigure] = []
    body = []
    for place, row in enumerate(study.rows):
        labels = dict(zip(study.factors, row.labels, strict=True))
        fields = {Heading(factor, numeric=False): text(label) for factor, label in labels.items()}
        for code, dataset in columns:
            ours = runs.scores.get((place, dataset), StudyScore())
            theirs = printed.find(labels, code) if printed else None
            figure = None
            if theirs is not None and ours.summary is not None:
                is_comparable = _is_comparable(row, setting, ours)
                figure = PaperFigure(row.fixed["measure"], code, theirs, ours.summary, is_comparable)
                figures.append(figure)
                if figure.is_beyond:
                    flagged.append(f"{', '.join(row.labels)} on {code or dataset}: {figure}")
            fields[Heading(code or dataset)] = _score_field(row, theirs, ours, figure)
        body.append(fields)
    notes = {f"{_FLAG} Beyond two standard deviations": flagged, **_notes(runs.runs)}
    table = rows_of(name, _title(study, setting), _caption(study, setting, runs.runs), body, notes)
    return StudyTable(table, tuple(figures))


def _score_field(row: StudyRow, theirs: Printed | None, ours: StudyScore, figure: PaperFigure | None) -> Field:
    """Return the lines of a field: the paper's number, ours, and their difference."""
    digits = _digits(row.fixed["measure"])
    lines = []
    if theirs is not None:
        spread = "" if theirs.std is None else f" ± {theirs.std:.{digits}f}"
        lines.append(f"paper {theirs.mean:.{digits}f}{spread}")
    if ours.summary is not None:
        lines.append(words.summary_text(ours.summary, digits))
    if figure is not None:
        lines.append(f"{figure} {_FLAG}" if figure.is_beyond else str(figure))
    lines += [f"{ours.failed} failed"] if ours.failed else []
    lines += [ours.remark] if ours.remark and (ours.values or ours.failed) else []
    return Field(tuple(lines) or (words.NOTHING,))


def _is_comparable(row: StudyRow, setting: Setting, ours: StudyScore) -> bool:
    is_papers = setting.has_papers_network and not ("otherwise" in row.fixed and ours.remark)
    return is_papers and (row.fixed["measure"] not in TIMES or all(_PAPERS_HARDWARE in name for name in ours.devices))


def _columns(printed: Reference | None, runs: StudyRuns) -> list[tuple[str, str]]:
    """Return (code, dataset) of the columns: the paper's in its order, then other datasets with runs."""
    codes = dict(zip(runs.runs["dataset"], runs.runs["dataset_code"], strict=True))
    names = {code: name for name, code in codes.items() if code}
    first = [(code, names.get(code, "")) for code in (printed.datasets if printed else [])]
    taken = {code for code, _ in first}
    others = sorted({*codes} - {dataset for _, dataset in first})
    return [*first, *((codes[name], f"{name} (own)" if name in taken else name) for name in others)]


def _robustness_table(study: Study, setting: Setting, runs: StudyRuns, name: str) -> StudyTable:
    """Return mean ranks of standard deviations, over the tasks on which every row that has run has one."""
    from llpbench.report.statistics import robustness

    stds: dict[int, dict[str, float | None]] = defaultdict(dict)
    for (place, task), score in runs.scores.items():
        if score.summary:
            stds[place][task] = score.summary.std
    shared = DataFrame(stds, dtype=float).T.dropna(axis="columns")
    ranks = robustness(shared, [runs.datasets[task] for task in shared]) if len(shared) > 1 and shared.size else {}
    printed, body = reference(study.reference), []
    for place, (label,) in enumerate(row.labels for row in study.rows):
        theirs = printed.find({"method": label}, "")
        ours = number(float(ranks[place]) if place in ranks else None, 3)
        remarks = {score.remark for (row, _), score in runs.scores.items() if row == place} - {""}
        body.append(
            {
                Heading("method", numeric=False): text(label),
                Heading("paper"): number(theirs.mean if theirs else None, 3),
                Heading("ours"): Field((*ours.lines, *sorted(remarks))),
            }
        )
    explained = words.caption("robustness_study", over=plural(len(shared.columns), "task"))
    caption, notes = f"{_caption(study, setting, runs.runs)} {explained}", _notes(runs.runs)
    return StudyTable(rows_of(name, _title(study, setting), caption, body, notes))


def _contrasts_table(study: Study, setting: Setting, runs: StudyRuns, name: str) -> StudyTable:
    """Return the differences of the levels of each contrast, for each method that has run."""
    places = {row.labels: place for place, row in enumerate(study.rows)}
    body = []
    for method in next(iter(study.factors.values())):
        fields = {
            Heading(f"{first} → {last}"): _difference(runs, places[method, first], places[method, last])
            for first, last in study.contrasts
        }
        if not all(field.is_empty for field in fields.values()):
            body.append({Heading("method", numeric=False): text(method), **fields})
    caption = f"{words.caption('contrasts')} {_classes_text(runs.runs)}".rstrip()
    return StudyTable(rows_of(name, f"{study.title}, contrasts: {setting}", caption, body))


def _difference(runs: StudyRuns, first: int, last: int) -> Field:
    """Return the mean difference of two rows over datasets, seeds paired; of a single dataset over its seeds."""
    from llpbench.report.statistics import interval

    changes = {}
    for dataset in runs.datasets:
        before, after = (runs.scores.get((row, dataset), StudyScore()).values for row in (first, last))
        if shared := sorted(before.keys() & after.keys()):
            changes[dataset] = [after[seed] - before[seed] for seed in shared]
    if not changes:
        return Field((words.NOTHING,))
    seeds = next(iter(changes.values()))
    blocks = [fsum(values) / len(values) for values in changes.values()] if len(changes) > 1 else seeds
    over = (
        plural(len(changes), "dataset") if len(changes) > 1 else f"{next(iter(changes))}, {plural(len(seeds), 'seed')}"
    )
    ends = interval(blocks)
    return Field((words.interval_text(fsum(blocks) / len(blocks), ends if isfinite(ends[0]) else None, sign="+"), over))


def _digits(measure: str) -> int:
    return 4 if measure == "cas" else 2


def _notes(runs: DataFrame) -> dict[str, list[str]]:
    """Return notes on failed and stale runs."""

    def lines(chosen: DataFrame, facts: Series) -> list[str]:
        named = zip(chosen["method"], chosen["dataset"], chosen["seed"], facts, strict=True)
        return some_of([f"{method} on {dataset}, seed {seed}: {fact}" for method, dataset, seed, fact in named])

    broken, stale = runs[runs["status"] != "ok"], runs[runs["stale"] != ""]
    reasons = broken["reason"].where(broken["reason"] != "", broken["status"])
    return {"Failed": lines(broken, reasons), words.STALE_NOTE: lines(stale, stale["stale"])}


def _is_beside_paper(study: Study, setting: Setting) -> bool:
    return bool(study.reference) and (setting.is_papers or study.layout == "robustness")


def _title(study: Study, setting: Setting) -> str:
    return f"{study.title}{' beside the paper' if _is_beside_paper(study, setting) else ''}: {setting}"


def _classes_text(runs: DataFrame) -> str:
    classes = runs.dropna(subset="classes").drop_duplicates("dataset").set_index("dataset")["classes"]
    return words.classes_text(sorted(classes.astype(int).items()))


def _caption(study: Study, setting: Setting, runs: DataFrame) -> str:
    machines = (dict(zip(MACHINE, json.loads(machine), strict=True)) for machine in runs["machine"].unique())
    caption = words.caption(
        "study",
        question=study.question,
        hardware=", ".join(sorted({device(machine) for machine in machines})),
        papers=not study.own,
        beside=_is_beside_paper(study, setting),
        same_training=setting.trains_as_paper,
        same_network=setting.has_papers_network,
    )
    return f"{caption} {_classes_text(runs)}".rstrip()
