"""Warning about rows whose bags were not in `fit`."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from llpbench.core.bags import BoolArray
from llpbench.core.errors import LLPBenchError, LLPBenchWarning
from llpbench.core.text import plural
from llpbench.data.bag_tables import BagLabels

_MANY = 0.5
"""Share of rows without a known bag from which there is a warning."""


class UnknownBags(LLPBenchWarning):
    """At least half of the rows to predict have no bag, or a bag that was not in `fit`."""


def unknown_bags_warning(labels: BagLabels, inside: BoolArray, known: Sequence[Hashable]) -> str:
    """Return a message if at least half of the rows are not `inside` bags of `fit`; else ""."""
    strange = ~inside
    if not strange.any() or strange.mean() < _MANY:
        return ""
    examples = [labels.names[place] for place in dict.fromkeys(labels.of_row[strange].tolist()) if place >= 0][:2]
    such = f", such as {' and '.join(map(repr, examples))}" if examples else ""
    who = "all rows" if strange.all() else f"{strange.sum():,} of {plural(len(strange), 'row')}"
    none = "" if (labels.of_row[strange] >= 0).all() else ", or in no bag"
    return (
        f"{who} are in bags that were not in fit{such} (fit had {' and '.join(map(repr, known[:2]))}){none}: they are "
        "predicted from features alone."
    )


def require_same_kinds(labels: BagLabels, inside: BoolArray, known: Iterable[Hashable]) -> None:
    """Raise `LLPBenchError` if no row is `inside` a known bag, and labels are of another type than those of fit."""
    known = [*known]
    if labels.names and not inside.any() and _kinds(labels.names).isdisjoint(_kinds(known)):
        raise LLPBenchError(
            f"bag labels look like {labels.names[0]!r}, but fit saw labels like {known[0]!r}; none match. Give labels "
            "of the same type."
        )


def _kinds(names: Iterable[Hashable]) -> set[tuple[bool, ...]]:
    """Return, for each key of the labels of bags, whether it is a text."""
    return {tuple(isinstance(key, str) for key in (name if isinstance(name, tuple) else (name,))) for name in names}
