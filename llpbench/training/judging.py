"""The evaluator of trained members on the test rows. Only it has labels, and it runs after all training."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from scipy.special import softmax
from torch import Tensor

from llpbench.blocks.assigning import assigned, log_of
from llpbench.blocks.counts import BagCounts
from llpbench.core.bags import BoolArray, FloatArray, IntArray, Task
from llpbench.core.criteria import CRITERIA
from llpbench.core.errors import HookError
from llpbench.core.metrics import brier_score, macro_auc, test_metrics, verdict
from llpbench.core.record import CriterionResult, Judged
from llpbench.core.seeding import generator
from llpbench.training.cohort import chosen_by_all
from llpbench.training.population import Population
from llpbench.training.selection import Selected
from llpbench.training.stamp import Predicted

_PAIR = 2
"""number of bags between which pairs are formed"""


def judge(
    population: Population, numbers: Sequence[int], *, keep: bool = False
) -> tuple[dict[str, CriterionResult], Predicted]:
    """Return test metrics and diagnostics at each criterion's selected epoch, and with `keep` the predictions.

    An epoch selected twice is judged once. For an ensemble of several members, the mean of their predictions is judged,
    each at its own epoch. The reported epoch is the median of these epochs; validation and diagnostics are means. A
    criterion that was always NaN (such as AUC of validation rows of a single class) selects no epoch and has no result.
    For an average, every criterion has the same result: that of the mean prediction over averaged weights and members.
    """
    outcomes = [population.outcomes[number] for number in numbers]
    last = (population.method.stages[-1].epochs or population.protocol.epochs) - 1
    averaged = population.average is not None
    if averaged:
        names = [name for name, criterion in CRITERIA.items() if criterion.regime in population.regimes]
        averages = [each.averaged for each in outcomes if each.averaged is not None]  # of the last epochs
        weights = [{("", last + 1 - n): each[-n] for n in range(len(each), 0, -1)} for each in averages]
    else:
        names = chosen_by_all(outcomes)
        weights = [{_moment(each.selected[name]): each.selected[name].weights for name in names} for each in outcomes]
    members = [_Looked(population, *of_member, keep=keep) for of_member in zip(numbers, weights, strict=True)]
    judged: dict[tuple[tuple[int, ...], ...], tuple[Judged, dict[str, FloatArray]]] = {}
    results: dict[str, CriterionResult] = {}
    predicted: dict[str, dict[str, FloatArray]] = {}
    for name in names:
        choices = [] if averaged else [outcome.selected[name] for outcome in outcomes]
        chosen = [[_moment(choice)] for choice in choices] or weights  # all moments of an average
        places = tuple(tuple(each.places[at] for at in own) for each, own in zip(members, chosen, strict=True))
        if places not in judged:
            parts = {part: _mean([getattr(each, part) for each in members], places) for part in _PARTS}
            verdict_ = full_verdict(members[0].task, parts["proba"], parts["of_train"])
            # an average is trained on the validation rows
            held_out = {} if averaged else {"validation": parts["of_validation"]}
            judged[places] = verdict_, {**held_out, "test": parts["proba"]}
        diagnostics = [each.diagnostics[place] for each, own in zip(members, places, strict=True) for place in own]
        results[name] = CriterionResult(
            epoch=last if averaged else int(np.median([choice.epoch for choice in choices])),
            validation=None if averaged else float(np.mean([choice.value for choice in choices])),
            diagnostics={key: float(np.mean([each[key] for each in diagnostics])) for key in diagnostics[0]},
            **judged[places][0],
        )
        predicted[name] = judged[places][1]
    return results, predicted if keep else {}


_Moment = tuple[str, int]
"""validation regime of a training, and epoch"""
_PARTS = ("proba", "of_train", "of_validation")


def _moment(choice: Selected) -> _Moment:
    return choice.training, choice.epoch


def full_verdict(task: Task, proba: FloatArray, of_train: FloatArray) -> Judged:
    """Return the evaluation of predictions of the test rows and, if test rows are in training bags, of these bags."""
    judged = verdict(proba, task.test)
    judged["test"] |= _known_bag_metrics(task, of_train, proba) | _whole_bag_metrics(task, of_train)
    return judged


def _mean(members: Sequence[FloatArray], places: Sequence[Sequence[int]]) -> FloatArray:
    """Return the mean over members of their mean predictions [epochs, rows, classes] at their own epochs."""
    means = [proba[[*own]].mean(axis=0) for proba, own in zip(members, places, strict=True)]
    return np.asarray(np.mean(means, axis=0))


class _Looked:
    """A member's predictions and diagnostics at some epochs."""

    def __init__(self, population: Population, number: int, weights: Mapping[_Moment, Tensor], *, keep: bool) -> None:
        """`keep`: whether to predict validation rows.

        Raises `ValueError` unless predictions are probabilities.
        """
        self.task = task = population.members[number].task
        self.places = {moment: place for place, moment in enumerate(weights)}
        stacked = torch.stack(list(weights.values()))
        self.proba = population.predict(number, stacked, task.test.rows)
        if np.isnan(self.proba).any():
            raise HookError.of(population.method, "log_proba", "gives NaN for test rows")
        if not np.allclose(self.proba.sum(axis=-1), 1.0, atol=1e-3):
            raise ValueError("log_proba must give log probabilities: those of a row do not sum to 1. Use log_softmax.")
        natural = task.test_bags is not None
        self.of_train = population.predict(number, stacked, task.bags.rows) if natural else self.proba[:, :0]
        """predictions of the training rows, if test rows belong to training bags"""
        self.of_validation = population.predict(number, stacked, task.validation.rows) if keep else self.proba[:, :0]
        representation = population.represent(number, stacked, task.test.rows)
        labels = task.test.labels
        pairs = _judge_pairs(population, number, stacked)
        self.diagnostics = [
            ({} if labels is None else _class_awareness_scores(z, labels))
            | of_pairs
            | population.schedules(number, epoch)
            for z, of_pairs, (_, epoch) in zip(representation, pairs, weights, strict=True)
        ]


