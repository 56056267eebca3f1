"""Options of methods that are not their defaults: limits, training together, and learning.

`test_conformance.py` tries the defaults.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from small import SCHEMA, moment, small_encoder, some_bags, stream

from llpbench.blocks.losses import proportion_loss
from llpbench.core.model import Model
from llpbench.methods.ahil import AHIL
from llpbench.methods.llp_vat import LLPVAT
from llpbench.methods.mixbag import MixBag
from llpbench.methods.rot import ROT
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
