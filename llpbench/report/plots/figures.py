"""Figures of a report, the most important first."""

from __future__ import annotations

import math
import re
import textwrap
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from pandas import DataFrame, MultiIndex, Series

from llpbench.core.bags import FloatArray
from llpbench.core.cell import NATURAL
from llpbench.core.text import plural
from llpbench.report import wording as words
from llpbench.report.boards import RUN, Board, entry_label
from llpbench.report.leaderboard import comparisons
from llpbench.report.plots import layout
from llpbench.report.plots.layout import CLEAR, GREY, LONGEST, LOOKS, OPEN, WIDTH, Drawing
from llpbench.report.tabulate import Leaderboards

_MOST_LINES = 24
"""Entries that have a line with their name."""

_LONGEST = 30
"""Characters of a name beside a line."""

_MOST_DATASETS, _MOST_CURVES, _MOST_BAGGINGS = 6, 4, 4
"""Panels of bag sizes, of reliability and of proportions."""

_FEWEST = 50
"""Smallest number of test rows in a bin."""

_PREFERRED_SIZE = 256
"""Bag size that is drawn if there are several."""

_FIRST = ("ordered", "random", NATURAL)
"""Baggings that are drawn first."""

_Place = tuple[str, int | None, str, str]
"""Dataset, bag size, natural key and bagging."""

_CHARACTER = 0.067
"""Mean width of a character in inches."""

_SEVERAL_CLASSES = "; macro one-versus-rest where classes are more than two"

_TEXT = re.compile(r'[\w.]+="([^"]*)"')
"""Hyperparameter whose value is a text."""

_MOST_MARKS = 7
"""Entries in one panel."""


def _differences(board: Board, name: str) -> Iterator[Drawing]:
    """Draw a line for each compared method (`leaderboard.comparisons`): its difference from the first entry.

    The mean and its interval are also a text on the right. Significant ones are blue.
    """
    verdict = comparisons(board)
    if not verdict.leads:
        return
    closest = sorted(verdict.leads.items(), key=lambda lead: lead[1].points)[:_MOST_LINES]
    drawn = {entry: lead.times(-board.sign) for entry, lead in closest}
    worse = [entry for entry, lead in verdict.leads.items() if lead.is_significant and lead.points > 0]
    first = _labels(board)[board.ranked[0]].strip()
    names = _labels(board, longest=_LONGEST)
    figure, ax = layout.named_lines([names[entry] for entry in drawn])
    for place, (entry, gain) in enumerate(drawn.items()):
        colour, face = (CLEAR, CLEAR) if entry in worse else (OPEN, "white")
        if gain.has_interval:
            ax.plot([gain.low, gain.high], [place, place], color=colour, linewidth=1.6, zorder=2)
        ax.plot([gain.points], [place], "o", markersize=5.5, zorder=3, markerfacecolor=face, markeredgecolor=colour)
        text = str(gain).replace("-", "−")
        ax.text(1.01, place, text, transform=ax.get_yaxis_transform(), va="center")
    ax.axvline(0, color="0.3", linewidth=0.8, zorder=1)
    ax.margins(x=0.04)
    ax.set_xlabel(f"{board.metric.title} minus that of {first}, in points")
    yield _of_board(
        board,
        name,
        "differences",
        figure,
        first=first,
        bags=words.bags_words(board.bagging),
        number=len(verdict.leads),
        clear=len(worse) if verdict.is_tested else None,
        over=verdict.over,
        left_out=verdict.left_out,
        hidden=len(verdict.leads) - len(drawn),
    )


