"""Tables of a study from a journal, with the paper's numbers beside ours.

What a study leaves open (mostly bagging, bag size and encoder, always the protocol) may differ between runs: each such
*setting* that the journal holds has a table of its own, so that nothing is mixed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from llpbench.core.record import Record
from llpbench.core.studies import Line, Study
from llpbench.core.text import plural, some_of
from llpbench.report import wording as words
from llpbench.report.boards import device
from llpbench.report.reference import Reference, reference, rows
from llpbench.report.report_table import Field, Heading, ReportTable, Value, number, rows_of, text
from llpbench.report.study_arms import arm_table
from llpbench.report.study_runs import LineScore, Setting, StudyRuns, classes_of, collect, is_comparable, read_line
from llpbench.results.frame import NO_STALE_RUNS

BESIDE = ("paper", "paper std", "mean", "std", "n", "failed", "difference", "paper's network", "beyond 2 std")
"""the parts of a field that has the paper's number and ours"""

FLAG = "⚑"

Figure = tuple[object, ...]
"""what makes a figure of the paper and ours the same in several tables: measure, dataset, both means, std and n"""


def study_tables(
    study: Study,
    records: Sequence[Record],
    *,
    stale: Mapping[str, str] = NO_STALE_RUNS,
    flagged: set[Figure] | None = None,
) -> list[ReportTable]:
    """The tables of a study, one for each setting; none if nothing of it has run.

    `stale`: by run id, what has changed in the code since the run was made. `flagged`: figures that tables before have
    flagged, and so these do not; what they flag is added.
    """
    flagged = set() if flagged is None else flagged
    datasets = {record["spec"]["dataset"]: record["dataset"] for record in records}
    if study.layout == "datasets":
        return [_datasets(study, datasets)]
    codes = {name: facts["code"] for name, facts in datasets.items()}
    found = collect(study, records)
    order = sorted(found, key=lambda setting: (not setting.is_papers, str(setting)))
    make = _robustness if study.layout == "robustness" else partial(_scores, codes=codes, seen=flagged)
    tables = []
    for place, setting in enumerate(order, start=1):
        name = f"study-{study.name}" + ("" if len(order) == 1 else f"-{place}")
        table = make(study, setting, found[setting], name)
        old = _stale_lines(found[setting], stale)
        tables.append(replace(table, notes={**table.notes, words.STALE_NOTE: old}) if old else table)
        if study.arms:
            tables.append(arm_table(study, found[setting], f"{name}-arms", f"{study.title}, end to end: {setting}"))
    return tables


def beside_paper(tables: Sequence[ReportTable]) -> tuple[list[ReportTable], str]:
    """The tables that have a number of the paper beside one of ours, and how many those are and differ, as a sentence.

    A figure that several tables share is counted once.
    """
    kept: list[ReportTable] = []
    figures: dict[Figure, Mapping[str, Value]] = {}
    for table in tables:
        own = [field for row in table.rows for field in row if "difference" in field.values]
        kept += [table] if own else []
        figures |= {tuple(field.values.get(part) for part in BESIDE): field.values for field in own}
    there = [values for values in figures.values() if values["paper's network"]]
    beyond = sum(values["beyond 2 std"] is True for values in there)
    return kept, (
        f"{plural(len(figures), 'figure')} of the paper beside yours in {plural(len(kept), 'table')}; {len(there):,} "
        f"of the paper's network, {beyond:,} of them more than two standard deviations away ({FLAG}). "
        f"The other {len(figures) - len(there):,} {words.caption('between_protocols')}."
    )


def what_to_run(study: Study) -> str:
    """Return the line for a study without runs."""
    return f"Nothing of this study has run yet. Run it with: llpbench run --study {study.name}"


