"""The evaluator: what a trained member is worth on the test rows. It alone sees labels, after all training."""

from __future__ import annotations

import numpy as np
import torch

from llpbench.core.method import Method
from llpbench.core.metrics import test_metrics
from llpbench.core.record import CriterionResult
from llpbench.core.seeding import generator
from llpbench.training.diagnostics import class_awareness, pair_accuracy
from llpbench.training.population import Population


def judge(population: Population, number: int) -> dict[str, CriterionResult]:
    """Test metrics and diagnostics at the epoch that each criterion selected; the same epoch is judged once."""
    task, selected = population.members[number].task, population.outcomes[number].selected
    weights = {(choice.training, choice.epoch): choice.weights for choice in selected.values()}
    proba, representation = population.predict(number, torch.stack(list(weights.values())), task.test)
    if not np.allclose(proba.sum(axis=-1), 1.0, atol=1e-3):
        raise ValueError("log_proba must give log probabilities: those of a row do not sum to 1. Use log_softmax.")
    pairs = _judge_pairs(population, number, torch.stack(list(weights.values())))
    test, diagnostics = {}, {}
    for position, moment in enumerate(weights):
        test[moment] = test_metrics(proba[position], task.test)
        awareness = class_awareness(representation[position], task.test.labels)
        diagnostics[moment] = awareness | pairs[position] | population.schedules(number, epoch=moment[1])
    return {
        name: CriterionResult(
            epoch=choice.epoch,
            validation=choice.value,
            test=dict(test[choice.training, choice.epoch]),
            diagnostics=dict(diagnostics[choice.training, choice.epoch]),
        )
        for name, choice in selected.items()
    }


def _judge_pairs(population: Population, number: int, weights: torch.Tensor) -> list[dict[str, float]]:
    """Accuracy of the pseudo-pairs that a member forms with each of `weights` [n, parameters] in an epoch of training
    bags; nothing for methods that form none."""
    if type(population.method).pseudo_pairs is Method.pseudo_pairs:
        return [{} for _ in weights]
    member = population.members[number]
    train, labels = member.task.train, member.task.train_labels
    plan, _ = population.data.plan_epoch("bags", 2, 1, [generator(member.seed, "pairs")])
    equal, positive, chance = [], [], []
    for drawn in plan[0].cpu():
        found = population.pseudo_pairs(number, weights, drawn)
        first, second = train.index[drawn.numpy()]
        partner = found.partner.cpu().numpy()
        equal.append(labels[first] == labels[second[partner]])
        positive.append(found.positive.cpu().numpy())
        chance.append(np.prod(train.proportions[drawn.numpy()], axis=0).sum())
    return [
        pair_accuracy(np.stack([each[n] for each in equal]), np.stack([each[n] for each in positive]), np.array(chance))
        for n in range(len(weights))
    ]
