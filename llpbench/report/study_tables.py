"""Tables of a study, with the paper's numbers beside ours. Each setting has its own table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum, isfinite
from typing import NamedTuple

from llpbench.core.record import Record
from llpbench.core.studies import Arm, Line, Study
from llpbench.core.text import plural, some_of
from llpbench.report import wording as words
from llpbench.report.boards import Summary
from llpbench.report.origin import device
from llpbench.report.reference import Printed, Reference, reference
from llpbench.report.report_table import Field, Heading, ReportTable, number, rows_of, text
from llpbench.report.study_runs import TIMES, LineScore, Setting, StudyRuns, collect, read_line, values_of_line
from llpbench.results.frame import NO_STALE_RUNS

FLAG = "⚑"
"""Mark of differences beyond two standard deviations."""

PAPERS_HARDWARE = "2080"
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


def study_tables(
    study: Study, records: Sequence[Record], *, stale: Mapping[str, str] = NO_STALE_RUNS
) -> list[StudyTable]:
    """Return the tables of a study, one per setting; none if nothing of it has run.

    `stale`: what has changed in the code since a run, by its id.
    """
    codes = {record["spec"]["dataset"]: record["dataset"]["code"] for record in records}
    settings = collect(study, records)
    order = sorted(settings, key=lambda setting: (not setting.is_papers, str(setting)))
    tables = []
    for place, setting in enumerate(order, start=1):
        runs = settings[setting]
        name = f"study-{study.name}" + ("" if len(order) == 1 else f"-{place}")
        if study.layout == "robustness":
            study_table = StudyTable(_robustness_table(study, setting, runs, name))
        else:
            study_table = _scores_table(study, setting, runs, name, codes)
        old = [f"{_run_text(run)}: {stale[run['run']]}" for run in runs.all_runs if run["run"] in stale]
        notes = {**study_table.table.notes, words.STALE_NOTE: tuple(some_of(old))} if old else study_table.table.notes
        tables.append(replace(study_table, table=replace(study_table.table, notes=notes)))
        if study.arms:
            tables.append(StudyTable(_arm_table(study, setting, runs, f"{name}-arms")))
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
        flag=FLAG,
    )
    return [study_table.table for study_table in compared], summary


def _scores_table(study: Study, setting: Setting, runs: StudyRuns, name: str, codes: Mapping[str, str]) -> StudyTable:
    """Return a row for each line and a column for each dataset."""
    printed = reference(study.reference) if study.reference and setting.is_papers else None
    columns = _columns(printed, {*runs.datasets}, codes)
    flagged: list[str] = []
    figures: list[PaperFigure] = []
    body = []
    for place, line in enumerate(study.lines):
        labels = dict(zip(study.factors, line.labels, strict=True))
        row = {Heading(factor, numeric=False): text(label) for factor, label in labels.items()}
        for code, dataset in columns:
            cell = runs.runs.get((place, dataset), [])
            ours = read_line(line, cell)
            theirs = printed.find(labels, code) if printed else None
            figure = None
            if theirs is not None and ours.summary is not None:
                is_comparable = _is_comparable(line, setting, cell)
                figure = PaperFigure(line.fixed["measure"], code, theirs, ours.summary, is_comparable)
                figures.append(figure)
                if figure.is_beyond:
                    flagged.append(f"{', '.join(line.labels)} on {code or dataset}: {figure}")
            row[Heading(code or dataset)] = _score_field(line, theirs, ours, figure)
        body.append(row)
    failed = [f"{_run_text(run)}: {run['reason'] or run['status']}" for run in runs.all_runs if run["status"] != "ok"]
    notes = {f"{FLAG} Beyond two standard deviations": flagged, "Failed": some_of(failed)}
    table = rows_of(name, _title(study, setting), _caption(study, setting, runs), body, notes)
    return StudyTable(table, tuple(figures))


def _score_field(line: Line, theirs: Printed | None, ours: LineScore, figure: PaperFigure | None) -> Field:
    """Return the lines of a field: the paper's number, ours, and their difference."""
    digits = _digits(line.fixed["measure"])
    lines = []
    if theirs is not None:
        spread = "" if theirs.std is None else f" ± {theirs.std:.{digits}f}"
        lines.append(f"paper {theirs.mean:.{digits}f}{spread}")
    if ours.summary is not None:
        lines.append(words.summary_text(ours.summary, digits))
    if figure is not None:
        lines.append(f"{figure} {FLAG}" if figure.is_beyond else str(figure))
    lines += [f"{ours.failed} failed"] if ours.failed else []
    lines += [ours.chosen] if ours.chosen else []
    return Field(tuple(lines) or (words.NOTHING,))


