"""Studies: pivots of the tidy table as `results/studies.toml` describes them, with the paper's numbers beside ours.

A study may leave bagging, bag size and encoder open, and always leaves the protocol open. Runs that differ in these
have different *settings*. Each setting has its own table.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from math import inf, isnan, nan
from typing import Any, NamedTuple

import numpy as np
from pandas import DataFrame, Series, concat, read_csv

from llpbench.core.cell import Protocol
from llpbench.core.criteria import CRITERIA, METRICS
from llpbench.core.text import plural, some_of
from llpbench.report import wording as words
from llpbench.report.boards import REFERENCE
from llpbench.report.report_table import Field, Heading, ReportTable
from llpbench.report.statistics import robustness
from llpbench.results.frame import NO_PROTOCOL, shown
from llpbench.results.studies import OPEN, Study, StudyRow

MEASURES: Mapping[str, Callable[[DataFrame], Series]] = {
    **{name: lambda runs, name=name: shown(runs, name) for name in METRICS},  # type: ignore[misc]
    "cas": lambda runs: runs["cas"],
    "pair-accuracy": lambda runs: 100 * runs["pair_accuracy"],
    "minutes": lambda runs: (
        runs[["seconds_warm_up", "seconds_train", "seconds_evaluate"]].sum(axis="columns", min_count=1) / 60
    ),
    "pretraining minutes": lambda runs: runs["seconds_pretraining"] / 60,
}
"""Functions that read a value of each run of the tidy table."""

_TIMES = ("minutes", "pretraining minutes")
"""Measures that seeds share if they are trained together."""

_PAPERS_ENCODER, _PAPERS_HARDWARE = "saint", "2080"
"""The paper's encoder, and part of the name of its GPU. Times on other hardware are not comparable."""

_FLAG = "⚑"
"""Mark of differences beyond two standard deviations."""

_CELL = ["cell", "changed"]
_SCORE = ["setting", "row", "task"]


class _Setting(NamedTuple):
    """What a study leaves open."""

    bagging: str
    """empty if the rows of the study fix it"""
    bag_size: int
    """-1 if the rows fix it, 0 if bags have their own sizes"""
    encoder: str
    """empty if the rows fix it, and without an encoder"""
    protocol: str
    """as JSON"""
    ensemble: int
    """number of averaged networks"""
    precision: str

    @property
    def is_papers(self) -> bool:
        """Whether bagging and bag size are the paper's."""
        return self.bagging in ("", "ordered") and self.bag_size in (-1, 256)

    @property
    def has_papers_network(self) -> bool:
        """Whether the network is the paper's encoder, without an ensemble."""
        return self.encoder in ("", _PAPERS_ENCODER) and self.ensemble == 1

    def __str__(self) -> str:
        parts = (
            self.bagging,
            {-1: "", 0: "bags of their own sizes"}.get(self.bag_size, f"bags of {self.bag_size}"),
            f"encoder {self.encoder}" if self.encoder else "",
            words.protocol_text(json.loads(self.protocol)),
            f"ensembles of {self.ensemble}" if self.ensemble > 1 else "",
            self.precision if self.precision != REFERENCE else "",
        )
        return " · ".join(filter(None, parts))


_OPEN = [*_Setting._fields]
_FIXED = dict(zip(OPEN, ("", -1, ""), strict=True))
"""Values of a setting for the parts that rows fix."""


class _PaperFigure(NamedTuple):
    """A number of the paper beside ours."""

    measure: str
    dataset: str
    printed: float
    printed_std: float
    """NaN if the paper prints none"""
    ours: float
    std: float
    is_comparable: bool
    """whether network and, for times, hardware are the paper's"""

    @property
    def difference(self) -> float:
        """Ours minus the paper's, rounded as it is shown."""
        return round(self.ours - self.printed, _digits(self.measure)) + 0.0  # never -0.0

    @property
    def is_beyond(self) -> bool:
        """Whether a comparable difference exceeds twice the larger standard deviation."""
        stds = [std for std in (self.printed_std, self.std) if not isnan(std)]
        return self.is_comparable and bool(stds) and abs(self.difference) > 2 * max(stds)

    def __str__(self) -> str:
        return f"{self.difference:+.{_digits(self.measure)}f}"


