"""The studies: declarations of every table and figure of the paper, and one study of our own.

A study is a table whose rows are the combinations of its factors' levels, and whose columns are datasets. A level fixes
parts of a cell (method, pretraining, bagging, bag size, encoder, hyperparameters) or a value to read from its runs
(criterion, measure). This determines both the cells that a study runs and the table that it makes from a journal.
Studies that have cells in common share their runs.

The labels are those of the paper (`report/paper/*.csv`). Reports use this module, so it imports no torch or pandas.
"""

from __future__ import annotations

import fnmatch
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from llpbench.core.errors import LLPBenchError
from llpbench.core.text import hint

Level = Mapping[str, Any]
"""Values that a level fixes.

- parts of a cell: `method`, `pretraining` (a tuple: the best of them by validation), `bagging`, `bag_size`,
  `max_bags`, `encoder`, `params` and `pretraining_params` (hyperparameters that differ from the defaults)
- values to read: `criterion` (`criteria.CRITERIA`), `measure` (`MEASURES`)
"""

Layout = Literal["scores", "robustness"]
"""kind of a study's table: scores, or ranks of standard deviations"""

ALL_OF_PAPER = "paper"
"""name of all studies of the paper together; `all` is every study"""

_DEFAULTS: Level = {"pretraining": "none", "criterion": "auc", "measure": "auc"}
"""parts of a line that no level fixes"""

_MERGED = ("params", "pretraining_params")
"""parts whose values from several levels are merged"""


@dataclass(frozen=True)
class Line:
    """One row of a study."""

    labels: tuple[str, ...]
    """one label per factor"""
    fixed: Level

    @property
    def pretrainings(self) -> tuple[str, ...]:
        """Pretrainings among which validation chooses; usually one."""
        chosen = self.fixed["pretraining"]
        return (chosen,) if isinstance(chosen, str) else tuple(chosen)


@dataclass(frozen=True)
class Arm:
    """Levels that differ in one thing only."""

    title: str
    varies: Literal["bag_size", "max_bags"]
    levels: tuple[str, ...]
    """labels of the study's last factor, in ascending order of `varies`"""


@dataclass(frozen=True)
class Study:
    """One table or figure of the paper, or our own study."""

    name: str
    title: str
    question: str
    """question that the study answers, in one line"""
    factors: Mapping[str, Mapping[str, Level]] = field(default_factory=dict)
    """for each factor (the heading of a column): its levels, by their labels"""
    reference: str = ""
    """file of the paper's numbers in `report/paper`; "" if the paper has a figure"""
    layout: Layout = "scores"
    arms: tuple[Arm, ...] = ()
    """arms whose ends are compared; only for studies with the method as their first factor"""
    from_paper: bool = True
    """whether the study is from the paper"""

    @property
    def lines(self) -> tuple[Line, ...]:
        """Rows of the study."""
        levels = [list(factor.items()) for factor in self.factors.values()]
        combined = itertools.product(*levels) if levels else ()
        return tuple(Line(tuple(label for label, _ in row), _merged([level for _, level in row])) for row in combined)


def _merged(levels: list[Level]) -> Level:
    fixed = dict(_DEFAULTS)
    for level in levels:
        fixed |= {key: {**fixed.get(key, {}), **value} if key in _MERGED else value for key, value in level.items()}
    return fixed


def _of(method: str, **fixed: Any) -> Level:
    return {"method": method, **fixed}


_BASELINES = {
    "DLLP": _of("dllp"),
    "LLP-GAN": _of("llp-gan"),
    "LLP-VAT": _of("llp-vat"),
    "SelfCLR-LLP": _of("selfclr-llp"),
    "TabLLP-DEC": _of("tabllp-dec"),
    "TabLLP-PSE": _of("tabllp-pse"),
    "TabLLP-SELF": _of("tabllp-self"),
}
_BDC = {"TabLLP-BDC": _of("tabllp-bdc", pretraining="self+bag")}
_OBJECTIVES = {
    "DLLP": _of("dllp"),
    "SelfCLR-LLP": _of("selfclr-llp"),
    "TabLLP-SELF": _of("tabllp-self"),
    "TabLLP-BDC": _of("tabllp-bdc"),
}
_PRETRAININGS = {
    "No": {"pretraining": "none"},
    "Self": {"pretraining": "self"},
    "Bag": {"pretraining": "bag"},
    "Self+Bag": {"pretraining": "self+bag"},
}
_TEN_BEST = {
    **{name: _of(name) for name in ("bag-gp-gbdt", "em-gbdt", "bag-gp", "count-gbdt")},
    **{name: _of(name, encoder="mlp") for name in ("tabllp-bdc", "tabllp-self", "tabllp-pse", "dllp", "llp-vat")},
    "llp-gan": _of("llp-gan"),
}
"""best ten methods by mean AUC on the published board of ordered bags, MLP encoder"""
_BAGS = {
    f"{number} of {size}": {"max_bags": number, "bag_size": size}
    for number, size in ((13, 64), (13, 256), (13, 1024), (26, 256), (52, 256), (208, 64))
}
"""credit, the smallest of the four datasets published in all bag sizes, has 13 bags of 1024, 52 of 256, 208 of 64"""
_BAG_SIZES = {str(size): {"bag_size": size} for size in (64, 128, 256, 512, 1024)}

