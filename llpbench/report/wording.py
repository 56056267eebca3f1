"""Texts shared by page, files and terminal: scores, headings, protocols and captions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from pandas import isna

from llpbench.core.cell import NATURAL
from llpbench.core.criteria import CRITERIA, METRICS
from llpbench.core.text import clean as clean
from llpbench.core.text import plural
from llpbench.report.boards import FEWEST_DATASETS, HEADLINE, Board
from llpbench.report.statistics import CONFIDENCE

if TYPE_CHECKING:
    from jinja2 import Template

NOTHING = "–"
"""Text of an unknown value."""

STALE = "stale"
"""Word for runs whose code has changed since."""

STALE_NOTE = "Made by other code"
"""Heading of notes on stale runs."""

WITHOUT_VALUE = "Without a value"
"""Heading of notes on successful runs without the metric."""

NO_RUNS = "Nothing has run yet. Start with `llpbench run`."

LEVEL = f"{CONFIDENCE:.0%}".replace("%", " %")
"""Confidence level of intervals."""


@cache
def _captions() -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(loader=PackageLoader("llpbench.report", "templates"), undefined=StrictUndefined)
    environment.globals |= {"level": LEVEL, "fewest_datasets": FEWEST_DATASETS}
    return environment.get_template("captions.j2")


def caption(name: str, board: Board | None = None, **facts: Any) -> str:
    """Return a block of `templates/captions.j2` on one line. Without a board its metric is AUC."""
    template = _captions()
    metric = METRICS[HEADLINE] if board is None else board.metric
    context = template.new_context({"metric": metric, "is_auc": metric.name == HEADLINE, **facts})
    return " ".join("".join(template.blocks[name](context)).split())


def sentence(text: str) -> str:
    """Return a text with a capital and a full stop."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def summary_text(mean: float, std: float, n: int, digits: int = 2) -> str:
    """Return mean, standard deviation and number of seeds: `85.93 ± 0.52 (3)`."""
    return f"{mean:.{digits}f} ± {NOTHING if isna(std) else f'{std:.{digits}f}'} ({n:.0f})"


def seconds_text(seconds: float) -> str:
    """Return seconds with three digits: `0.06`, `6.52`, `102` or `3,480`."""
    digits = 2 if seconds < 10 else 1 if seconds < 100 else 0
    return f"{seconds:,.{digits}f}"


def title(board: Board) -> str:
    """Return the title of a board."""
    return title_of(board.criterion.name, board.bagging, has_epochs=bool(board.protocol))


def title_of(criterion: str, bagging: str, *, has_epochs: bool) -> str:
    """Return the title of a board: who may use which labels, the bags, and what chooses epochs."""
    chosen_by = CRITERIA[criterion]
    if not has_epochs:
        return f"No labels: {bags_words(bagging)}, methods without epochs"
    labels = "Validation labels (fine-grained)" if chosen_by.regime == "fine" else "No labels (coarse-grained)"
    return f"{labels}: {bags_words(bagging)}, epochs by {chosen_by.title}"


def bags_words(bagging: str) -> str:
    """Return a bagging in words: `ordered bags`, `bags by job and education`."""
    name, *options = bagging.split(":")
    keys = [option.removeprefix("by=") for option in options if option.startswith("by=")]
    number = name.removesuffix("column")
    tested = ", tested on other bags" if "split=bags" in options else ""
    if tested and name.endswith(NATURAL):
        return f"{':'.join([name, *(option for option in options if option != 'split=bags')])} bags{tested}"
    if len(keys) != 1 or number == name:
        return f"{bagging} bags"
    others = ", ".join(option for option in options if not option.startswith(("by=", "split=")))
    return f"{number}bags by {' and '.join(keys[0].split('+'))}{f' ({others})' if others else ''}{tested}"


def setting(board: Board) -> str:
    """Return protocol, encoders, number of seeds and hardware of a board."""
    several = "encoders" if len(board.encoders) > 1 else "encoder"
    encoders = f"{several} {', '.join(board.encoders)}" if board.encoders else "no encoder"
    numbers = sorted({*board.scores["expected"]}) or [0]
    seeds = plural(numbers[-1], "seed")
    if numbers[0] != numbers[-1]:
        seeds = f"{numbers[0]} to {seeds} (varies by task and method)"
    return " · ".join([protocol_text(board.protocol), encoders, seeds, *board.hardware])


def protocol_text(protocol: Mapping[str, Any] | None) -> str:
    """Return a protocol in words: `at most 300 epochs, patience 20, 2 bags per step`."""
    if protocol is None:
        return "methods without epochs"
    epochs = "at most {} epoch" if protocol.get("epochs") == 1 else "at most {} epochs"
    known = {"epochs": epochs, "patience": "patience {}", "bags_per_step": "{} bags per step"}
    named = [known[key].format(protocol[key]) for key in known if key in protocol]
    return ", ".join([*named, *(f"{key} {value}" for key, value in protocol.items() if key not in known)])


def classes_text(classes: Iterable[tuple[str, int | None]]) -> str:
    """Return what AUC means for datasets (name, classes) with more than two classes; "" if there are none."""
    several = {dataset: number for dataset, number in classes if number is not None and number > 2}
    return caption("classes", several=several)


def tasks_text(board: Board) -> str:
    """Return notes on several classes, bags of different sizes and tasks that do not count."""
    tasks = board.tasks
    unequal = next(iter(tasks["bags"][tasks["is_unequal"] & (tasks["by"] == "")]), "")
    classes = classes_text(zip(tasks["dataset"], tasks["classes"], strict=True))
    unusual = caption("unequal_bags", unequal=unequal) if unequal else ""
    return " ".join(filter(None, (classes, unusual)))


def datasets_text(board: Board, *, named: int = 0) -> str:
    """Return the number of datasets behind the ranks, with their names if they are at most `named`.

    A caption says if they are few.
    """
    datasets = board.datasets
    return caption("datasets", number=len(datasets), names=datasets if len(datasets) <= named else ())