@dataclass(frozen=True)
class _StudyTable:
    """Table of a study, with its comparable numbers."""

    table: ReportTable
    figures: tuple[_PaperFigure, ...] = ()


@dataclass(frozen=True)
class _Runs:
    """Runs of a study in one setting."""

    study: Study
    setting: _Setting
    every: DataFrame
    """each run once, with failed ones and those of cells that no score shows"""
    scores: DataFrame
    """`mean`, `std`, `count`, `failed`, `remark` and `has_papers_device`, by row and task. A task is a dataset, in
    rankings of robustness with a bag size"""

    def title(self) -> str:
        return f"{self.study.title}{' beside the paper' if self._is_beside_paper else ''}: {self.setting}"

    def caption(self) -> str:
        has_network = self.setting.has_papers_network
        caption = words.caption(
            "study",
            question=self.study.question,
            hardware=", ".join(words.device_texts(self.every["machine"])),
            papers=not self.study.own,
            beside=self._is_beside_paper,
            same_training=has_network and json.loads(self.setting.protocol) in (None, asdict(Protocol())),
            same_network=has_network,
        )
        several = self.every[self.every["classes"] > 2].drop_duplicates("dataset").sort_values("dataset")
        numbers = dict(zip(several["dataset"], several["classes"].astype(int), strict=True))
        classes = words.caption("classes", several=numbers)
        return f"{caption} {classes}".rstrip()

    @property
    def _is_beside_paper(self) -> bool:
        return bool(self.study.reference) and (self.setting.is_papers or self.study.layout == "robustness")

    def notes(self) -> dict[str, list[str]]:
        """Return notes on failed and stale runs."""
        failed, stale = self.every[self.every["status"] != "ok"], self.every[self.every["stale"] != ""]
        reasons = failed["reason"].where(failed["reason"] != "", failed["status"])
        return {words.FAILED: _on_runs(failed, reasons), words.STALE_NOTE: _on_runs(stale, stale["stale"])}


def study_tables(study: Study, frame: DataFrame) -> list[_StudyTable]:
    """Return the tables of a study made of the tidy table, one per setting; none if nothing of it has run."""
    lines = _lines(study, frame)
    if lines.empty:
        return []
    scores = _scores(study, lines)
    settings = {key: _Setting(*of) for key, *of in lines[["setting", *_OPEN]].drop_duplicates().itertuples(index=False)}
    tables = []
    for place, key in enumerate(sorted(settings, key=lambda key: (not settings[key].is_papers, str(settings[key])))):
        every = lines[lines["setting"] == key].drop_duplicates("run")
        of_setting = _Runs(study, settings[key], every, scores.loc[key])
        name = f"study-{study.name}" + ("" if len(settings) == 1 else f"-{place + 1}")
        make = _robustness_table if study.layout == "robustness" else _scores_table
        tables.append(make(of_setting, name))
    return tables


def beside_paper(tables: Sequence[_StudyTable]) -> tuple[list[ReportTable], str]:
    """Return the tables that compare with the paper, and a summary of their figures, each counted once."""
    tables = [study_table for study_table in tables if study_table.figures]
    figures = {str(figure[:]): figure for study_table in tables for figure in study_table.figures}.values()
    comparable = [figure for figure in figures if figure.is_comparable]
    summary = words.caption(
        "beside_paper",
        figures=plural(len(figures), "figure"),
        tables=plural(len(tables), "table"),
        comparable=f"{len(comparable):,}",
        beyond=f"{sum(figure.is_beyond for figure in comparable):,}",
        others=f"{len(figures) - len(comparable):,}",
        flag=_FLAG,
    )
    return [study_table.table for study_table in tables], summary