def _judge_pairs(population: Population, number: int, weights: Tensor) -> list[dict[str, float]]:
    """Return the fraction of a member's pseudo-positive pairs whose rows have one class, for `weights` [n, parameters].

    `pair-chance` is the fraction for random rows of the same bags, sum_c p_1c p_2c. Pairs are formed in an epoch of
    training bags. NaN without a positive pair. Empty for methods without pairs, and for data without labels.
    """
    member = population.members[number]
    train, labels = member.task.train, member.task.train_labels
    if not population.forms_pairs or labels is None:
        return [{} for _ in weights]
    plan = population.data.plan_epoch("bags", _PAIR, 1, {number: generator(member.seed, "pairs")})
    equal: list[list[BoolArray]] = [[] for _ in weights]
    chance = []
    for drawn, width in zip(plan.drawn[0].cpu(), plan.widths, strict=True):
        pairs = population.pseudo_pairs(number, weights, drawn, width)
        first, second = train.index[drawn.numpy(), :width]
        for n, (partner, positive) in enumerate(zip(*(part.cpu().numpy() for part in pairs), strict=True)):
            equal[n].append((labels[first] == labels[second[partner]])[positive])
        chance.append(np.prod(train.proportions[drawn.numpy()], axis=0).sum())
    joined, expected = [np.concatenate(each) for each in equal], float(np.mean(chance))
    return [
        {"pair-accuracy": float(each.mean()) if len(each) else math.nan, "pair-chance": expected} for each in joined
    ]


_LEAST = 1e-7
"""smallest probability; the logits of smaller ones could not be shifted enough"""


