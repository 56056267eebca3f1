"""The evaluator: what a trained member is worth on the test rows. It alone sees labels, after all training."""

from __future__ import annotations

import time

import numpy as np
import torch

from llpbench.core.bags import BoolArray
from llpbench.core.metrics import verdict
from llpbench.core.record import CriterionResult
from llpbench.core.seeding import generator
from llpbench.training.diagnostics import class_awareness, pair_accuracy
from llpbench.training.known_bags import known_bag_metrics
from llpbench.training.population import Population

PAIR = 2
"""bags between which pairs are formed"""


def judge(population: Population, number: int) -> dict[str, CriterionResult]:
    """Test metrics and diagnostics at the epoch that each criterion selected; the same epoch is judged once."""
    task, selected = population.members[number].task, population.outcomes[number].selected
    weights = {(choice.training, choice.epoch): choice.weights for choice in selected.values()}
    stacked = torch.stack(list(weights.values()))
    clock = time.perf_counter()
    proba = population.predict(number, stacked, task.test.rows)
    population.seconds["predict"] += (time.perf_counter() - clock) / len(stacked)
    representation = population.represent(number, stacked, task.test.rows)
    if not np.allclose(proba.sum(axis=-1), 1.0, atol=1e-3):
        raise ValueError("log_proba must give log probabilities: those of a row do not sum to 1. Use log_softmax.")
    of_train = proba if task.test_bags is None else population.predict(number, stacked, task.bags.rows)
    pairs = _judge_pairs(population, number, stacked)
    judged, diagnostics = {}, {}
    for position, moment in enumerate(weights):
        judged[moment] = verdict(proba[position], task.test)
        judged[moment]["test"] |= known_bag_metrics(task, of_train[position], proba[position])
        awareness = {} if task.test.labels is None else class_awareness(representation[position], task.test.labels)
        diagnostics[moment] = awareness | pairs[position] | population.schedules(number, epoch=moment[1])
    return {
        name: CriterionResult(
            epoch=choice.epoch,
            validation=choice.value,
            diagnostics=dict(diagnostics[choice.training, choice.epoch]),
            **judged[choice.training, choice.epoch],
        )
        for name, choice in selected.items()
    }


def _judge_pairs(population: Population, number: int, weights: torch.Tensor) -> list[dict[str, float]]:
    """Accuracy of the pseudo-pairs that a member forms with each of `weights` [n, parameters] in an epoch of training
    bags; nothing for methods that form none, and where nobody knows the labels."""
    member = population.members[number]
    train, labels = member.task.train, member.task.train_labels
    if not population.forms_pairs or labels is None:
        return [{} for _ in weights]
    plan = population.data.plan_epoch("bags", PAIR, 1, {number: generator(member.seed, "pairs")})
    equal: list[list[BoolArray]] = [[] for _ in weights]
    positive: list[list[BoolArray]] = [[] for _ in weights]
    chance = []
    for drawn, width in zip(plan.drawn[0].cpu(), plan.widths, strict=True):
        found = population.pseudo_pairs(number, weights, drawn, width)
        first, second = train.index[drawn.numpy(), :width]
        for n, (partner, taken) in enumerate(zip(*(part.cpu().numpy() for part in found), strict=True)):
            equal[n].append(labels[first] == labels[second[partner]])
            positive[n].append(taken)
        chance.append(np.prod(train.proportions[drawn.numpy()], axis=0).sum())
    joined = zip(equal, positive, strict=True)
    return [pair_accuracy(np.concatenate(one), np.concatenate(other), np.array(chance)) for one, other in joined]