@cache
def _paper_numbers(name: str) -> tuple[list[str], dict[tuple[str, ...], tuple[float, float]]]:
    """Return a table of the paper: the names of its keys (factors and, usually, `dataset`), mean and std by key."""
    with (resources.files("llpbench.report") / "paper" / f"{name}.csv").open(encoding="utf-8") as file:
        table = read_csv(file).rename(columns={"average_rank": "mean"})
    keys = [column for column in table if column not in ("mean", "std")]
    numbers = table.reindex(columns=["mean", "std"]).itertuples(index=False, name=None)
    return keys, dict(zip(table[keys].itertuples(index=False, name=None), numbers, strict=True))


def _lines(study: Study, frame: DataFrame) -> DataFrame:
    """Return the lines of the tidy table that belong to a study, with their row, task and setting.

    Methods with their own network belong to every encoder, direct methods to every protocol, too.
    """
    by_size = study.layout == "robustness"
    cells = frame.drop_duplicates(_CELL).fillna({"bag_size": 0, "max_bags": 0, "encoder": ""}).astype({"bag_size": int})
    parts = []
    for place, row in enumerate(study.rows):
        closed = {part: _FIXED[part] for part in OPEN if part in row.fixed or (by_size and part == "bag_size")}
        members = _members(row, cells)
        is_alone = (members["encoder"] == "") & ("encoder" not in closed)
        parts.append(members.assign(row=place, is_alone=is_alone, **closed))
    members = concat(parts)[[*_CELL, "row", "is_alone", *_OPEN]]
    is_alone, is_direct = members.pop("is_alone"), members["protocol"] == NO_PROTOCOL
    joined = members[~is_alone]
    for others, keys in (
        (members[is_alone & ~is_direct], [name for name in _OPEN if name != "encoder"]),
        (members[is_alone & is_direct], ["bagging", "bag_size"]),
    ):
        has_setting = others.set_index(keys).index.isin(joined.set_index(keys).index)
        settings = concat([joined, others[~has_setting]])[_OPEN].drop_duplicates()
        joined = concat([joined, others[[*_CELL, "row", *keys]].merge(settings, on=keys)])
    joined = joined.assign(setting=joined.groupby(_OPEN).ngroup())
    sizes = frame["bag_size"].map(" {:.0f}".format) if by_size else ""
    return frame.assign(task=frame["dataset"] + sizes).drop(columns=_OPEN).merge(joined, on=_CELL)


def _members(row: StudyRow, cells: DataFrame) -> DataFrame:
    """Return the cells that have everything that a row fixes, and default hyperparameters otherwise."""
    fixed, has_encoder = row.fixed, cells["encoder"] != ""
    belong = (cells["method"] == fixed["method"]) & (cells["numbers"] == "z") & (cells["average"] == "")
    belong &= cells["max_bags"] == fixed.get("max_bags", 0)
    belong &= cells["pretraining"].isin([*row.pretrainings, fixed.get("otherwise")]) | ~has_encoder
    for part in OPEN:
        belong &= cells[part] == fixed.get(part, cells[part])
    wanted = _params(fixed)
    items = {f"{name}={json.dumps(value)}" for name, value in wanted.items()}
    members = cells[belong]
    has_params = [
        all(params.get(name) == value for name, value in wanted.items())
        and {*filter(None, changed.split(", "))} <= items
        for params, changed in zip(map(_params, map(json.loads, members["settings"])), members["changed"], strict=True)
    ]
    return members[np.array(has_params, dtype=bool)]


def _params(of: Mapping[str, Any]) -> dict[str, Any]:
    """Return hyperparameters of the method and (`pretraining.NAME`) of the pretraining."""
    params = {f"pretraining.{name}": value for name, value in of.get("pretraining_params", {}).items()}
    return {**of.get("params", {}), **params}


