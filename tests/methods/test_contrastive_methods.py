"""SelfCLR-LLP, TabLLP-SELF and TabLLP-BDC: what each adds to the proportion loss."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from small import SCHEMA, moment, select, small_encoder, some_bags, stream
from torch import Tensor
from torch.nn import functional as F

from llpbench.blocks.losses import proportion_loss
from llpbench.blocks.pairing import pseudo_pairs
from llpbench.core.bags import Bags
from llpbench.core.method import Method, Now
from llpbench.core.model import Model
from llpbench.methods.tabllp_bdc import TabLLPBDC, _BDCParams, _difference_contrast


def now(epoch: float = 0.0, epochs: float = 300.0) -> Now:
    return moment(epoch=epoch, epochs=epochs, step=epoch * 10, steps=epochs * 10)


def model_of(method: Method, key: int = 0) -> Model:
    torch.manual_seed(1)
    return Model(method.build(small_encoder("saint"), SCHEMA), stream(key))


def dllp(model: Model, bags: Bags) -> Tensor:
    return proportion_loss(model.log_proba(bags), bags)


def bdc(**params: Any) -> TabLLPBDC:
    return TabLLPBDC(_BDCParams(**{"hidden": 8, **params}))


def test_bdc_is_ramped_sum_of_two_losses() -> None:
    method, bags = bdc(temperature=0.2), some_bags(unequal=True)
    model = model_of(method)
    z = F.normalize(model.encode(bags).z, dim=-1)
    cosine = z[0] @ z[1].T
    pairs = pseudo_pairs(cosine, bags.mask[0], bags.mask[1], bags.counts, "linear")
    contrast = _difference_contrast(cosine / 0.2, pairs, bags.mask[0], bags.mask[1])
    for epoch, rising in ((0, math.exp(-5)), (150, math.exp(-5 / 4)), (299, math.exp(-5 / 300**2))):
        expected = rising * contrast + (1 - rising) * dllp(model, bags)
        assert torch.allclose(method.loss(model, bags, now(epoch)), expected, atol=1e-5)


def test_odd_number_of_bags_is_refused() -> None:
    bags, method = some_bags(), bdc()
    model = model_of(method)
    four = method.loss(model, select(bags, 0, 1, 0, 1), now(150))
    assert torch.allclose(four, method.loss(model, bags, now(150)), atol=1e-5)
    with pytest.raises(ValueError, match=r"even number of bags per step, got 3"):
        method.loss(model, select(bags, 0, 1, 0), now(150))


def test_judged_pairs_are_those_of_loss() -> None:
    method, bags = bdc(), some_bags(unequal=True)
    model = Model(model_of(method).network)
    z = F.normalize(model.encode(bags).z, dim=-1)
    expected = pseudo_pairs(z[0] @ z[1].T, bags.mask[0], bags.mask[1], bags.counts, "linear")
    found = method.pseudo_pairs(model, bags)
    assert torch.equal(found.partner, expected.partner)
    assert torch.equal(found.positive, expected.positive)
    assert int(found.positive.sum()) == int(bags.counts.amin(dim=0).sum())
