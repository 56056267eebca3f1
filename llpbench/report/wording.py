"""The words that page, files and terminal share: scores, headings and the protocol in plain language."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from llpbench.core.cell import NATURAL
from llpbench.core.criteria import METRICS
from llpbench.core.text import clean as clean
from llpbench.core.text import plural
from llpbench.report.boards import (
    FEW_BAGS,
    FEWEST_BAGS,
    FEWEST_DATASETS,
    HEADLINE,
    Board,
    Column,
    Origin,
    Row,
    Score,
    Summary,
)
from llpbench.report.statistics import CONFIDENCE

if TYPE_CHECKING:
    from jinja2 import Template

NOTHING = "–"

STALE = "stale"
"""marks runs that were made by other code than there is now"""

DIFFERENCES_NOTE = "How training bags differ"

MOST_COMMITS = 3
"""that are named"""

STALE_NOTE = "Made by other code"
"""what notes on them begin with"""

NO_RUNS = "Nothing has run yet. Start with `llpbench run`."

LEVEL = f"{CONFIDENCE:.0%}".replace("%", " %")
"""the confidence level of intervals, in words"""


@cache
def _captions() -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(loader=PackageLoader("llpbench.report", "templates"), undefined=StrictUndefined)
    environment.globals["level"] = LEVEL
    return environment.get_template("captions.j2")


def caption(name: str, board: Board | None = None, **facts: Any) -> str:
    """A block of `templates/captions.j2` on one line; its metric is that of the board, or AUC."""
    template = _captions()
    metric = METRICS[HEADLINE] if board is None else board.metric
    shown = {
        "metric": metric.title,
        "unit": " times 100" if metric.percent else "",
        "chance": " (50: chance)" if metric.name == HEADLINE else "",
    }
    context = template.new_context({**shown, **facts})
    return " ".join("".join(template.blocks[name](context)).split())


def lowered(text: str) -> str:
    """A title inside a sentence."""
    return text[:1].lower() + text[1:]


def sentence(text: str) -> str:
    """Text that begins with a capital and ends with a full stop."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def summary_text(summary: Summary, digits: int = 2) -> str:
    """`85.93 ± 0.52 (3)`: never a mean without its spread and number of seeds."""
    spread = NOTHING if summary.std is None else f"{summary.std:.{digits}f}"
    return f"{summary.mean:.{digits}f} ± {spread} ({summary.n})"


def score_lines(score: Score) -> list[str]:
    """Return the lines of a score: the mean, or that there is none, then the missing runs."""
    if score.failures and len(score.failures) == score.expected:
        return ["failed", STALE] if score.stale else ["failed"]
    headline = score.headline
    if score.cell is None or not (headline or score.failures or score.undefined):
        return [NOTHING]
    lacks = {"failed": score.failures, "missing": score.missing, "undefined": score.undefined, STALE: score.stale}
    lacking = [f"{len(seeds)}/{score.expected} {what}" for what, seeds in lacks.items() if seeds]
    return [summary_text(headline) if headline else NOTHING, *lacking]


def rank_text(row: Row) -> str:
    """The rank, or why there is none."""
    return str(row.rank) if row.rank is not None else row.mark if row.contender.role == "ceiling" else NOTHING


def method_text(row: Row) -> str:
    """The method, and whether it is the floor."""
    return row.contender.method + (f" ({row.mark})" if row.mark == "floor" else "")


def interval_text(value: float, interval: tuple[float, float] | None, digits: int = 1, sign: str = "") -> str:
    """`+1.9 [-3.2, 7.0]`."""
    known = "" if interval is None else f" [{interval[0]:.{digits}f}, {interval[1]:.{digits}f}]"
    return f"{value:{sign}.{digits}f}{known}"


def seconds_text(seconds: float) -> str:
    """Three digits, `0.06`, `6.52`, `102` or `3,480`; no power of ten."""
    digits = 2 if seconds < 10 else 1 if seconds < 100 else 0
    return f"{seconds:,.{digits}f}"


def title(board: Board) -> str:
    """Title of a board; methods without epochs have their own boards on data where nothing else has run."""
    alone = "" if board.protocol else ", methods without epochs"
    regime = board.criterion.regime.capitalize()
    return f"{regime}-grained, {bags_words(board.bagging)}{alone}, selected by {board.criterion.title}"


def bags_words(bagging: str) -> str:
    """Kind of bags: `ordered bags`, `bags by job and education`."""
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
    """What else two boards must share to be comparable: protocol, encoders, seeds, hardware."""
    encoders = f"encoder {', '.join(board.encoders)}" if board.encoders else "no encoder"
    numbers = sorted({score.expected for row in board.rows for score in row.scores}) or [0]
    seeds = plural(numbers[-1], "seed")
    if numbers[0] != numbers[-1]:
        seeds = f"{numbers[0]} to {seeds} (varies by column and method)"
    return " · ".join([protocol_text(board.protocol), encoders, seeds, *board.hardware])


