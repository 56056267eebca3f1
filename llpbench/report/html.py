"""The leaderboards as one HTML page: sorted, filtered and traced to single runs in the browser, without any network.

Python writes what never changes, and the runs as one block of JSON; the scripts in `page/` compute the leaderboard from
it by the rules of `ranking.py`. Nothing in the page is code but those scripts: its policy names their hash, and
everything from the journal is text.
"""

from __future__ import annotations

import hashlib
import html
import json
import math
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from string import Template
from typing import Any
from urllib.parse import quote

from llpbench.core.criteria import METRICS
from llpbench.core.record import Record
from llpbench.report import text as words
from llpbench.report.boards import HEADLINE, Board, Leaderboards, Row, board_criteria

SCRIPTS = ("scores.js", "provenance.js", "table.js", "page.js")
"""in the order in which they need one another"""

HEADLINE_DIGITS = 6
"""of an AUC in percent: a mean of such values is printed like one of exact values"""

MOST_DETAILED = 5_000
"""runs with every test metric on the page; of more, `FEW` are kept, so that it stays small enough to be passed on"""
FEW = ("auc", "accuracy")

RANKING = (
    "The filters choose what is compared: means, ranks and bold scores are computed again from the runs behind what is "
    "shown. A run counts if more than half of the compared rows have attempted it; a row that lacks one of them stands "
    f"below the others, without a rank and a mean ({words.NOTHING}). A mean over columns has its own spread over seeds."
)

NOT_THE_PAPERS = "No run here uses the SAINT encoder of the paper, so no score here is comparable with the paper's."

_URI_SAFE = " !$'()*+,-./:;=?@[]^_`{|}~"
"""what stands in a data URI inside double quotes as it is; quoting less than base64 does makes it smaller"""


@dataclass(frozen=True)
class PagePlot:
    """A plot, as it is shown below the leaderboard."""

    name: str
    """unique among the plots; its anchor is `plot-<name>`"""
    title: str
    caption: str
    svg: str


@dataclass(frozen=True)
class PageTable:
    """A further table, shown below the leaderboard; a field may have several lines."""

    name: str
    """unique among the tables; its anchor is `table-<name>`"""
    title: str
    caption: str
    columns: list[str]
    rows: list[list[str]]


def to_html(
    leaderboards: Leaderboards,
    *,
    plots: Sequence[PagePlot] = (),
    tables: Sequence[PageTable] = (),
    warnings: Sequence[str] = (),
) -> str:
    """One page that needs nothing but itself. It depends on its arguments alone, so equal ones give equal pages."""
    style = _read("page.css")
    script = "\n".join(map(_read, SCRIPTS))
    empty = not leaderboards.boards
    page = Template(_read("template.html")).substitute(
        policy=_policy(style, script),
        style=style,
        script=script,
        data=_script_safe(_json(_packed(leaderboards))),
        task=_text(words.TASK),
        warnings="".join(f"<li>{_text(warning)}</li>" for warning in warnings),
        warned="" if warnings else "hidden",
        facts="" if empty else _facts(leaderboards),
        empty=f'<p class="empty">{_text(words.NO_RUNS)}</p>' if empty else "",
        filled="hidden" if empty else "",
        ranking=_text(RANKING),
        caption=_text(words.CAPTION),
        roles=_text(words.ROLES),
        navigation=_navigation(plots, tables),
        plots="".join(map(_plot, plots)),
        plotted="" if plots else "hidden",
        tables="".join(map(_table, tables)),
        tabled="" if tables else "hidden",
        left_out=_left_out(leaderboards.provenance.runs),
    )
    return page.encode("utf-8", "replace").decode("utf-8")  # a journal can hold half a surrogate pair, no file can


def _left_out(runs: int) -> str:
    """What a reader finds elsewhere."""
    metrics = " With so many runs, so are test metrics other than AUC and accuracy." if runs > MOST_DETAILED else ""
    return f"Diagnostics and learning curves are only in the journal.{metrics}"


