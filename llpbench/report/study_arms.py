"""Changes along the arms of a study: the last level of each minus its first, by method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum, isfinite
from typing import NamedTuple

from llpbench.core.studies import Arm, Study
from llpbench.core.text import plural
from llpbench.report import wording as words
from llpbench.report.report_table import Field, Heading, ReportTable, rows_of, text
from llpbench.report.study_runs import StudyRuns, classes_of, values_of_line


class Place(NamedTuple):
    """Scores of a method on an arm."""

    level: str
    x: int
    """what varies along the arm"""
    line: int
    """number of the study's line"""


def places(study: Study, arm: Arm) -> dict[str, list[Place]]:
    """The places of an arm, by method."""
    *_, factor = study.factors.values()
    lines = {line.labels: number for number, line in enumerate(study.lines)}
    methods = next(iter(study.factors.values()))
    return {
        method: [Place(level, factor[level][arm.varies], lines[method, level]) for level in arm.levels]
        for method in methods
    }


def arm_table(study: Study, found: StudyRuns, name: str, title: str) -> ReportTable:
    """A row for each method that has run, a column for each arm: the mean over datasets of last minus first."""
    body = []
    parts = ("points", "low", "high", "datasets")
    headings = [Heading(f"{arm.levels[0]} → {arm.levels[-1]}", parts) for arm in study.arms]
    along = [places(study, arm) for arm in study.arms]
    for method in next(iter(study.factors.values())):
        fields = [_change(study, found, each[method]) for each in along]
        if any(field.values for field in fields):
            body.append({Heading("method", numeric=False): text(method), **dict(zip(headings, fields, strict=True))})
    return rows_of(name, title, f"{words.caption('arms')} {classes_of(found.every.values())}".rstrip(), body)


def _change(study: Study, found: StudyRuns, along: Sequence[Place]) -> Field:
    """Over the datasets that have both ends, seeds paired; of a single one over its seeds."""
    from llpbench.report.statistics import interval

    changes = _changes(study, found, along[0], along[-1])
    if not changes:
        return Field((words.NOTHING,))
    blocks = [fsum(own) / len(own) for own in changes.values()] if len(changes) > 1 else next(iter(changes.values()))
    mean, (low, high) = fsum(blocks) / len(blocks), interval(blocks)
    known = (low, high) if isfinite(low) else None
    seeds = f"{next(iter(changes))}, {plural(len(blocks), 'seed')}"
    over = seeds if len(changes) == 1 else plural(len(changes), "dataset")
    return Field(
        (words.interval_text(mean, known, sign="+"), over),
        {
            "points": round(mean, 6),
            "low": round(low, 6) if known else None,
            "high": round(high, 6) if known else None,
            "datasets": len(changes),
        },
    )


def _changes(study: Study, found: StudyRuns, first: Place, last: Place) -> Mapping[str, list[float]]:
    """By dataset, the differences of the seeds that both ends have."""
    differences = {}
    for dataset in sorted({dataset for _, dataset in found.runs}):
        before, after = (
            values_of_line(study.lines[end.line], found.runs.get((end.line, dataset), ())) for end in (first, last)
        )
        if shared := sorted(before.keys() & after.keys()):
            differences[dataset] = [after[seed] - before[seed] for seed in shared]
    return differences