def protocol_text(protocol: Mapping[str, Any] | None) -> str:
    """A protocol in a few words, e.g. `at most 300 epochs, patience 20, 2 bags a step`."""
    if protocol is None:
        return "methods without epochs"
    known = {"epochs": "at most {} epochs", "patience": "patience {}", "bags_per_step": "{} bags a step"}
    named = [known[key].format(protocol[key]) for key in known if key in protocol]
    return ", ".join([*named, *(f"{key} {value}" for key, value in protocol.items() if key not in known)])


def code_text(code: Sequence[str], most: int | None = None) -> str:
    """Versions of llpbench, each with its commits, or where there are more than `most` with their number."""
    commits: dict[str, list[str]] = {}
    for each in code:
        version, _, commit = each.removesuffix(")").partition(" (")
        commits.setdefault(version, []).extend([commit] if commit else [])
    named = {
        version: f"{len(own)} commits" if most is not None and len(own) > most else ", ".join(own)
        for version, own in commits.items()
    }
    return ", ".join(f"{version} ({own})" if own else version for version, own in named.items())


def origin_text(origin: Origin) -> str:
    """Number of runs, code, libraries and hardware."""
    runs = plural(origin.runs, "run") + (f" ({origin.failed:,} failed)" if origin.failed else "")
    code = code_text(origin.code, MOST_COMMITS)
    return f"{runs} by llpbench {code} with {', '.join(origin.libraries)}. Hardware: {'; '.join(origin.hardware)}."


def bags_text(bag_size: int) -> str:
    """`bags of 256`; of a bagging without a size `bags of their own sizes`."""
    return f"bags of {bag_size}" if bag_size else "bags of their own sizes"


def sizes_text(columns: Sequence[Column]) -> str:
    """Sentence that explains numbers like `1–9–11,660` in headings; "" where all bags of each column are equal."""
    unequal = next((column.bags for column in columns if column.unequal and not column.by), None)
    return "" if unequal is None else f"Unequal bags: {unequal} are the fewest, median and most rows of a training bag."


def classes_text(classes: Iterable[tuple[str, int | None]]) -> str:
    """Explanation of AUC for datasets (name, classes) with more than two classes, as a sentence; "" where none has."""
    several = {dataset: number for dataset, number in classes if number is not None and number > 2}
    named = ", ".join(f"{dataset} {number:,}" for dataset, number in several.items())
    meant = "AUC is macro one-versus-rest, an unweighted mean over classes"
    return f"More than two classes: {named}; {meant}." if several else ""


def columns_text(columns: Sequence[Column]) -> str:
    """Notes on unusual columns: several classes, unequal bags, or columns that do not count."""
    few = (
        ""
        if all(column.counts for column in columns)
        else f"{FEW_BAGS}: fewer than {FEWEST_BAGS} validation bags, too few to choose an epoch; in no mean or rank."
    )
    return " ".join(
        filter(None, (classes_text((each.dataset, each.classes) for each in columns), sizes_text(columns), few))
    )


def datasets_text(number: int) -> str:
    """Number of datasets behind a rank, as a sentence."""
    if number == 0:
        return "No column counts, so nothing is ranked."
    if number == 1:
        return "Only one dataset: ranks and tests are over its seeds and do not generalise."
    if number < FEWEST_DATASETS:
        return f"{number} datasets: too few to say how methods rank on others."
    return f"{number} datasets."


def bags_note(board: Board) -> str:
    """Notes on a board's bags: whether test rows come from new bags, and notes on its columns."""
    own = not any(column.bag_size for column in board.columns)
    new = "split=bags" in board.bagging.split(":")
    seen = {
        True: "New bags: no row of a validation or test bag was seen in training.",
        False: "Validation and test rows are of the same bags as training rows.",
    }
    return " ".join(filter(None, (seen[new] if own else "", columns_text(board.columns))))


def trials_text(spec: Mapping[str, Any]) -> str:
    """`50 trials`, with the sampler if it is not the default."""
    return plural(spec["trials"], "trial") + ("" if spec["sampler"] == "tpe" else f", {spec['sampler']}")


def range_text(space: Mapping[str, Any]) -> str:
    """`0.0001–0.01 log`, or `64|128`: what is searched of a hyperparameter, and where alone it is."""
    if "choices" in space:
        text = "|".join(map(str, space["choices"]))
    else:
        given = (space.get("low", NOTHING), space.get("high", NOTHING))
        ends = (f"{end:g}" if isinstance(end, int | float) else str(end) for end in given)
        text = f"{'–'.join(ends)}{' log' if space.get('log') else ''}"
    where = " and ".join(f"{name} {'|'.join(map(str, values))}" for name, values in space.get("when", {}).items())
    return f"{text} where {where}" if where else text