def _read(name: str) -> str:
    return (files("llpbench.report") / "page" / name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """The content security policy: this style, this script, images inside the page, and nothing else."""
    style_hash, script_hash = (b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in (style, script))
    return (
        f"default-src 'none'; style-src 'sha256-{style_hash}'; script-src 'sha256-{script_hash}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _text(text: str) -> str:
    """Text from outside, for elements and attributes."""
    return html.escape(words.clean(text))


def _lines(text: str) -> str:
    return "<br>".join(map(_text, text.splitlines()))


def _facts(leaderboards: Leaderboards) -> str:
    """What the numbers were made with: encoders and hardware first, since they decide what may be compared."""
    origin = leaderboards.provenance
    encoders = sorted({encoder for board in leaderboards.boards for encoder in board.encoders})
    protocols = dict.fromkeys(words.protocol_text(board.protocol) for board in leaderboards.boards)
    facts = {
        "Encoder": ", ".join(encoders) or "none: methods without an encoder only",
        "Hardware": "; ".join(origin.hardware),
        "Training": "; ".join(protocols),
        "Runs": f"{origin.runs:,}" + (f", of which {origin.failed:,} failed" if origin.failed else ""),
        "Code": f"llpbench {', '.join(origin.code)}",
        "Libraries": ", ".join(origin.libraries),
    }
    items = "".join(f"<div><dt>{_text(name)}</dt><dd>{_text(value)}</dd></div>" for name, value in facts.items())
    note = f'<p class="caution">{_text(NOT_THE_PAPERS)}</p>' if encoders and "saint" not in encoders else ""
    return f'<dl class="facts">{items}</dl>{note}'


def _navigation(plots: Sequence[PagePlot], tables: Sequence[PageTable]) -> str:
    links = {"#leaderboard": "Leaderboard", "#reading": "How to read it"}
    links |= {"#plots": f"Plots ({len(plots)})"} if plots else {}
    links |= {"#tables": f"Further tables ({len(tables)})"} if tables else {}
    return "".join(f'<a href="{target}">{name}</a>' for target, name in links.items())


def _plot(plot: PagePlot) -> str:
    source = html.escape(f"data:image/svg+xml,{quote(plot.svg, safe=_URI_SAFE)}")
    anchor = f"plot-{quote(plot.name)}"
    return (
        f'<figure id="{html.escape(f"plot-{plot.name}")}"><h3><a href="#{anchor}">{_text(plot.title)}</a></h3>'
        f'<div class="canvas"><img src="{source}" alt="{_text(plot.caption)}" loading="lazy" decoding="async"></div>'
        f"<figcaption>{_text(plot.caption)}</figcaption></figure>\n"
    )


def _table(table: PageTable) -> str:
    """A table behind its title, which whoever has no script can read as well."""
    kinds = [' class="number"' if _is_numeric(column) else "" for column in zip(*table.rows, strict=True)]
    kinds += [""] * (len(table.columns) - len(kinds))
    heads = "".join(
        f'<th scope="col"{kind}><button type="button">{_text(column)}</button></th>'
        for column, kind in zip(table.columns, kinds, strict=True)
    )
    rows = "".join(
        f"<tr>{''.join(f'<td{kind}>{_lines(field)}</td>' for field, kind in zip(row, kinds, strict=True))}</tr>\n"
        for row in table.rows
    )
    anchor, title = html.escape(f"table-{table.name}"), _text(table.title)
    return (
        f'<details id="{anchor}"><summary><h3>{title}</h3></summary><p>{_text(table.caption)}</p>'
        f'<div class="scroll" role="region" aria-label="{title}" tabindex="0"><table class="plain">'
        f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div></details>\n"
    )


def _is_numeric(fields: Iterable[str]) -> bool:
    known = [field for field in fields if field not in ("", words.NOTHING)]
    return bool(known) and all(field.lstrip("+-−<")[:1].isdigit() for field in known)


def _packed(leaderboards: Leaderboards) -> dict[str, Any]:
    """All that the scripts need. Facts of runs and cells are columns, and what repeats is written once."""
    records: dict[str, Record] = {}
    for board in leaderboards.boards:
        for row in board.rows:
            for score in row.scores:
                records |= {record["run"]: record for record in score.runs.values()}
    cells = {record["cell"]: record for record in records.values()}
    keys = sorted({key for record in cells.values() for key in record["spec"]})
    metrics = _metrics(records.values())
    places = {run: place for place, run in enumerate(records)}
    return {
        "criteria": [
            {"name": each.name, "regime": each.regime, "title": each.title, "selection": words.SELECTION[each.regime]}
            for each in board_criteria()
        ],
        "metrics": [
            {"name": name, "title": METRICS[name].title if name in METRICS else name, "unit": _unit(name)}
            for name in metrics
        ],
        "boards": [_board(board, places) for board in leaderboards.boards],
        "cells": {
            "id": list(cells),
            "spec": {key: _interned([record["spec"].get(key) for record in cells.values()]) for key in keys},
            "method": _interned([record["method"] for record in cells.values()]),
        },
        **_runs(list(records.values()), {cell: place for place, cell in enumerate(cells)}, metrics),
    }


def _board(board: Board, places: Mapping[str, int]) -> dict[str, Any]:
    return {
        "criterion": board.criterion.name,
        "bagging": board.bagging,
        "protocol": words.protocol_text(board.protocol),
        "title": words.title(board),
        "setting": words.setting(board),
        "columns": [{"dataset": each.dataset, "size": each.bag_size, "seeds": each.seeds} for each in board.columns],
        "rows": [_row(board, row, places) for row in board.rows],
        "failures": board.failures,
        "surprises": board.surprises,
    }


def _row(board: Board, row: Row, places: Mapping[str, int]) -> dict[str, Any]:
    """A row; of each score its runs, one place for each seed of the column, or nothing at all."""
    scores = [
        [places[score.runs[seed]["run"]] if seed in score.runs else None for seed in column.seeds] if score.runs else 0
        for column, score in zip(board.columns, row.scores, strict=True)
    ]
    entry = row.entry
    return {
        "method": entry.method,
        "encoder": entry.encoder,
        "pretraining": entry.pretraining,
        "configuration": entry.configuration,
        "default": row.is_default,
        "role": entry.role,
        "label": entry.label,
        "scores": scores,
    }


def _runs(records: Sequence[Record], cells: Mapping[str, int], metrics: Sequence[str]) -> dict[str, Any]:
    """The columns of the runs, and every distinct list of test metrics, which many criteria of a run share."""
    times = sorted({name for record in records for name in record["times"]})
    results: dict[str, Any] = {}
    tests: dict[tuple[float | None, ...], int] = {}
    for criterion in (each.name for each in board_criteria()):
        chosen = [record["results"].get(criterion) for record in records]
        results[criterion] = {
            "epoch": [each and each["epoch"] for each in chosen],
            "validation": [each and _rounded(each["validation"], 4) for each in chosen],
            "test": [
                each and tests.setdefault(tuple(_measured(each["test"], name) for name in metrics), len(tests))
                for each in chosen
            ],
        }
    facts = ("status", "reason", "code", "libraries", "hardware")
    return {
        "runs": {
            "cell": [cells[record["cell"]] for record in records],
            "seed": [record["seed"] for record in records],
            **{name: _interned([record.get(name) for record in records]) for name in facts},
            **{
                name: _interned([record["data"].get(name) for record in records])
                for name in ("fingerprint", "manifest")
            },
            **{name: [record.get(name) for record in records] for name in ("epochs", "parameters", "memory_mb")},
            "finished": [record.get("finished") for record in records],
            "times": {name: [_short(record["times"].get(name)) for record in records] for name in times},
            "results": results,
        },
        "tests": list(tests),
    }


def _metrics(records: Iterable[Record]) -> list[str]:
    """The headline first, then every other test metric of the runs, in the order of `METRICS`; of many runs a few."""
    records = list(records)
    if len(records) > MOST_DETAILED:
        return list(FEW)
    found = {name for record in records for selected in record["results"].values() for name in selected["test"]}
    known = [name for name in METRICS if name in found and name != HEADLINE]
    return [HEADLINE, *known, *sorted(found.difference(METRICS))]


def _unit(metric: str) -> str:
    return "percent" if metric in METRICS and METRICS[metric].percent else ""


def _measured(test: Mapping[str, float | None], metric: str) -> float | None:
    """A test metric as it is shown. Only the headline is computed with, so only it is kept in full."""
    percent = _unit(metric) == "percent"
    value = test.get(metric)
    digits = HEADLINE_DIGITS if metric == HEADLINE else 2 if percent else 4
    return _rounded(None if value is None else 100.0 * value if percent else value, digits)


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None or not math.isfinite(value) else round(value, digits)


def _short(seconds: float | None) -> float | None:
    """Four digits, whatever the size."""
    return None if seconds is None or not math.isfinite(seconds) else float(f"{seconds:.4g}")


def _interned(values: Sequence[Any]) -> dict[str, Any]:
    """A column whose values repeat: each distinct one, once, and which of them stands where."""
    texts = [_json(value) for value in values]
    places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    distinct = dict(zip(texts, values, strict=True))
    return {"values": [distinct[text] for text in places], "at": [places[text] for text in texts]}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _script_safe(text: str) -> str:
    """JSON that no HTML parser takes for the end of its element; `\\u` escapes are the same JSON."""
    return text.translate({ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"})