def _is_comparable(line: Line, setting: Setting, runs: Sequence[Record]) -> bool:
    is_timed = line.fixed["measure"] in TIMES
    same_hardware = all(PAPERS_HARDWARE in run["hardware"].get("name", "") for run in runs)
    return setting.has_papers_network and (same_hardware or not is_timed)


def _columns(printed: Reference | None, datasets: set[str], codes: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return (code, dataset) of the columns: the paper's in its order, then other datasets with runs."""
    names = {code: name for name, code in codes.items() if code}
    first = [(code, names.get(code, "")) for code in (printed.datasets if printed else [])]
    taken = {code for code, _ in first}
    others = sorted(datasets - {dataset for _, dataset in first})
    return [*first, *((codes.get(name, ""), f"{name} (own)" if name in taken else name) for name in others)]


def _robustness_table(study: Study, setting: Setting, runs: StudyRuns, name: str) -> ReportTable:
    """Return mean ranks of standard deviations over the datasets on which every line has one."""
    from pandas import DataFrame

    from llpbench.report.statistics import robustness

    summaries = {
        line.labels[0]: [read_line(line, runs.runs.get((place, dataset), [])).summary for dataset in runs.datasets]
        for place, line in enumerate(study.lines)
    }
    stds = DataFrame({label: [s.std if s else None for s in row] for label, row in summaries.items() if any(row)}).T
    shared = stds.dropna(axis="columns")
    ours = robustness(shared, [*shared.columns]) if len(shared) > 1 and len(shared.columns) else {}
    printed = reference(study.reference)
    body = []
    for (label,) in (line.labels for line in study.lines):
        theirs = printed.find({"method": label}, "")
        body.append(
            {
                Heading("method", numeric=False): text(label),
                Heading("paper"): number(theirs.mean if theirs else None, 3),
                Heading("ours"): number(float(ours[label]) if label in ours else None, 3),
            }
        )
    explained = words.caption("robustness_study", over=plural(len(shared.columns), "dataset"))
    return rows_of(name, _title(study, setting), f"{_caption(study, setting, runs)} {explained}", body)


def _arm_table(study: Study, setting: Setting, runs: StudyRuns, name: str) -> ReportTable:
    """Return the change along each arm, last minus first level, for each method that has run."""
    lines = {line.labels: number for number, line in enumerate(study.lines)}
    body = []
    for method in next(iter(study.factors.values())):
        fields = {
            Heading(f"{arm.levels[0]} → {arm.levels[-1]}"): _change(study, runs, lines, method, arm)
            for arm in study.arms
        }
        if not all(field.is_empty for field in fields.values()):
            body.append({Heading("method", numeric=False): text(method), **fields})
    caption = f"{words.caption('arms')} {_classes_text(runs)}".rstrip()
    return rows_of(name, f"{study.title}, end to end: {setting}", caption, body)


def _change(study: Study, runs: StudyRuns, lines: Mapping[tuple[str, ...], int], method: str, arm: Arm) -> Field:
    """Return the mean change over datasets with both ends, seeds paired; of a single dataset over its seeds."""
    from llpbench.report.statistics import interval

    changes = {}
    for dataset in runs.datasets:
        before, after = (
            values_of_line(study.lines[end], runs.runs.get((end, dataset), []))
            for end in (lines[method, arm.levels[0]], lines[method, arm.levels[-1]])
        )
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


def _run_text(run: Record) -> str:
    return f"{run['spec']['method']} on {run['spec']['dataset']}, seed {run['seed']}"


def _is_beside_paper(study: Study, setting: Setting) -> bool:
    return bool(study.reference) and (setting.is_papers or study.layout == "robustness")


def _title(study: Study, setting: Setting) -> str:
    return f"{study.title}{' beside the paper' if _is_beside_paper(study, setting) else ''}: {setting}"


def _classes_text(runs: StudyRuns) -> str:
    classes = {(run["spec"]["dataset"], run["dataset"].get("classes")) for run in runs.all_runs}
    return words.classes_text(sorted(classes, key=str))


def _caption(study: Study, setting: Setting, runs: StudyRuns) -> str:
    caption = words.caption(
        "study",
        question=study.question,
        hardware=", ".join(sorted({device(run["hardware"]) for run in runs.all_runs})),
        papers=study.from_paper,
        beside=_is_beside_paper(study, setting),
        same_training=setting.trains_as_paper,
        same_network=setting.has_papers_network,
    )
    return f"{caption} {_classes_text(runs)}".rstrip()
