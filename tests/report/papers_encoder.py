"""Networks with SAINT, the paper's encoder, beside the same with an MLP and what the paper prints: README's table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from statistics import fmean, stdev
from typing import NamedTuple

from scipy.stats import kendalltau

from llpbench.core.record import Record
from llpbench.core.studies import STUDIES
from llpbench.report.reference import reference

STUDY, PRETRAINING = STUDIES["fine-grained"], STUDIES["pretraining"]
PAPERS = {line.fixed["method"]: line for line in STUDY.lines}
"""the paper's methods, in its order"""
BAG_SIZE, SEEDS = 256, 3
PRECISIONS = {"mlp": "float32", "saint": "bfloat16"}
"""in which each encoder was run"""


class Line(NamedTuple):
    """A method, pretrained or not."""

    method: str
    pretraining: str
    role: str
    scores: dict[str, dict[str, list[float]]]
    """test AUC x 100 of the first seeds, by encoder and dataset"""

    @property
    def name(self) -> str:
        """As README has it."""
        of = f" ({self.role})" if self.role else ""
        return f"{self.method}{of}" + ("" if self.pretraining == "none" else f", `{self.pretraining}`")

    def has(self, dataset: str) -> bool:
        """Whether it was run with both encoders."""
        return all(dataset in scores for scores in self.scores.values())


class Networks:
    """The runs of the published journal in ordered bags of 256, default configurations alone."""

    def __init__(self, runs: Iterable[Record], protocol: object) -> None:
        """`protocol`: how long they were trained."""
        found: dict[tuple[str, str], Line] = {}
        by_seed: dict[tuple[str, str, str, str], dict[int, float]] = {}
        self.codes: dict[str, str] = {}
        """the paper's, by dataset"""
        self.best_first: dict[str, list[bool]] = {}
        """of each run with SAINT, by dataset: whether no epoch surpassed the first"""
        self.minutes: list[float] = []
        """of each run with SAINT, without pretraining"""
        for run in runs:
            spec = run["spec"]
            usual = (spec["bagging"], spec["bag_size"], spec["protocol"]) == ("ordered", BAG_SIZE, protocol)
            plain = not run["method"]["changed"] and "max_bags" not in spec and "ensemble" not in spec
            if usual and plain and PRECISIONS.get(spec["encoder"]) == spec.get("precision", "float32"):
                key = spec["method"], spec["pretraining"]
                found.setdefault(key, Line(*key, run["method"]["role"], {encoder: {} for encoder in PRECISIONS}))
                auc = run["results"]["auc"]["test"]["auc"]
                assert auc is not None
                by_seed.setdefault((*key, spec["encoder"], spec["dataset"]), {})[run["seed"]] = 100 * auc
                if spec["encoder"] == "saint":
                    self.codes[spec["dataset"]] = run["dataset"]["code"]
                    self.minutes.append(run["times"]["total"] / 60)
                    first = run["results"]["auc"]["epoch"] == 0
                    self.best_first.setdefault(spec["dataset"], []).append(first)
        for (method, pretraining, encoder, dataset), values in by_seed.items():
            if {*range(SEEDS)} <= values.keys():
                found[method, pretraining].scores[encoder][dataset] = [values[seed] for seed in range(SEEDS)]
        with_saint = [line for line in found.values() if line.scores["saint"]]
        self.datasets = [name for name in self.codes if any(line.has(name) for line in with_saint)]
        order = ["supervised", "bag-soft-label", *PAPERS]
        self.lines = sorted(with_saint, key=lambda line: (order.index(line.method), line.pretraining))
        """what is trained on labels of rows, the floor, the methods in the paper's order"""

    def tables(self) -> str:
        """Scores, then orders of methods."""
        cells = [cell for dataset in self.datasets for cell in (f"{dataset}: MLP", "SAINT", "paper")]
        scores = [f"| ordered bags of {BAG_SIZE} | {' | '.join(cells)} |", f"| --- |{' ---: |' * len(cells)}"]
        orders = [text for dataset in self.datasets for text, _ in self.orders(dataset)]
        return "\n".join([*scores, *map(self.text, self.lines), "", "| | test AUC |", "| --- | --- |", *orders])

    def text(self, line: Line) -> str:
        """A line of the table."""
        cells = []
        for dataset in self.datasets:
            for scores in line.scores.values():
                own = scores.get(dataset)
                cells.append("–" if own is None else f"{fmean(own):.1f} ± {stdev(own):.1f}")
            printed = self._papers(line, dataset)
            std = printed and printed[1]
            cells.append("–" if printed is None else f"{printed[0]:.1f}" + ("" if std is None else f" ± {std:.1f}"))
        return f"| {line.name} | {' | '.join(cells)} |"

    def orders(self, dataset: str) -> Iterator[tuple[str, str]]:
        """Lines of the second table, and their numbers before they are rounded: methods with either encoder, the best
        first, without those that are trained on labels of rows; then SAINT's means minus the paper's."""
        ranked = [line for line in self.lines if line.role != "ceiling" and line.has(dataset)]
        means = {encoder: [fmean(line.scores[encoder][dataset]) for line in ranked] for encoder in PRECISIONS}
        tau = float(kendalltau(*means.values()).statistic)
        for encoder, what in (("mlp", "MLP"), ("saint", f"SAINT (Kendall's τ {_signed(tau, '')} to the MLP's)")):
            order = sorted(zip(means[encoder], (line.name for line in ranked), strict=True), reverse=True)
            told, exact = (", ".join(f"{name} {mean:.{digits}f}" for mean, name in order) for digits in (1, 3))
            yield f"| {dataset}: {what}, the best first | {told} |", f"{exact}; {tau:.3f}"
        above = [*self._above_paper(dataset)]
        told = ", ".join(f"{name} {_signed(by)}{' ⚑' * beyond}" for name, by, beyond in above)
        exact = ", ".join(f"{name} {by:.3f}" for name, by, _ in above)
        yield f"| {dataset}: SAINT minus the paper | {told} |", exact

    def _above_paper(self, dataset: str) -> Iterator[tuple[str, float, bool]]:
        """Of each line that the paper has: SAINT's mean minus the paper's, whether beyond two standard deviations."""
        for line in self.lines:
            own, printed = line.scores["saint"].get(dataset), self._papers(line, dataset)
            if own is not None and printed is not None:
                difference = round(fmean(own), 2) - printed[0]
                yield line.name, difference, abs(difference) > 2 * max(stdev(own), printed[1] or 0.0)

    def _papers(self, line: Line, dataset: str) -> tuple[float, float | None] | None:
        """What the paper prints of this pretraining: with one in its table of pretraining, which has no standard
        deviations (its main table has the best of each dataset), without first in its main table."""
        for study in (STUDY, PRETRAINING) if line.pretraining == "none" else (PRETRAINING,):
            for papers in study.lines:
                if (papers.fixed["method"], papers.pretrainings) == (line.method, (line.pretraining,)):
                    labels = dict(zip(study.factors, papers.labels, strict=True))
                    return reference(study.reference).find(labels, self.codes[dataset])
        return None


def _signed(value: float, plus: str = "+") -> str:
    return f"{value:{plus}z.1f}".replace("-", "−")
