"""EPRM: distances of mean predictions from proportions."""

from __future__ import annotations

import pytest
import torch
from small import mlp, moment, some_bags

from llpbench.blocks.losses import bag_log_proba
from llpbench.core.model import Model
from llpbench.data.toy import toy_task
from llpbench.methods.eprm import EPRM, EPRMParams, distance

HALF, P = torch.tensor([[0.5, 0.5]]).log(), torch.tensor([[0.25, 0.75]])


@pytest.mark.parametrize(("kind", "expected"), [("square", 0.125), ("insensitive", 0.3), ("absolute", 0.5)])
def test_known_distances(kind: str, expected: float) -> None:
    tolerance = 1e-3 if kind == "absolute" else 1e-6  # its corner is rounded
    assert float(distance(HALF, P, kind, 0.1)) == pytest.approx(expected, abs=tolerance)


def test_bce_of_several_classes_and_of_sure_predictions() -> None:
    mean = torch.tensor([[0.2, 0.3, 0.5]])
    target = torch.tensor([[0.1, 0.6, 0.3]])
    expected = -(target * mean.log() + (1 - target) * (1 - mean).log()).sum()
    assert torch.allclose(distance(mean.log(), target, "bce", 0.0), expected)
    sure = torch.tensor([[40.0, -40.0]]).log_softmax(dim=-1)
    assert float(distance(sure, torch.tensor([[0.0, 1.0]]), "bce", 0.0)) == pytest.approx(160.0, rel=1e-4)


def test_bce_of_bags_of_one_is_supervised() -> None:
    log_proba = torch.tensor([[0.8, 0.2], [0.4, 0.6]]).log()
    assert torch.allclose(distance(log_proba, torch.eye(2), "bce", 0.0), -2 * torch.tensor([0.8, 0.6]).log(), atol=1e-6)


@pytest.mark.parametrize("weight", ["bags", "rows"])
def test_what_counts_once(weight: str) -> None:
    task, bags = toy_task(0, unequal=True), some_bags(unequal=True)
    method = EPRM(EPRMParams(hidden=8, weight=weight))
    network = method.build(mlp(task), task.schema)
    model = Model(network)
    each = distance(bag_log_proba(model.log_proba(bags), bags.mask), bags.proportions, "square", 0.0)
    sizes = bags.mask.sum(dim=1)
    assert sizes[0] != sizes[1]
    expected = each.mean() if weight == "bags" else (sizes * each).sum() / sizes.sum()
    assert torch.allclose(method.loss(model, bags, moment()), expected)
    alone = method.loss(model, bags._replace(known=torch.tensor([True, False])), moment())
    assert torch.allclose(alone, each[0])
