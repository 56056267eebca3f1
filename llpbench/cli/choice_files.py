"""Files of `llpbench choose`: a page, tables and plots, from a `MethodChoice`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from llpbench.core.criteria import CRITERIA
from llpbench.core.errors import LLPBenchError
from llpbench.core.files import WRITTEN, forget_stale, replace_file
from llpbench.core.spreadsheets import frame_as_csv
from llpbench.core.text import duration, one_line, plural
from llpbench.owndata.choosing import DECIDES, MethodChoice
from llpbench.owndata.doubts import Doubts
from llpbench.report.html import choice_page
from llpbench.report.plots.bag_shares import BagShares, held_out_shares, sizes_and_shares
from llpbench.report.plots.effect_panels import effect_panels
from llpbench.report.plots.plot import Plot
from llpbench.report.plots.saving import save_figure
from llpbench.report.report_table import Heading, ReportTable, number, text

_SHOWN = ("l1", "mpiou", "likelihood")
"""Criteria shown in addition to that of the recommendation."""


def board_table(found: MethodChoice) -> ReportTable:
    """Return the board as text. `board.csv` has all numbers."""
    rows = []
    for row in found.board.to_dict("records"):
        if row["failure"]:
            rows.append((text(str(row["method"])), number(None), text("failed"), *[number(None)] * (len(_SHOWN) + 1)))
            continue
        is_reference = row["method"] == found.reference
        against = "–" if is_reference else f"{row['gain']:+.4f} [{row['low']:.4f}, {row['high']:.4f}]"
        chosen = row["method"] == found.best
        rows.append(
            (
                text(str(row["method"]), strong=chosen),
                number(row[DECIDES], 4),
                text(against),
                *(number(row[name], 3) for name in _SHOWN),
                number(row["seconds"], 1),
            )
        )
    headings = (
        Heading("method", numeric=False),
        Heading(DECIDES),
        Heading(f"against {found.reference}"),
        *(Heading(name) for name in _SHOWN),
        Heading("seconds"),
    )
    tells = "; ".join(f"{name}: {CRITERIA[name].title}" for name in (DECIDES, *_SHOWN))
    folds = plural(len(found.folds) // found.folds["method"].nunique(), "fold")
    caption = (
        f"Means over {folds} of {'later ' if found.later else ''}held-out bags ({tells}). Differences are of the first "
        "criterion; positive is better. Intervals have 95 % confidence for all differences together and are corrected "
        "for folds that share training bags (Nadeau & Bengio 2003)."
    )
    failed = found.board[found.board["failure"] != ""]
    caption += "".join(f" {name} failed: {why}" for name, why in zip(failed["method"], failed["failure"], strict=True))
    return ReportTable("choice", "Methods on held-out bags", caption, headings, tuple(rows))


def rare_table(found: MethodChoice) -> ReportTable | None:
    """The table of rare classes, None if no class is rare."""
    rows = [
        (
            text(str(row["method"]), strong=row["method"] == found.best),
            text(str(row["class"])),
            number(row["counted"], 0),
            number(row["predicted"], 1),
            number(100 * row["bags_with"], 0),
            number(100 * row["average_precision"], 0) if row["average_precision"] is not None else number(None),
        )
        for row in found.rare.astype(object).where(found.rare.notna(), None).to_dict("records")
    ]
    if not rows:
        return None
    headings = (
        Heading("method", numeric=False),
        Heading("class", numeric=False),
        *map(Heading, ("counted", "predicted", "% of bags", "average precision")),
    )
    caption = (
        "Counted and predicted: number of rows of the class in held-out bags; they agree if a method is calibrated. "
        "% of bags: bags that contain such a row. Average precision (x 100): how well a method finds these bags; by "
        "chance it is about the % of bags. Average precision of rows cannot be shown, because it needs labels."
    )
    return ReportTable("rare", "Rare classes in held-out bags", caption, headings, tuple(rows))


_TABLES = ("board.csv", "folds.csv", "bags.csv")
_RARE = "rare.csv"
_FILES = ("index.html", *_TABLES, _RARE, "held-out-shares.svg", "bags.svg", "effects.svg")


def require_own_files(out: Path) -> None:
    """Raise `LLPBenchError` if `write_choice` would replace files that it has not written, such as a report."""
    memory = out / WRITTEN
    if memory.exists() and {*_TABLES} <= {*memory.read_text(encoding="utf-8").splitlines()}:
        return
    taken = next((name for name in (*_FILES, WRITTEN) if (out / name).exists()), None)
    if taken is not None:
        raise LLPBenchError(
            f"{str(out / taken)!r} exists and was not written by llpbench choose. Choose another --out."
        )


def write_choice(found: MethodChoice, name: str, out: Path) -> Path:
    """Write page, tables and plots into a folder. Return the path of the page. Raises `LLPBenchError` on failure."""
    page = out / "index.html"
    try:
        out.mkdir(parents=True, exist_ok=True)
        for frame, file in zip((found.board, found.folds, found.bags), _TABLES, strict=True):
            replace_file(out / file, frame_as_csv(frame))
        rare = rare_table(found)
        if rare is not None:
            replace_file(out / _RARE, frame_as_csv(found.rare))
        plots = _plots(found, out)
        doubts = _doubts(found)
        warning = "" if doubts is None else doubts.warning
        tables = [board_table(found), *([] if rare is None else [rare])]
        replace_file(page, choice_page(name, found.advice, warning, _facts(found), tables, plots))
        written = [*_TABLES, *([] if rare is None else [_RARE]), *(f"{plot.name}.svg" for plot in plots)]
        forget_stale(out, [page.name, *written])
    except OSError as error:
        raise LLPBenchError(f"{str(out)!r} cannot be written: {one_line(error)}. Choose another --out.") from error
    return page


def _facts(found: MethodChoice) -> dict[str, str]:
    bags = found.bags[found.bags["method"] == found.reference].drop_duplicates("bag")
    facts = {
        "Advised": found.best,
        "Bags of known counts": f"{len(bags):,}, of {bags['rows'].min():,.0f} to {bags['rows'].max():,.0f} rows",
        "Held out": "later bags" if found.later else "random bags",
        "Time of all fits": duration(float(found.folds["seconds"].sum())),
    }
    doubts = _doubts(found)
    if doubts is not None:
        facts["Explained neither by features nor chance"] = f"{100 * doubts.unexplained:.0f} % of the variance"
        facts["Noise in effects of features"] = f"{100 * doubts.noise:.0f} % of their size"
        facts["Lowest rank correlation of the averaged models"] = f"{doubts.agreement:.2f}"
    return facts


def _doubts(found: MethodChoice) -> Doubts | None:
    return None if found.union is None else found.union.doubts_


def _plots(found: MethodChoice, out: Path) -> list[Plot]:
    bags, predicted = _shares(found)
    drawn: list[tuple[str, str, str, Callable[[], Figure]]] = [
        (
            "held-out-shares",
            "Held-out bags: predicted and known shares",
            "Each point is a held-out bag (with more than two classes, a bag and a class). Larger points have more "
            "rows. On the grey line both shares agree. If points lie along a horizontal line, nothing was learned.",
            lambda: held_out_shares(bags, predicted),
        ),
        (
            "bags",
            "Sizes and shares of bags",
            "Each point is a bag. The grey area would contain 95 % of the bags if rows were assigned at random. Bags "
            "outside it contain information.",
            lambda: sizes_and_shares(bags),
        ),
    ]
    if found.union is not None and found.union.ensemble == 1:
        effects = found.union.effects()
        drawn.append(
            (
                "effects",
                f"Strongest effects on {bags.classes[-1]}, by {found.reference}",
                "Effects of a feature's values in the model, averaged over all other features, with two posterior "
                "standard deviations. Grey: posterior variance / prior variance (1: bags contain no information).",
                lambda: effect_panels(effects, f"effects on the log odds of {bags.classes[-1]}"),
            )
        )
    plots = []
    for name, title, caption, draw in drawn:
        save_figure(draw, out / f"{name}.svg")
        plots.append(Plot(name, title, caption, (out / f"{name}.svg").read_text(encoding="utf-8")))
    return plots


def _shares(found: MethodChoice) -> tuple[BagShares, dict[str, np.ndarray]]:
    """Return the bags, and predictions of bags [bags, classes] by method, in the order of the board."""
    classes = list(dict.fromkeys(found.bags["class"]))
    by_method = {
        name: found.bags[found.bags["method"] == name].pivot(index="place", columns="class")
        for name in found.board.loc[found.board["failure"] == "", "method"]
    }
    first = by_method[found.reference]
    bags = BagShares(
        rows=first["rows"][classes[0]].to_numpy(dtype=np.int64),
        known=first["known"][classes].to_numpy(),
        classes=[str(label) for label in classes],
    )
    return bags, {name: each["predicted"][classes].to_numpy() for name, each in by_method.items()}
