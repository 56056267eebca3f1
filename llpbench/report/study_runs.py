"""Runs and scores of a study, from the tidy table: which cells belong to which row, and what is read from their runs.

A study may leave bagging, bag size and encoder open, and always leaves the protocol open. Runs that differ in these are
different *settings* and are never mixed.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import chain, combinations
from math import inf, nan
from typing import Any, NamedTuple

from pandas import DataFrame, Series, isna

from llpbench.core.cell import Protocol
from llpbench.core.criteria import CRITERIA, METRICS
from llpbench.core.studies import OPEN, Study, StudyRow
from llpbench.report import wording as words
from llpbench.report.boards import REFERENCE, Summary, summarise
from llpbench.results.frame import NO_PROTOCOL, shown

PAPER = {"bagging": "ordered", "bag_size": 256}
"""Setting of the paper's tables."""

_PAPERS_ENCODER = "saint"

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

TIMES = ("minutes", "pretraining minutes")
"""Measures that seeds share if they are trained together."""

_CELL = ["cell", "changed"]
_SCORE = ["setting", "row", "task"]
_FACTS = [*_CELL, "method", "pretraining", *OPEN, "max_bags", "numbers"]
_FACTS += ["protocol", "ensemble", "precision", "settings"]


@dataclass(frozen=True)
class Setting:
    """Values that a study leaves open; None for those that its rows fix."""

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
        return self.encoder in (None, _PAPERS_ENCODER) and self.ensemble == 1

    @property
    def trains_as_paper(self) -> bool:
        """Whether network and protocol are the paper's."""
        return self.has_papers_network and json.loads(self.protocol) in (None, asdict(Protocol()))

    def takes(self, other: Setting) -> bool:
        """Return whether methods without an encoder of another setting belong to this one."""
        if other.protocol == NO_PROTOCOL:
            return (self.bagging, self.bag_size) == (other.bagging, other.bag_size)
        return other == replace(self, encoder=other.encoder)

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


class StudyScore(NamedTuple):
    """Score of a row on a task."""

    values: Mapping[int, float] = {}
    """by seed"""
    summary: Summary | None = None
    """over seeds; None without a value. Times that seeds share have no standard deviation"""
    failed: int = 0
    remark: str = ""
    """pretraining, if the row does not fix it or another one is shown"""
    devices: frozenset[str] = frozenset()


@dataclass(frozen=True)
class StudyRuns:
    """Runs of a study in one setting."""

    runs: DataFrame
    """each run once, with failed ones and those of cells that no score shows"""
    scores: Mapping[tuple[int, str], StudyScore]
    """by row (its number) and task: a dataset, in rankings of robustness with a bag size"""

    @property
    def datasets(self) -> dict[str, str]:
        """Datasets by task, sorted."""
        return dict(sorted({*zip(self.runs["task"], self.runs["dataset"], strict=True)}))


def study_runs(study: Study, frame: DataFrame) -> dict[Setting, StudyRuns]:
    """Return the runs of a study in the tidy table, and its scores, by setting. The paper's settings come first."""
    members = DataFrame(_members(study, frame), columns=[*_CELL, "row", "setting"])
    if members.empty:
        return {}
    settings = sorted({*members["setting"]}, key=lambda setting: (not setting.is_papers, str(setting)))
    members["setting"] = members["setting"].map({setting: number for number, setting in enumerate(settings)})
    lines = frame.merge(members, on=_CELL)
    sizes = lines["bag_size"].map(" {:.0f}".format) if study.layout == "robustness" else ""
    lines = lines.assign(task=lines["dataset"] + sizes).sort_values([*_SCORE, "seed"], kind="stable")
    scores: dict[int, dict[tuple[int, str], StudyScore]] = defaultdict(dict)
    for number, row, task, score in _scores(study, lines):
        scores[number][row, task] = score
    runs = lines.groupby("setting")
    return {settings[number]: StudyRuns(each.drop_duplicates("run"), scores[number]) for number, each in runs}


def _members(study: Study, frame: DataFrame) -> list[tuple[str, str, int, Setting]]:
    """Return (cell, changed hyperparameters, row, setting) of the cells that belong to a study.

    Methods with their own network belong to every encoder, direct methods to every protocol, too.
    """
    cells = frame[_FACTS].drop_duplicates(_CELL).to_dict("records")
    members: list[tuple[str, str, int, Setting]] = []
    without_encoder: list[tuple[str, str, int, Setting]] = []
    for number, row in enumerate(study.rows):
        closed = {*row.fixed, *(("bag_size",) if study.layout == "robustness" else ())}
        for cell in cells:
            if cell["method"] == row.fixed["method"] and _belongs(row, cell):
                member = cell["cell"], cell["changed"], number, _setting(cell, closed)
                (without_encoder if isna(cell["encoder"]) and "encoder" not in closed else members).append(member)
    settings = dict.fromkeys(setting for *_, setting in members)
    for *cell, number, own in sorted(without_encoder, key=lambda member: member[-1].protocol == NO_PROTOCOL):
        joined = [setting for setting in settings if setting.takes(own)] or [own]
        settings |= dict.fromkeys(joined)
        members += [(*cell, number, setting) for setting in joined]
    return members