def _scores(study: Study, lines: DataFrame) -> DataFrame:
    """Return the scores of a study, by setting, row and task."""
    fixed = [row.fixed for row in study.rows]
    lines = _shown_lines(study, lines).reset_index(drop=True)
    lines["value"] = nan
    for place, of_row in lines.groupby("row"):
        measured = of_row[of_row["criterion"] == fixed[place]["criterion"]]
        lines.loc[measured.index, "value"] = MEASURES[fixed[place]["measure"]](measured).replace([inf, -inf], nan)
    lines["has_papers_device"] = lines["device"].isna() | lines["device"].str.contains(_PAPERS_HARDWARE, na=False)
    lines["failed"] = lines["status"] != "ok"
    facts = ["value", "failed", "remark", "has_papers_device", "members"]
    runs = lines.groupby([*_SCORE, "seed"])[facts].first()  # the first known value
    how = {"failed": "sum", "remark": "first", "has_papers_device": "all", "members": "max"}
    scores = runs.groupby(_SCORE).agg(how).join(runs.groupby(_SCORE)["value"].agg(["mean", "std", "count"]))
    is_time = np.array([fixed[row]["measure"] in _TIMES for row in scores.index.get_level_values("row")], dtype=bool)
    scores.loc[is_time & (scores["members"] > 1), "std"] = nan
    return scores


def _shown_lines(study: Study, lines: DataFrame) -> DataFrame:
    """Return the lines that scores show, with a remark on their pretraining.

    If defaults have changed, a pretraining has several cells; the one with most runs is shown.
    """
    sizes = lines.groupby([*_SCORE, "pretraining", "cell"])["run"].nunique().reset_index()
    cells = sizes.sort_values(["run", "cell"]).drop_duplicates([*_SCORE, "pretraining"], keep="last")
    lines = lines.merge(cells[[*_SCORE, "cell"]]).assign(remark="")
    has_choice = lines["row"].map(
        [len(row.pretrainings) > 1 or "otherwise" in row.fixed for row in study.rows].__getitem__
    )
    parts = [lines[~has_choice]]
    for (_, row, _), of_score in lines[has_choice].groupby(_SCORE):
        pretraining, remark = _chosen_pretraining(study.rows[row], of_score)
        parts.append(of_score[of_score["pretraining"] == pretraining].assign(remark=remark))
    return concat(parts)


def _chosen_pretraining(row: StudyRow, lines: DataFrame) -> tuple[str, str]:
    """Return the pretraining that a score shows, with a remark.

    Of several, it is the one with the best mean criterion on validation rows, over the seeds that all share.
    """
    tried = sorted({*lines["pretraining"]})
    if len(row.pretrainings) == 1:
        wanted, other = row.pretrainings[0], "without pretraining" if tried[0] == "none" else f"pretraining {tried[0]}"
        return (wanted, "") if wanted in tried else (tried[0], other)
    criterion = CRITERIA[row.fixed["criterion"]]
    known = lines[(lines["criterion"] == criterion.name) & lines["validation"].notna()]
    by_seed = known.pivot(index="seed", columns="pretraining", values="validation")
    means = (by_seed if by_seed.dropna().empty else by_seed.dropna()).mean() * (1 if criterion.maximise else -1)
    best = str(means.idxmax() if len(means) else tried[0])
    return best, f"{best}, best of {len(tried)} of {len(row.pretrainings)}"


def _scores_table(runs: _Runs, name: str) -> _StudyTable:
    """Return a row for each row of the study and a column for each dataset."""
    study, setting = runs.study, runs.setting
    keys, printed = _paper_numbers(study.reference) if study.reference and setting.is_papers else ([], {})
    columns = _columns([*dict.fromkeys(key[-1] for key in printed)], runs.every)
    ours = dict(zip(runs.scores.index, runs.scores.itertuples(), strict=True))
    figures, flagged, fields = [], [], defaultdict[Heading, list[Field]](list)
    for place, row in enumerate(study.rows):
        measure, labels = row.fixed["measure"], dict(zip(study.factors, row.labels, strict=True))
        for factor, label in labels.items():
            fields[Heading(factor, numeric=False)].append(Field.text(label))
        for code, dataset in columns:
            score = ours.get((place, dataset))
            theirs = printed.get(tuple((labels | {"dataset": code})[key] for key in keys))
            figure = None
            if theirs is not None and score is not None and score.count > 0:
                is_papers = setting.has_papers_network and not ("otherwise" in row.fixed and score.remark)
                is_papers &= measure not in _TIMES or score.has_papers_device
                figure = _PaperFigure(measure, code, *theirs, score.mean, score.std, is_papers)
                figures.append(figure)
                if figure.is_beyond:
                    flagged.append(f"{', '.join(row.labels)} on {code}: {figure}")
            own = " (own)" * (dataset in dict(columns))  # called like one of the paper's codes
            fields[Heading(code or dataset + own)].append(_score_field(_digits(measure), theirs, score, figure))
    notes = {f"{_FLAG} Beyond two standard deviations": flagged, **runs.notes()}
    return _StudyTable(ReportTable(name, runs.title(), runs.caption(), [*fields.items()], notes), tuple(figures))