def _scores(
    study: Study, setting: Setting, found: StudyRuns, name: str, *, codes: Mapping[str, str], seen: set[Figure]
) -> ReportTable:
    printed = reference(study.reference) if study.reference and setting.is_papers else None
    columns = _columns(printed, {dataset for _, dataset in found.runs}, codes)
    flagged: list[str] = []
    body = []
    for place, line in enumerate(study.lines):
        labels = dict(zip(study.factors, line.labels, strict=True))
        row = {Heading(factor, numeric=False): text(label) for factor, label in labels.items()}
        for code, dataset in columns:
            runs = found.runs.get((place, dataset), [])
            ours = read_line(line, runs)
            theirs = printed.find(labels, code) if printed else None
            figure = (line.fixed["measure"], code, theirs, ours.summary)
            field = _beside(theirs, ours, line, is_comparable(line, setting, runs), figure in seen)
            row[Heading(code or dataset, BESIDE)] = field
            if field.values.get("beyond 2 std") and figure not in seen:
                seen.add(figure)
                flagged.append(f"{', '.join(line.labels)} on {code or dataset}: {_difference(theirs, ours, line)}")
        body.append(row)
    failed = [f"{_run_text(run)}: {run['reason'] or run['status']}" for run in found.failed]
    notes = {f"{FLAG} Beyond two standard deviations": flagged, "Failed": some_of(failed)}
    noted = {what: tuple(lines) for what, lines in notes.items() if lines}
    return rows_of(name, _title(study, setting), _caption(study, setting, found), body, noted)


def _stale_lines(found: StudyRuns, stale: Mapping[str, str]) -> tuple[str, ...]:
    """One line for each run that was made by other code than there is now."""
    old = [f"{_run_text(run)}: {stale[name]}" for name, run in found.every.items() if name in stale]
    return tuple(some_of(old))


def _run_text(run: Record) -> str:
    return f"{run['spec']['method']} on {run['spec']['dataset']}, seed {run['seed']}"


def _digits(line: Line) -> int:
    return 4 if line.fixed["measure"] == "cas" else 2


def _difference(theirs: tuple[float, float | None] | None, read: LineScore, line: Line) -> str:
    """`+2.39`; "" where either is unknown."""
    if theirs is None or read.summary is None:
        return ""
    digits = _digits(line)
    return f"{round(read.summary.mean - theirs[0], digits) + 0.0:+.{digits}f}"  # never -0.00


def _beside(
    theirs: tuple[float, float | None] | None, read: LineScore, line: Line, comparable: bool, again: bool
) -> Field:
    """Paper, ours, difference; flagged where, of its network and not again, it exceeds twice the larger std."""
    ours = read.summary
    digits = _digits(line)
    lines: list[str] = []
    values: dict[str, Any] = {"n": 0}
    if theirs is not None:
        spread = "" if theirs[1] is None else f" ± {theirs[1]:.{digits}f}"
        lines.append(f"paper {theirs[0]:.{digits}f}{spread}")
        values |= {"paper": theirs[0], "paper std": theirs[1]}
    if ours is not None:
        lines.append(words.summary_text(ours, digits))
        values |= {"mean": round(ours.mean, 6), "std": ours.std and round(ours.std, 6), "n": ours.n}
    if theirs is not None and ours is not None:
        shown = _difference(theirs, read, line)
        known = [std for std in (theirs[1], ours.std) if std is not None]
        beyond = abs(float(shown)) > 2 * max(known) if known and comparable else None
        lines.append(f"{shown}{f' {FLAG}' if beyond and not again else ''}")
        values |= {"difference": float(shown) + 0.0, "beyond 2 std": beyond, "paper's network": comparable}
    if read.failed:
        lines.append(f"{read.failed} failed")
    if read.chosen:
        lines.append(read.chosen)
    return Field(tuple(lines) or (words.NOTHING,), {**values, "failed": read.failed})


def _robustness(study: Study, setting: Setting, found: StudyRuns, name: str) -> ReportTable:
    """Mean rank of the standard deviation, over the datasets on which every line has one."""
    from pandas import DataFrame

    from llpbench.report.statistics import robustness

    datasets = sorted({dataset for _, dataset in found.runs})
    summaries = {
        line.labels[0]: [read_line(line, found.runs.get((place, dataset), [])).summary for dataset in datasets]
        for place, line in enumerate(study.lines)
    }
    present = {label: stds for label, stds in summaries.items() if any(stds)}
    shared = [
        column
        for column in range(len(datasets))
        if all((each := stds[column]) is not None and each.std is not None for stds in present.values())
    ]
    stds = DataFrame({k: [v[c].std for c in shared] for k, v in present.items()}).T  # type: ignore[union-attr]
    ours = robustness(stds) if shared and len(present) > 1 else {}
    printed, recomputed = reference(study.reference), paper_robustness()
    body = []
    for line in study.lines:
        (label,) = line.labels
        theirs = printed.find({"method": label}, "")
        body.append(
            {
                Heading("method", numeric=False): text(label),
                Heading("paper"): number(theirs[0] if theirs else None, 3),
                Heading("from the paper's own table"): number(recomputed.get(label), 3),
                Heading("ours"): number(float(ours[label]) if label in ours else None, 3),
            }
        )
    explained = words.caption("robustness_study", over=plural(len(shared), "dataset"))
    return rows_of(name, _title(study, setting), f"{_caption(study, setting, found)} {explained}", body)