def _known_bag_metrics(task: Task, of_train: FloatArray, of_test: FloatArray) -> dict[str, float]:
    """Return the metrics `...-known-bags` of predictions for training and test rows [rows, classes].

    A new row in natural bags (districts, days) often belongs to a bag with known counts. Rows of a bag share causes
    that no feature shows. Their logits are therefore shifted by the bag's random effect, estimated from the counts of
    its training rows (`BagCounts.bag_effects`). New rows need not match these counts, which are partly chance in a
    small bag. Training rows do match them, because the counts are their own (disaggregation).

    Empty if no test row belongs to a training bag, or without labels.
    """
    if task.test_bags is None or task.test.labels is None or not (task.test_bags >= 0).any():
        return {}
    effects = BagCounts(task.bags).bag_effects(_logits(of_train))
    known, moved = task.test_bags >= 0, _logits(of_test)
    moved[known] += effects[task.test_bags[known]]
    metrics = test_metrics(softmax(moved, axis=1), task.test)
    return {f"{name}-known-bags": metrics[name] for name in ("auc", "log-loss", "brier")}


def _whole_bag_metrics(task: Task, of_train: FloatArray) -> dict[str, float]:
    """Return the metrics `...-whole-bags` of training predictions that are adjusted to every bag's counts.

    `of_train` [training rows, classes] are the predictions. Accuracy is computed for assigned labels that match the
    counts. Validation bags among the training bags do not count. Empty if bags are not natural, or without labels.
    """
    if task.test_bags is None or task.train_labels is None:
        return {}
    bags = task.bags.some(np.arange(len(task.bags.counts)) < len(task.bags.counts) - task.moved)
    rows = slice(len(bags.rows.numeric))
    logits, labels = log_of(of_train[rows]), task.train_labels[rows]
    proba = BagCounts(bags).adding_up(logits)
    return {
        "auc-whole-bags": float(macro_auc(torch.from_numpy(proba)[None], torch.from_numpy(labels)[None])[0]),
        "accuracy-whole-bags": float((assigned(logits, bags) == labels).mean()),
        "brier-whole-bags": brier_score(proba, labels),
    }


def _logits(proba: FloatArray) -> FloatArray:
    return np.asarray(np.log(proba.astype(np.float64).clip(_LEAST, 1 - _LEAST)))


def _class_awareness_scores(z: FloatArray, labels: IntArray) -> dict[str, float]:
    """Return the score of row vectors `z`, and without their mean: vectors of transformers lie in a narrow cone."""
    return {"cas": _class_awareness(z, labels), "cas-centred": _class_awareness(z - z.mean(axis=0), labels)}


def _class_awareness(z: FloatArray, labels: IntArray) -> float:
    """Return the class awareness score of row vectors `z` [rows, dim] with `labels` [rows].

    Intra is the mean cosine of two rows of one class, averaged over classes. Inter is the mean cosine of rows of two
    classes, averaged over pairs of classes. With s = (1 + cosine) / 2 the score is s_intra / (s_intra + s_inter): 0.5
    if z carries no class information, 1 if classes are antipodal. NaN for a single class. Means are exact in
    O(rows x dim), from sums of unit vectors.
    """
    z = z.astype(np.float64)
    unit = z / np.maximum(np.linalg.norm(z, axis=1, keepdims=True), np.finfo(np.float64).tiny)
    sums, sizes, squares = [], [], []
    for label in np.unique(labels):
        rows = unit[labels == label]
        sums.append(rows.sum(axis=0))
        sizes.append(len(rows))
        squares.append((rows**2).sum())  # the number of nonzero rows
    of_classes = zip(sums, sizes, squares, strict=True)
    within = [(total @ total - square) / (size * (size - 1)) for total, size, square in of_classes if size > 1]
    between = [sums[a] @ sums[b] / (sizes[a] * sizes[b]) for a, b in itertools.combinations(range(len(sums)), 2)]
    if not within or not between:
        return math.nan
    intra, inter = np.mean(within), np.mean(between)
    return float((1 + intra) / (2 + intra + inter))