def _score_field(digits: int, theirs: tuple[float, float] | None, score: Any, figure: _PaperFigure | None) -> Field:
    """Return the lines of a field: the paper's number, ours, and their difference."""
    lines = []
    if theirs is not None:
        lines.append(f"paper {theirs[0]:.{digits}f}" + ("" if isnan(theirs[1]) else f" ± {theirs[1]:.{digits}f}"))
    if score is not None and score.count > 0:
        lines.append(words.summary_text(score.mean, score.std, score.count, digits))
    lines += [] if figure is None else [f"{figure} {_FLAG}" if figure.is_beyond else str(figure)]
    lines += [f"{score.failed} failed"] if score is not None and score.failed else []
    lines += [score.remark] if score is not None and score.remark and (score.count > 0 or score.failed) else []
    return Field(tuple(lines) or (words.NOTHING,))


_PAPERS = {
    "AD": "adult",
    "BA": "bank_marketing",
    "CA": "california",
    "CR": "credit",
    "EL": "electricity",
    "ML": "movielens_1m",
    "RO": "road_safety",
}
"""The paper's public datasets by its codes."""


def _columns(codes: Sequence[str], runs: DataFrame) -> list[tuple[str, str]]:
    """Return (code, dataset) of the columns: the paper's in its order, then other datasets with runs.

    Only the paper's datasets have a code. Recorded ones may be those of older versions, or of plugins.
    """
    others = sorted({*runs["dataset"]} - {_PAPERS.get(code) for code in codes})
    known = {name: code for code, name in _PAPERS.items()}
    return [*((code, _PAPERS.get(code, "")) for code in codes), *((known.get(name, ""), name) for name in others)]


def _robustness_table(runs: _Runs, name: str) -> _StudyTable:
    """Return mean ranks of standard deviations, over the tasks on which every row that has run has one."""
    stds = runs.scores.loc[runs.scores["count"] > 0, "std"].unstack().dropna(axis="columns").round(9)
    datasets = runs.every.drop_duplicates("task").set_index("task")["dataset"]
    ranks = robustness(stds, [*datasets[stds.columns]]) if len(stds) > 1 and stds.size else {}
    _, printed = _paper_numbers(runs.study.reference)
    labels, ours = [row.labels[0] for row in runs.study.rows], []
    for place in range(len(labels)):
        rank = Field.number(float(ranks[place]) if place in ranks else None, 3)
        remarks = {remark for (row, _), remark in runs.scores["remark"].items() if row == place} - {""}
        ours.append(Field((*rank.lines, *sorted(remarks))))
    columns = [
        (Heading("method", numeric=False), [*map(Field.text, labels)]),
        (Heading("paper"), [Field.number(printed[label,][0] if (label,) in printed else None, 3) for label in labels]),
        (Heading("ours"), ours),
    ]
    explained = words.caption("robustness_study", over=plural(len(stds.columns), "task"))
    return _StudyTable(ReportTable(name, runs.title(), f"{runs.caption()} {explained}", columns, runs.notes()))


def _digits(measure: str) -> int:
    return 4 if measure == "cas" else 2


def _on_runs(runs: DataFrame, facts: Iterable[str]) -> list[str]:
    named = zip(runs["method"], runs["dataset"], runs["seed"], facts, strict=True)
    return some_of([f"{method} on {dataset}, seed {seed}: {fact}" for method, dataset, seed, fact in named])