STUDIES: dict[str, Study] = {
    study.name: study
    for study in (
        Study(
            "fine-grained",
            "Fine-grained results",
            "How good is each method when epochs are chosen by labels of validation rows?",
            {"method": {"Supervised": _of("supervised"), **_BASELINES, **_BDC}},
            "fine_grained",
        ),
        Study(
            "coarse-grained",
            "Coarse-grained results",
            "How good is each method when epochs are chosen by proportions alone? The paper shows the better of two "
            "criteria; we show both.",
            {
                "method": {**_BASELINES, **_BDC},
                "metric": {"mPIoU": {"criterion": "mpiou"}, "L1": {"criterion": "l1"}},
            },
            "coarse_grained",
        ),
        Study(
            "class-awareness",
            "Class awareness score",
            "How well do row vectors separate the classes?",
            {
                "method": {
                    "DLLP": _of("dllp", measure="cas"),
                    "SelfCLR-LLP": _of("selfclr-llp", measure="cas"),
                    "TabLLP-SELF": _of("tabllp-self", measure="cas"),
                    "TabLLP-BDC": _of("tabllp-bdc", pretraining="self+bag", measure="cas"),
                }
            },
            "class_awareness",
        ),
        Study(
            "pair-accuracy",
            "Accuracy of pseudo-pairs",
            "What share of the pairs that BDC takes to be of one class really are?",
            {
                "validation": {
                    "Fine-grained": _of("tabllp-bdc", pretraining="self+bag", measure="pair-accuracy"),
                    "Coarse-grained": _of(
                        "tabllp-bdc", pretraining="self+bag", measure="pair-accuracy", criterion="mpiou"
                    ),
                }
            },
            "pair_accuracy",
        ),
        Study(
            "bag-size",
            "Influence of the bag size",
            "What do larger bags cost?",
            {"method": {"Supervised": _of("supervised"), **_BASELINES, **_BDC}, "bag size": _BAG_SIZES},
        ),
        Study(
            "accuracy-time",
            "Accuracy versus time",
            "What does a point of AUC cost in minutes of training?",
            {
                "method": {**_BASELINES, **_BDC},
                "measure": {"AUC": {"measure": "auc"}, "minutes": {"measure": "minutes"}},
            },
        ),
        Study(
            "robustness",
            "Robustness",
            "How much does a method depend on the seed? Mean rank of its standard deviation.",
            {"method": {**_BASELINES, **_BDC}},
            "robustness",
            layout="robustness",
        ),
        Study(
            "training-time",
            "Training time in minutes",
            "How long does a run take?",
            {
                "method": {
                    **{name: {**level, "measure": "minutes"} for name, level in {**_BASELINES, **_BDC}.items()},
                    "Pretrain": _of("tabllp-bdc", pretraining="self+bag", measure="pretraining minutes"),
                }
            },
            "training_time",
        ),
        Study(
            "pretraining",
            "Pretraining",
            "What does each pretraining task bring to each objective?",
            {"pretraining": _PRETRAININGS, "method": _OBJECTIVES},
            "pretraining",
        ),
        Study(
            "bagging",
            "Bagging strategies",
            "Does it matter how rows become bags?",
            {
                "method": {"DLLP": _of("dllp"), **_BDC},
                "bagging": {"Rand.": {"bagging": "random"}, "Ord.": {"bagging": "ordered"}},
            },
            "bagging",
        ),
        Study(
            "encoder",
            "Configuration of the encoder",
            "Attention between columns alone, or between rows too?",
            {"encoder": {"colrow-1": _of("dllp", encoder="saint-row"), "col-6": _of("dllp", encoder="saint")}},
            "encoder",
        ),
        Study(
            "downstream-objectives",
            "Downstream objectives",
            "Which objective is best without pretraining, and which with the pretraining that validation prefers?",
            {
                "pretraining": {
                    "No": {"pretraining": "none"},
                    "Optimal": {"pretraining": ("self", "bag", "self+bag")},
                },
                "method": _OBJECTIVES,
            },
            "downstream_objectives",
        ),
        Study(
            "pair-generator",
            "Generator of pseudo-pairs",
            "Assignment, or the most similar pair first?",
            {
                "generator": {
                    "Greedy": _of("tabllp-bdc", pretraining="self+bag", params={"generator": "greedy"}),
                    "Linear": _of("tabllp-bdc", pretraining="self+bag", params={"generator": "linear"}),
                }
            },
            "pair_generator",
        ),
        Study(
            "difference-loss",
            "Difference-contrastive loss",
            "InfoNCE or cosine embedding?",
            {
                "loss": {
                    "CosineEmbedding": _of(
                        "tabllp-bdc", pretraining="self+bag", params={"objective": "cosine-embedding"}
                    ),
                    "SupInfoNCE": _of("tabllp-bdc", pretraining="self+bag", params={"objective": "sup-info-nce"}),
                }
            },
            "difference_loss",
        ),
        Study(
            "augmentation",
            "Augmentation in pretraining",
            "Feature mixup, or separated representations?",
            {
                "method": {
                    "DLLP": _of("dllp", pretraining="self"),
                    "TabLLP-BDC": _of("tabllp-bdc", pretraining="self"),
                },
                "augmentation": {
                    "FM": {"pretraining_params": {"view": "mixup"}},
                    "SR": {"pretraining_params": {"view": "separated"}},
                },
            },
            "augmentation",
        ),
        Study(
            "aggregation",
            "Aggregation of rows in pretraining",
            "How do rows become a bag vector?",
            {
                "method": _BDC,
                "aggregator": {
                    name: {"pretraining_params": {"aggregator": aggregator, "projection": projection}}
                    for name, aggregator, projection in (
                        ("WS", "weighted-sum", False),
                        ("IA", "attention", False),
                        ("WS-Proj", "weighted-sum", True),
                        ("IA-Proj", "attention", True),
                    )
                },
            },
            "aggregation",
        ),
        Study(
            "early-stopping-metric",
            "Metric of early stopping",
            "L1 or mPIoU?",
            {
                "method": {
                    "DLLP (no pretraining)": _of("dllp"),
                    "DLLP": _of("dllp", pretraining="self+bag"),
                    "TabLLP-SELF": _of("tabllp-self", pretraining="self+bag"),
                    "TabLLP-BDC": _of("tabllp-bdc", pretraining="self+bag"),
                },
                "metric": {"L1": {"criterion": "l1"}, "mPIoU": {"criterion": "mpiou"}},
            },
            "early_stopping_metric",
        ),
        Study(
            "mpiou-auc",
            "mPIoU versus AUC",
            "Do good proportions mean good predictions?",
            {
                "method": {
                    "Supervised": _of("supervised"),
                    "DLLP": _of("dllp", criterion="mpiou"),
                    "TabLLP-BDC": _of("tabllp-bdc", pretraining="self+bag", criterion="mpiou"),
                },
                "metric": {"mPIoU": {"measure": "mpiou"}, "AUC": {"measure": "auc"}},
            },
            "mpiou_vs_auc",
        ),
        Study(
            "bag-number",
            "Number and size of bags",
            "What do larger bags cost: as many bags, or the same rows? And what do fewer bags of one size cost?",
            {"method": _TEN_BEST, "bags": _BAGS},
            arms=(
                Arm("13 bags, larger", "bag_size", ("13 of 64", "13 of 256", "13 of 1024")),
                Arm("bags of 256, more", "max_bags", ("13 of 256", "26 of 256", "52 of 256")),
                Arm("13,312 rows, larger bags", "bag_size", ("208 of 64", "52 of 256", "13 of 1024")),
            ),
            from_paper=False,
        ),
    )
}


def select(pattern: str) -> list[Study]:
    """Return studies selected by `paper`, `all`, comma-separated lists and globs.

    Raises `LLPBenchError` with the nearest names.
    """
    unions = {ALL_OF_PAPER: [name for name, study in STUDIES.items() if study.from_paper], "all": list(STUDIES)}
    chosen: dict[str, Study] = {}
    for part in filter(None, (part.strip() for part in pattern.split(","))):
        names = unions[part] if part in unions else fnmatch.filter(STUDIES, part)
        if not names:
            near = hint(part, [*STUDIES, *unions])
            raise LLPBenchError(f"unknown study {part!r}. {near}llpbench list studies prints all.")
        chosen.update({name: STUDIES[name] for name in names})
    if not chosen:
        raise LLPBenchError("--study must name a study. llpbench list studies prints all.")
    return list(chosen.values())