def _robustness(board: Board, name: str) -> Iterator[Drawing]:
    """Draw the mean rank of the standard deviation over seeds of each entry, with the deviation beside it."""
    ranking = board.robustness()
    drawn = ranking.head(_MOST_LINES)
    if drawn.empty:
        return
    names = _labels(board, ranking.index, longest=_LONGEST)
    first = next(iter(board.ranked), -1)
    figure, ax = layout.named_lines([names[entry] for entry in drawn.index])
    bars = ax.barh(range(len(drawn)), drawn["mean_rank"], color=CLEAR, height=0.7)
    ax.bar_label(bars, [f"± {std:.1f}" for std in drawn["std"]], padding=3)
    ax.set_xlim(0, 1.18 * drawn["mean_rank"].max())
    ax.set_xlabel("mean rank of the standard deviation")
    yield _of_board(
        board,
        name,
        "robustness",
        figure,
        least=names[ranking.index[0]],
        tied=int((ranking["rank"] == 1).sum()) - 1,
        first=names.get(first),
        place=ranking["rank"].get(first, 1),  # a constant floor has no place
        number=len(ranking),
        tasks=plural(int(drawn["tasks"].max()), "task"),
        hidden=len(ranking) - len(drawn),
    )


def _time(board: Board, name: str) -> Iterator[Drawing]:
    """Draw mean against seconds of training, with the Pareto front.

    CPU seconds are used if all runs have recorded them, since other processes do not change these.
    Entries from other machines than most are skipped, because their times are not comparable.
    """
    recorded, cpu = board.costs(), board.costs("cpu_seconds_training")
    if recorded.empty:
        return
    if by_cpu := cpu.columns.equals(recorded.columns):
        recorded = cpu
    same = [n for n in _entries_of_one_machine(board, [*recorded.columns]) if n in board.learners]
    seconds = board.by_dataset(recorded[same].groupby(level=0).mean()).mean()
    scores = board.mean().loc[same].fillna({"std": 0.0})
    front = _pareto_front(seconds, board.sign * scores["mean"])
    entries = [*dict.fromkeys([*_prominent(board, same, 3), *reversed(front)])][:_MOST_MARKS]
    if not entries:
        return
    names = _labels(board, longest=_LONGEST)
    panels = layout.panels(1, height=3.2)
    (ax,) = panels.axes
    for entry, (colour, marker) in zip(sorted(entries, key=lambda entry: float(seconds[entry])), LOOKS, strict=False):
        value, std = scores.at[entry, "mean"], scores.at[entry, "std"]
        ax.errorbar(seconds[entry], value, std, color=colour, linewidth=1, zorder=2)
        ax.plot([seconds[entry]], [value], marker, color=colour, markersize=7, zorder=3, label=names[entry])
    ax.set_xscale("log")
    ax.margins(x=0.1, y=0.1)
    ax.set_xlim(ax.get_xlim())
    drawn = [entry for entry in front if entry in entries]
    if drawn:
        ends = [*seconds[drawn], ax.get_xlim()[1]]
        ax.step(ends, [*scores["mean"][drawn], scores["mean"][drawn[-1]]], where="post", color="0.45", lw=1, zorder=1)
    decades = np.log10(ax.get_xlim()[1] / ax.get_xlim()[0])
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if decades < 2 else (1.0,), numticks=9))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xlabel(f"training time of a run ({'CPU ' if by_cpu else ''}seconds)")
    ax.set_ylabel(f"mean test {board.metric.title} × 100")
    _legend(panels.figure)
    leader = next((entry for entry in board.ranked if entry in entries), entries[0])
    yield _of_board(
        board,
        name,
        "time",
        panels.figure,
        leader=names[leader],
        score=scores.at[leader, "mean"],
        seconds=words.seconds_text(seconds[leader]),
        clock="CPU seconds of the process" if by_cpu else "Seconds",
    )


def _pareto_front(cost: Series, value: Series) -> list[Any]:
    """Return the labels of methods that no other method beats, cheapest first.

    One method beats another if it costs no more, is no worse, and is better in one of both.
    """
    points = DataFrame({"cost": cost, "value": value}).sort_values(["cost", "value"], ascending=[True, False])
    best = points["value"].cummax()
    is_first = (points["value"] > best.shift(fill_value=-np.inf)) | points.duplicated()
    return [*points.index[is_first & (points["value"] == best)]]


def _entries_of_one_machine(board: Board, entries: list[int]) -> list[int]:
    """Return the entries whose runs that count are from the machine (or machines) of most entries."""
    counted = board.runs[MultiIndex.from_frame(board.runs[RUN]).isin(board.counting)]
    machines = counted.groupby("entry")["machine"].agg(lambda names: str(sorted({*names}))).loc[entries]
    return [entry for entry in entries if machines[entry] == machines.mode().iat[0]]


