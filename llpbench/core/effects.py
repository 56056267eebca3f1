"""Effects of single features in a fitted model, and their uncertainty.

The effect of a feature is the model's output at a value of the feature, averaged over all other features, minus its
mean over rows. The features are treated as independent, with their distributions in training. This is the main effect
of a functional analysis of variance: the part of a pair's effect that depends on only one of its features counts as an
effect of that feature. An effect need not be true of the data: if a feature hardly varies between bags, its effect is
that of the prior. `undetermined` shows this.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from llpbench.core.bags import FloatArray

if TYPE_CHECKING:
    from pandas import DataFrame

Scale = Literal["log odds", "share"]
"""unit in which effects add up: log odds of a class against the others, or its probability"""


@dataclass(frozen=True, kw_only=True, eq=False)
class FeatureEffect:
    """The effect of one feature on one class, with one value per bin."""

    feature: int
    """position among the features; numeric features come first"""
    name: str
    scale: Scale
    edges: FloatArray | None
    """[bins - 1] ascending boundaries between the bins of a number; None for a category"""
    codes: tuple[tuple[int, ...], ...] | None
    """[bins] codes of a category that share each bin, the most frequent first; None for a number"""
    categories: tuple[str, ...] | None
    """[bins] names of the categories in each bin"""
    values: FloatArray
    """[bins] values in the order of `edges` or `codes`; numbers may have one more value, for missing numbers"""
    std: FloatArray
    """[bins] posterior standard deviation of each value"""
    weights: FloatArray
    """[bins] fraction of the training rows in each bin; the weighted mean of the values is 0"""
    undetermined: float
    """mean posterior variance of the values divided by their prior variance; 1 if the bags were uninformative"""
    label: Hashable = None
    """name of the class; None if it has no name"""

    def __repr__(self) -> str:
        return f"<effect of {self.name} on the {self.outcome}: importance {self.importance:.2f}>"

    def _repr_html_(self) -> str:
        """Return a table of the bins for a notebook."""
        from pandas import DataFrame

        bins = {
            "bin": [self.bin_text(place) for place in range(len(self.values))],
            "value": [f"{value:+.2f} ± {std:.2f}" for value, std in zip(self.values, self.std, strict=True)],
            "share of rows": [f"{weight:.1%}" for weight in self.weights],
        }
        return f"<p>{escape(repr(self)[1:-1])}</p>{DataFrame(bins).to_html(index=False)}"

    @property
    def outcome(self) -> str:
        """Unit and class of the effect, such as `log odds of 'yes'`."""
        return self.scale if self.label is None else f"{self.scale} of {self.label!r}"

    @property
    def importance(self) -> float:
        """Standard deviation of the effect over the training rows."""
        return float(np.sqrt(self.weights @ self.values**2))

    @property
    def missing(self) -> bool:
        """Whether the last value belongs to missing numbers."""
        return self.edges is not None and len(self.values) == len(self.edges) + 2

    def bin_text(self, place: int) -> str:
        """Return the values of a feature in a bin: `< 20`, `20 to 23`, `>= 63`, `missing`, or its categories."""
        if self.edges is None:
            return "" if self.categories is None else self.categories[place]
        edges = _edge_texts(self.edges.tolist())
        if place > len(edges):
            return "missing"
        if not edges:
            return "any"
        if place in (0, len(edges)):
            return f"< {edges[0]}" if place == 0 else f">= {edges[-1]}"
        return f"{edges[place - 1]} to {edges[place]}"


class FeatureEffects(list[FeatureEffect]):
    """Effects of several features on a class, shown as a short table."""

    def strongest(self, most: int) -> FeatureEffects:
        """Return the `most` most important effects, in descending order."""
        return FeatureEffects(sorted(self, key=lambda effect: -effect.importance)[:most])

    @property
    def frame(self) -> DataFrame:
        """Return a row per feature: `importance`, `undetermined`, and `lowest` and `highest` values with their bins."""
        from pandas import DataFrame

        ends = [(effect, int(effect.values.argmin()), int(effect.values.argmax())) for effect in self]
        columns: dict[str, list[Any]] = {
            "feature": [effect.name for effect in self],
            "importance": [effect.importance for effect in self],
            "undetermined": [effect.undetermined for effect in self],
            "lowest": [float(effect.values[low]) for effect, low, _ in ends],
            "lowest at": [effect.bin_text(low) for effect, low, _ in ends],
            "highest": [float(effect.values[high]) for effect, _, high in ends],
            "highest at": [effect.bin_text(high) for effect, _, high in ends],
        }
        return DataFrame(columns)

    def __repr__(self) -> str:
        if not self:
            return "[]"
        return f"{self._title}\n{self.frame.to_string(index=False, float_format='{:.2f}'.format)}"

    def _repr_html_(self) -> str:
        return f"<p>{escape(self._title)}</p>{self.frame.to_html(index=False, float_format='{:.2f}'.format)}"

    @property
    def _title(self) -> str:
        """Title of the table, with each outcome once."""
        return f"effects on the {', '.join(dict.fromkeys(each.outcome for each in self))}" if self else "no effects"


def _edge_texts(edges: Sequence[float]) -> list[str]:
    """Return edges such as `0.25`, `7318`, `67,830`: four digits, or more if neighbours would be equal."""
    for digits in range(4, 10):
        rounded = [float(f"{edge:.{digits}g}") for edge in edges]
        texts = [f"{edge:{',' if abs(edge) >= 10_000 else ''}.9g}" for edge in rounded]
        if len(set(texts)) == len(set(edges)):
            break
    return texts