def _setting(cell: Mapping[str, Any], closed: Container[str]) -> Setting:
    """Return the setting of a cell, without the parts that a study does not leave open."""
    size, encoder = (None if isna(cell[name]) else cell[name] for name in ("bag_size", "encoder"))
    parts = {"bagging": cell["bagging"], "bag_size": int(size or 0), "encoder": encoder}
    parts = {name: None if name in closed else value for name, value in parts.items()}
    return Setting(**parts, **{name: cell[name] for name in ("protocol", "ensemble", "precision")})


def _belongs(row: StudyRow, cell: Mapping[str, Any]) -> bool:
    """Return whether a cell has everything that a row fixes, and default hyperparameters otherwise."""
    fixed = row.fixed
    if cell["pretraining"] not in (*row.pretrainings, fixed.get("otherwise")) and not isna(cell["encoder"]):
        return False
    if (None if isna(cell["max_bags"]) else cell["max_bags"]) != fixed.get("max_bags"):
        return False
    if cell["numbers"] != "z" or any(part in fixed and cell[part] != fixed[part] for part in OPEN):
        return False
    spec = json.loads(cell["settings"])
    wanted, values = (
        {**part.get("params", {})}
        | {f"pretraining.{name}": value for name, value in part.get("pretraining_params", {}).items()}
        for part in (fixed, spec)
    )
    items = [f"{name}={json.dumps(value)}" for name, value in sorted(wanted.items())]
    subsets = chain.from_iterable(combinations(items, number) for number in range(len(items) + 1))
    is_wanted = all(values.get(name) == value for name, value in wanted.items())
    return is_wanted and cell["changed"] in {", ".join(subset) for subset in subsets}


def _scores(study: Study, lines: DataFrame) -> Iterator[tuple[int, int, str, StudyScore]]:
    """Yield (setting, row, task, score)."""
    rows, lines = study.rows, _of_shown_cells(study, lines)
    values: dict[tuple[int, int, str], dict[int, float]] = defaultdict(dict)
    for number, row in enumerate(rows):
        measured = lines[(lines["row"] == number) & (lines["criterion"] == row.fixed["criterion"])]
        numbers = MEASURES[row.fixed["measure"]](measured).replace([inf, -inf], nan).dropna()
        keys = measured.loc[numbers.index, [*_SCORE, "seed"]].itertuples(index=False, name=None)
        for (*key, seed), value in zip(keys, numbers.tolist(), strict=True):
            values[tuple(key)][seed] = value
    runs = lines.drop_duplicates([*_SCORE, "run"])
    runs = runs.assign(failed=runs["status"] != "ok")
    how = {"failed": "sum", "remark": "first", "device": frozenset, "members": "max"}
    for key, failed, remark, devices, members in runs.groupby(_SCORE).agg(how).itertuples(name=None):
        summary = summarise([values[key][seed] for seed in sorted(values[key])])
        if summary is not None and rows[key[1]].fixed["measure"] in TIMES and members > 1:
            summary = summary._replace(std=None)
        yield *key, StudyScore(values[key], summary, int(failed), remark, devices)


def _of_shown_cells(study: Study, lines: DataFrame) -> DataFrame:
    """Return the lines of the cells that scores show, with a remark on their pretraining.

    If defaults have changed, a pretraining has several cells; the one with most runs is shown.
    """
    runs = lines.drop_duplicates([*_SCORE, "run"])
    sizes = runs.groupby([*_SCORE, "pretraining", "cell"]).size().reset_index(name="size")
    cells = sizes.sort_values(["size", "cell"]).drop_duplicates([*_SCORE, "pretraining"], keep="last")
    lines = lines.merge(cells[[*_SCORE, "cell"]]).assign(remark="")
    has_choice = [len(row.pretrainings) > 1 or "otherwise" in row.fixed for row in study.rows]
    for (_, number, _), of_score in lines[lines["row"].map(has_choice.__getitem__)].groupby(_SCORE):
        chosen, remark = _chosen_pretraining(study.rows[number], of_score)
        lines.loc[of_score.index, "remark"] = remark
        lines = lines.drop(of_score.index[of_score["pretraining"] != chosen])
    return lines


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
