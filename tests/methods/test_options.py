"""Options of methods that are not their defaults: limits, training together, and learning.

`test_conformance.py` tries the defaults.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from small import SCHEMA, mlp, moment, small_encoder, some_bags, stream, together

from llpbench.blocks.losses import proportion_loss
from llpbench.core.method import Method
from llpbench.core.metrics import holdout_criteria
from llpbench.core.model import Model, NoEncoder
from llpbench.data.tasks import build_task
from llpbench.data.toy import pure_bags
from llpbench.methods.ahil import AHIL
from llpbench.methods.llp_gan import LLPGAN
from llpbench.methods.llp_plot import PLOT
from llpbench.methods.llp_vat import LLPVAT
from llpbench.methods.llpfc import LLPFC
from llpbench.methods.mixbag import MixBag
from llpbench.methods.rot import ROT
from llpbench.methods.tabllp_dec import TabLLPDEC
from llpbench.methods.tabllp_pse import TabLLPPSE
from llpbench.methods.tabllp_self import TabLLPSelf

Options = dict[str, Any]


@pytest.mark.parametrize(
    ("declared", "options", "known"),
    [
        (MixBag, {"probability": 0.0}, (True, True)),
        (MixBag, {"probability": 1.0}, (True, False)),  # a suppressed partner is not mixed in
        (MixBag, {"probability": 1.0}, (False, True)),
        (ROT, {"stages": "joint", "alpha": 1.0}, (True, True)),
        (AHIL, {"weight": 0.0}, (True, True)),
        (LLPVAT, {"weight": 0.0}, (True, True)),
        (TabLLPSelf, {"weight": 0.0}, (True, True)),
    ],
)
def test_method_without_its_term_is_dllp(declared: Any, options: Options, known: tuple[bool, bool]) -> None:
    bags = some_bags(unequal=True)._replace(known=torch.tensor(known))
    method = declared(declared.Params(hidden=8, **options))
    network = method.build(small_encoder(), SCHEMA)
    found = method.loss(Model(network, stream()), bags, moment(method.stages[-1].name))
    assert torch.allclose(found, proportion_loss(Model(network, stream()).log_proba(bags), bags), atol=1e-5)


def short(declared: Any, options: Options) -> Method:
    """The method, with at most two epochs of any stage before the last."""
    method: Method = declared(declared.Params(**{"learning_rate": 0.01} | options))
    method.stages = tuple(replace(stage, epochs=2) if stage.epochs else stage for stage in method.stages)
    return method


def encoder(declared: Any) -> Any:
    return mlp if declared.takes_encoder else lambda _: NoEncoder()


VARIANTS = [
    (PLOT, {"hidden": 16, "mixup": False}),
    (TabLLPDEC, {"hidden": 16, "warm_up": "none"}),
    (TabLLPDEC, {"hidden": 16, "warm_up": "dllp", "prior_corrected": True}),
    (TabLLPDEC, {"hidden": 16, "frequencies": "step"}),
]


@pytest.mark.parametrize(
    ("declared", "options", "classes", "epochs"),
    [
        *((declared, options, 3 if declared is PLOT else 2, 4) for declared, options in VARIANTS),
        (TabLLPPSE, {"hidden": 16, "space": "proba"}, 3, 5),
        (LLPFC, {"hidden": 16, "learning_rate": 0.003, "prior": "fit", "refresh": 5}, 3, 10),
        (LLPGAN, {"objective": "wgan", "learning_rate": 2e-3, "generator_learning_rate": 2e-3}, 2, 1),
    ],
)
def test_every_variant_learns_pure_bags(declared: Any, options: Options, classes: int, epochs: int) -> None:
    task = build_task(*pure_bags(classes))
    population = together(short(declared, options), {0: task}, encoder=encoder(declared), epochs=epochs)
    (outcome,) = population.train()
    weights = outcome.selected["l1"].weights[None]
    assert holdout_criteria(population.predict(0, weights, task.test.rows)[0], task.test)["auc"] >= 0.95
    assert np.isfinite(population.represent(0, weights, task.test.rows)).all()
