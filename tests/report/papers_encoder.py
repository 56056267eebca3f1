"""Networks with SAINT, the paper's encoder, beside the same with an MLP and what the paper prints: README's table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import fmean, stdev
from typing import NamedTuple

from scipy.stats import kendalltau

from llpbench.core.record import Record
from llpbench.report.reference import rows

BAG_SIZE, SEEDS = 256, 3
PRECISIONS = {"mlp": "float32", "saint": "bfloat16"}
"""in which each encoder was run"""
CODES = {"credit": "CR", "electricity": "EL", "california": "CA"}
"""the paper's, of the datasets that may be shown, in this order"""
LABELS = ("supervised", "dllp", "llp-vat", "selfclr-llp", "tabllp-dec", "tabllp-pse", "tabllp-self", "tabllp-bdc")
"""the paper's methods that have an encoder, in its order"""
PRETRAINED = {"tabllp-bdc": "self+bag"}
"""by the paper; the others are not"""


class Settled(NamedTuple):
    """A run whose criterion settled before it had learned anything."""

    test: float
    """AUC x 100"""
    epoch: int
    later: float
    """best AUC x 100 of the validation rows in any epoch"""


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
        self.settled: list[Settled] = []
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
                    self.minutes.append(run["times"]["total"] / 60)
                    if (epoch := run["results"]["auc"]["epoch"]) == 0:
                        curve = [value for value in run["curves"]["auc"] if value is not None]
                        self.settled.append(Settled(100 * auc, epoch, 100 * max(curve)))
        for (method, pretraining, encoder, dataset), values in by_seed.items():
            if {*range(SEEDS)} <= values.keys():
                found[method, pretraining].scores[encoder][dataset] = [values[seed] for seed in range(SEEDS)]
        with_saint = [line for line in found.values() if line.scores["saint"]]
        self.datasets = [name for name in CODES if any(line.has(name) for line in with_saint)]
        self.lines = sorted(with_saint, key=lambda line: (line.role != "ceiling", line.role != "floor", _place(line)))
        """what is trained on labels of rows, the floor, the methods in the paper's order"""

    def head(self) -> str:
        """The head of the table."""
        cells = [cell for dataset in self.datasets for cell in (f"{dataset}: MLP", "SAINT", "paper")]
        return f"| ordered bags of {BAG_SIZE} | {' | '.join(cells)} |\n| --- |{' ---: |' * len(cells)}"

    def text(self, line: Line) -> str:
        """A line of the table."""
        cells = []
        for dataset in self.datasets:
            for scores in line.scores.values():
                own = scores.get(dataset)
                cells.append("–" if own is None else f"{fmean(own):.1f} ± {stdev(own):.1f}")
            cells.append(_printed(line, dataset))
        return f"| {line.name} | {' | '.join(cells)} |"

    def order(self, encoder: str, dataset: str) -> list[tuple[str, float]]:
        """Methods and their means, the best first, without those that are trained on labels of rows."""
        ranked = [line for line in self.lines if line.role != "ceiling" and line.has(dataset)]
        return sorted(((line.name, fmean(line.scores[encoder][dataset])) for line in ranked), key=lambda pair: -pair[1])

    def above_paper(self, method: str, dataset: str) -> float:
        """SAINT's mean minus the paper's, of a method as the paper pretrains it."""
        (line,) = (each for each in self.lines if (each.method, each.pretraining) == (method, _pretrained(method)))
        (paper,) = (row for row in rows("fine_grained") if _is(row, method, dataset))
        return fmean(line.scores["saint"][dataset]) - float(paper["mean"])

    def agreement(self, dataset: str) -> float:
        """Kendall's tau of both orders."""
        mlp, saint = (dict(self.order(encoder, dataset)) for encoder in PRECISIONS)
        return float(kendalltau([*mlp.values()], [saint[name] for name in mlp]).statistic)


def _place(line: Line) -> tuple[int, str]:
    return LABELS.index(line.method) if line.method in LABELS else -1, line.pretraining


def _printed(line: Line, dataset: str) -> str:
    """What the paper prints, where it pretrains as this line does."""
    if _pretrained(line.method) == line.pretraining:
        for row in rows("fine_grained"):
            if _is(row, line.method, dataset):
                return f"{float(row['mean']):.1f} ± {float(row['std']):.1f}"
    return "–"


def _pretrained(method: str) -> str:
    return PRETRAINED.get(method, "none")


def _is(row: Mapping[str, str], method: str, dataset: str) -> bool:
    return (row["method"].lower(), row["dataset"]) == (method, CODES[dataset])