def _bag_sizes(board: Board, name: str) -> Iterator[Drawing]:
    """Draw leader, best network and floor on datasets with several bag sizes. They need more than half of the tasks."""
    sized = board.tasks[board.tasks["bag_size"].notna()]
    sizes = {dataset: [*tasks.index] for dataset, tasks in sized.groupby("dataset", sort=False) if len(tasks) > 1}
    drawn = dict(sorted(sizes.items(), key=lambda of: -len(of[1]))[:_MOST_DATASETS])
    tasks = [task for of_dataset in drawn.values() for task in of_dataset]
    means, stds = (board.scores[part].unstack("entry") for part in ("mean", "std"))
    lacking = means.loc[tasks, board.learners].isna().sum()
    varied = lacking.index[2 * lacking < len(tasks)].difference(board.constants, sort=False)
    entries = _prominent(board, varied, len(LOOKS[:3]))
    if not entries:
        return
    names = _labels(board)
    panels = layout.panels(len(drawn), height=1.7, below=0.2)
    for ax, (dataset, of_dataset) in zip(panels.axes, drawn.items(), strict=True):
        for entry, (colour, marker) in zip(entries, LOOKS, strict=False):
            points = means.loc[of_dataset, entry].reset_index(drop=True).dropna()
            std = stds.loc[of_dataset, entry].reset_index(drop=True)[points.index].fillna(0)
            for x, value in points.items():
                ax.vlines(x, value - std[x], value + std[x], color=colour, linewidth=1)
            ax.plot(points.index, points, color=colour, marker=marker, label=names[entry])
        texts, step = board.tasks["bags"][of_dataset], -(-len(of_dataset) // 3)
        ax.set_xticks(range(len(texts)), [text if not n % step else "" for n, text in enumerate(texts)])
        ax.set_xlim(-0.3, len(texts) - 0.7)
        ax.yaxis.grid(visible=True)
        ax.set_title(layout.shown(dataset, 26))
    panels.label("rows of a bag", f"test {board.metric.title} × 100")
    _legend(panels.figure)
    leader = next((entry for entry in board.ranked if entry in entries), entries[0])
    small, large = sized["bag_size"].min(), sized["bag_size"].max()
    by_size = sized.assign(score=means[leader]).pivot_table("score", "dataset", "bag_size")
    ends = by_size.reindex(columns=[small, large])
    losses = (ends[small] - ends[large]).dropna()
    yield _of_board(
        board,
        name,
        "bag-size",
        panels.figure,
        first=names[leader],
        lost=board.sign * losses.mean() if len(losses) else None,
        small=f"{int(small):,}",
        large=f"{int(large):,}",
        number=len(losses),
    )


def _reliability(board: Board, name: str) -> Iterator[Drawing]:
    """Draw a panel for each entry and a line for each dataset. Seeds and bag sizes are pooled."""
    curves = _curves(board)
    known = curves.index.unique(0).difference(board.constants)  # which are calibrated, and without a curve
    drawn = [entry for entry in board.learners if entry in known]
    entries = _prominent(board, drawn, _MOST_CURVES)
    if not entries:
        return
    panels = layout.panels(len(entries), height=1.9, below=0.1, share_y=True)
    names, datasets = _labels(board, longest=_LONGEST), board.tasks["dataset"].unique()
    for ax, entry in zip(panels.axes, entries, strict=True):
        ax.plot([0, 1], [0, 1], color=GREY, linewidth=1)
        for (colour, marker), dataset in zip(LOOKS, datasets, strict=False):
            if (entry, dataset) in curves.index.droplevel(2):
                curve = curves.loc[entry, dataset]
                (line,) = ax.plot(curve["predicted"], curve["true"], color=colour, label=layout.shown(dataset))
                line.set(marker=marker, markersize=2.5, linewidth=1.2, clip_on=False)
        ax.set_title(names[entry])
        ax.set(xlim=(0, 1), ylim=(0, 1), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
    panels.label("predicted probability", "observed frequency")
    _legend(panels.figure)
    errors = board.mean("ece").reindex(entries)["mean"].dropna().sort_values()
    named = [(names[entry], error) for entry, error in errors.items()]
    yield _of_board(board, name, "reliability", panels.figure, errors=named)


def _curves(board: Board) -> DataFrame:
    """Return predicted probability and observed frequency of ten bins with enough rows, by entry, dataset and bin."""
    names, parts = ["rows", "predicted", "true"], []
    for entry, dataset, run in zip(*(board.runs[name] for name in ("entry", "dataset", "run")), strict=True):
        result: Mapping[str, Any] = board.records[run]["results"].get(board.criterion.name) or {}
        parts += [(entry, dataset, *part) for part in result.get("reliability", [])]
    bins = DataFrame(parts, columns=["entry", "dataset", *names]).astype(dict.fromkeys(names, float))
    bins["bin"] = (bins["predicted"] * 10).astype(int).clip(upper=9)
    bins[["predicted", "true"]] = bins[["predicted", "true"]].mul(bins["rows"], axis="index")
    sums = bins.groupby(["entry", "dataset", "bin"])[names].sum()
    sums = sums[sums["rows"] >= _FEWEST]
    return sums[["predicted", "true"]].div(sums["rows"], axis="index")


def proportions(leaderboards: Leaderboards) -> Iterator[Drawing]:
    """Draw a panel for each bagging of the dataset with most baggings, at one bag size."""
    from seaborn import histplot  # a second of imports

    histograms: dict[_Place, dict[int, FloatArray]] = defaultdict(dict)
    titles: dict[_Place, str] = {}
    for board in leaderboards.boards:
        places: dict[int, _Place] = {}
        for number, task in board.tasks.iterrows():
            places[number] = place = task["dataset"], task["bag_size"], task["by"], board.bagging
            name = f"bags {task['bags']}" if task["by"] else f"{words.bags_words(board.bagging)}, {task['bags']} rows"
            titles[place] = words.clean(name)
        for run, number, seed in zip(*(board.runs[name] for name in ("run", "task", "seed")), strict=True):
            bins = (board.records[run]["bags"].get("histograms") or [[]])[-1]
            if sum(bins):  # all runs of a seed have the same bags
                histograms[places[number]].setdefault(seed, np.array(bins) / sum(bins))
    drawn = _chosen_places(histograms)
    if not drawn:
        return
    means = [np.mean([*histograms[place].values()], axis=0) for place in drawn]
    panels = layout.panels(len(drawn), height=2.2, below=0.2, share_y=True)
    for ax, place, shares, (colour, _) in zip(panels.axes, drawn, means, LOOKS, strict=False):
        edges = np.linspace(0, 1, len(shares) + 1)
        middles = (edges[1:] + edges[:-1]) / 2
        histplot(x=middles, weights=100 * shares, bins=[*edges], element="step", color=colour, alpha=0.25, ax=ax)
        ax.set(xlabel="", ylabel="")
        ax.set_title("\n".join(textwrap.wrap(titles[place], 30, max_lines=2, placeholder=" …")))
        ax.set(xlim=(0, 1), xticks=[0, 0.5, 1], xticklabels=["0", "0.5", "1"])
    panels.axes[0].set_ylim(0, 105 * max(shares.max() for shares in means))
    panels.label("proportion of the positive class", "% of bags")
    yield Drawing(
        name="proportions",
        title=words.caption("title_proportions"),
        setting=words.clean(drawn[0][0]),
        caption=words.caption("plot_proportions"),
        figure=panels.figure,
    )


def _chosen_places(places: Iterable[_Place]) -> list[_Place]:
    """Return one bagging of each kind on one dataset, ordered and random bags first."""

    def order(place: _Place) -> tuple[Any, ...]:
        dataset, size, _, bagging = place
        return dataset, size != _PREFERRED_SIZE, size or 0, len(bagging), bagging

    kinds: dict[str, dict[str, _Place]] = defaultdict(dict)
    for place in sorted(places, key=order):
        kinds[place[0]].setdefault(place[-1].partition(":")[0], place)
    most = max(kinds.values(), key=len, default={})
    chosen = sorted(most, key=lambda kind: (_FIRST.index(kind) if kind in _FIRST else len(_FIRST), kind))
    return [most[kind] for kind in chosen[:_MOST_BAGGINGS]]


def _labels(board: Board, entries: Iterable[int] | None = None, longest: int = LONGEST) -> dict[int, str]:
    """Return distinct labels by entry, without encoders and names of hyperparameters where these are not needed."""
    places = [*board.entries.index] if entries is None else [*entries]
    named = board.entries.loc[places]
    short = [*map(entry_label, named["method"], [None] * len(named), named["pretraining"], named["configuration"])]
    needs_encoder = named["encoder"].nunique() > 1 or len(set(short)) < len(short)
    names = named["label"].tolist() if needs_encoder else short
    brief = [_TEXT.sub(r"\1", name) for name in names]
    is_distinct = len(set(brief)) == len(set(names))
    cut = [layout.shown(name, longest) for name in (brief if is_distinct else names)]
    numbered = [f"{name} ({cut[:n].count(name) + 1})" if cut.count(name) > 1 else name for n, name in enumerate(cut)]
    return dict(zip(places, numbered, strict=True))


def _prominent(board: Board, among: Iterable[int], most: int) -> list[int]:
    """Return the most interesting entries: the leader, the best network, a floor, then the next best.

    Entries are in the order of the board, without tuned ones. `among`: entries that can be drawn.
    """
    candidates = [n for n in among if not board.entries.at[n, "is_tuned"]]
    ranked = [n for n in board.ranked if n in candidates] or candidates
    floors = [n for n in candidates if board.entries.at[n, "role"] == "floor"]
    networks = [n for n in board.networks if n in candidates]
    return sorted([*dict.fromkeys([*ranked[:1], *networks[:1], *floors[:1], *ranked, *candidates])][:most])


def _legend(figure: Figure) -> None:
    """Name the lines and marks of all panels once, below them."""
    marks = {str(mark.get_label()): mark for ax in figure.axes for mark in ax.lines}
    marks = {name: mark for name, mark in marks.items() if not name.startswith("_")}
    across = min(len(marks), int(WIDTH / (_CHARACTER * max(map(len, marks)) + 0.5)))
    figure.set_figheight(figure.get_figheight() + 0.2 * math.ceil(len(marks) / across))
    figure.legend([*marks.values()], [*marks], loc="outside lower center", ncols=across)


def _of_board(board: Board, name: str, kind: str, figure: Figure, **facts: Any) -> Drawing:
    """Return the plot of a board. `facts` are for its title and caption in `templates/captions.j2`."""
    epochs = f"epochs chosen by {board.criterion.title}, {board.training}"
    setting = f"{words.bags_words(board.bagging)}; {epochs if board.protocol else 'methods without epochs'}"
    has_several = (board.tasks["classes"].fillna(2) > 2).any()
    metric = board.metric
    title, caption = (words.caption(f"{part}_{kind.replace('-', '_')}", metric, **facts) for part in ("title", "plot"))
    return Drawing(
        name=f"{kind}-{name}",
        title=title,
        setting=f"{setting}{_SEVERAL_CLASSES if has_several else ''}",
        caption=caption,
        figure=figure,
    )


KINDS: Mapping[str, Callable[[Board, str], Iterator[Drawing]]] = {
    "differences": _differences,
    "robustness": _robustness,
    "time": _time,
    "bag-size": _bag_sizes,
    "reliability": _reliability,
}
"""Figures of a board by name."""


def gallery(leaderboards: Leaderboards) -> Iterator[Drawing]:
    """Yield the figures of a report: all of the first board, the differences of the second bagging, the proportions.

    Each is drawn when it is requested.
    """
    boards = leaderboards.headline_boards()
    for kind, draw in KINDS.items():
        for board in boards[: 2 if kind == "differences" else 1]:
            yield from draw(board, leaderboards.names[board])
    yield from proportions(leaderboards)
