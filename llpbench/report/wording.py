"""Texts shared by page, files and terminal: scores, headings, protocols and captions."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from pandas import isna

from llpbench.core.cell import NATURAL
from llpbench.core.criteria import METRICS, Metric
from llpbench.core.text import clean as clean
from llpbench.report.statistics import CONFIDENCE, FEWEST_DATASETS

if TYPE_CHECKING:
    from jinja2 import Template

HEADLINE = "auc"
"""Default test metric of leaderboards."""

NOTHING = "–"
"""Text of an unknown value."""

STALE = "stale"
"""Word for runs whose code has changed since."""

STALE_NOTE = "Made by other code"
"""Heading of notes on stale runs."""

WITHOUT_VALUE = "Without a value"
"""Heading of notes on successful runs without the metric."""

FAILED, DIFFERENT_DATA = "Failed", "Different data"
"""Other headings of notes."""

NO_RUNS = "Nothing has run yet. Start with `llpbench run`."

LEVEL = f"{CONFIDENCE:.0%}".replace("%", " %")
"""Confidence level of intervals."""


@cache
def _captions() -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(loader=PackageLoader("llpbench.report", "templates"), undefined=StrictUndefined)
    environment.globals |= {"level": LEVEL, "fewest_datasets": FEWEST_DATASETS}
    return environment.get_template("captions.j2")


def caption(name: str, metric: Metric = METRICS[HEADLINE], **facts: Any) -> str:
    """Return a block of `templates/captions.j2` on one line. `metric`: that of the board."""
    template = _captions()
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


def protocol_text(protocol: Mapping[str, Any] | None, averages: Collection[str] = ("",)) -> str:
    """Return a protocol in words: `at most 300 epochs, patience 20, 2 bags per step`.

    `averages`: those of the networks (`cell.Average`), "" for a chosen epoch. Averaged networks have their own number
    of epochs.
    """
    if protocol is None:
        return "methods without epochs"
    if "" not in averages:
        protocol = {name: value for name, value in protocol.items() if name not in ("epochs", "patience")}
    epochs = "at most {} epoch" if protocol.get("epochs") == 1 else "at most {} epochs"
    bags = "{} bag per step" if protocol.get("bags_per_step") == 1 else "{} bags per step"
    known = {"epochs": epochs, "patience": "patience {}", "bags_per_step": bags}
    named = [known[key].format(protocol[key]) for key in known if key in protocol]
    named += [f"{key} {value}" for key, value in protocol.items() if key not in known]
    fixed = sorted({int(number) for of in averages if (number := of.partition(":")[2]).isdecimal()})
    averaged = f"averaged networks: {' and '.join(map(str, fixed))} epoch{'' if fixed == [1] else 's'}"
    return ", ".join([*named, *([averaged] if fixed else [])])


def device_texts(machines: Iterable[str]) -> list[str]:
    """Return the devices of runs, such as `AMD EPYC (cpu)`, sorted. Runs that failed early have none."""
    known = (json.loads(machine)[:2] for machine in {*machines})
    return sorted({f"{name} ({device})" for name, device in known if device})