def paper_robustness() -> dict[str, float]:
    """The ranking that the paper's own fine-grained table gives, without MovieLens, as the paper has it."""
    from pandas import DataFrame

    from llpbench.report.statistics import robustness

    stds: dict[str, dict[str, float]] = defaultdict(dict)
    for row in rows("fine_grained"):
        if row["method"] != "Supervised" and row["dataset"] != "ML":
            stds[row["method"]][row["dataset"]] = float(row["std"])
    ranks = robustness(DataFrame(stds).T)
    return {str(label): float(rank) for label, rank in ranks.items()}


def _datasets(study: Study, datasets: Mapping[str, Mapping[str, Any]]) -> ReportTable:
    """The paper's statistics of its datasets, and what runs say of theirs."""
    ours = {facts["code"] or name: {"name": name, **facts} for name, facts in sorted(datasets.items())}
    printed = {
        {"Movielens-1M": "ML", "Private": "PA, PB"}.get(row["dataset"], row["dataset"]): row for row in rows("datasets")
    }
    facts = ("rows", "numeric", "categorical", "classes")
    body = []
    for code in dict.fromkeys((*printed, *ours)):
        own = ours.get(code, {})
        fields = {
            Heading("code", numeric=False): text(code),
            Heading("dataset", numeric=False): text(own.get("name", words.NOTHING)),
        }
        for fact in facts:
            theirs = printed.get(code, {}).get(fact, "")
            known = own.get(fact)
            shown = [f"paper {theirs}"] if theirs else []
            shown += [f"{known:,}"] if known is not None else []
            field = Field(tuple(shown) or (words.NOTHING,), {"paper": theirs or None, "ours": known})
            fields[Heading(fact, ("paper", "ours"))] = field
        body.append({**fields, Heading("licence", numeric=False): text(own.get("licence", words.NOTHING))})
    title = f"{study.title} beside the paper"
    return rows_of(f"study-{study.name}", title, words.caption("datasets_study"), body)


def _columns(printed: Reference | None, ran: set[str], codes: Mapping[str, str]) -> list[tuple[str, str]]:
    """(code, dataset) of the columns: the paper's in its order, then what else has run. `codes` are by dataset."""
    names = {code: name for name, code in codes.items() if code}
    first = [(code, names.get(code, "")) for code in (printed.datasets if printed else [])]
    known = {dataset for _, dataset in first}
    taken = {code for code, _ in first}
    others = sorted(ran - known)
    return [*first, *((codes.get(name, ""), f"{name} (own)" if name in taken else name) for name in others)]


def _has_papers(study: Study, setting: Setting) -> bool:
    """Whether the paper's numbers stand in a table."""
    return bool(study.reference) and (setting.is_papers or study.layout == "robustness")


def _title(study: Study, setting: Setting) -> str:
    return f"{study.title}{' beside the paper' if _has_papers(study, setting) else ''}: {setting}"


def _caption(study: Study, setting: Setting, found: StudyRuns) -> str:
    hardware = ", ".join(sorted({device(run["hardware"]) for run in found.every.values()}))
    none = "The paper prints no numbers for this" if study.papers else "Not one of the paper's studies"
    beside = "With the paper's numbers beside" if _has_papers(study, setting) else none
    if _has_papers(study, setting) and not setting.trains_as_paper:
        others = "training is longer (300 epochs, patience 20)"
        if not setting.has_papers_network:
            others = "encoder and training are others"
        beside += f"; its {others}, so differences {words.caption('between_protocols')}"
    return " ".join(
        filter(None, (study.question, f"Ours on {hardware}.", f"{beside}.", classes_of(found.every.values())))
    )
