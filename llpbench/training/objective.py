"""A method as a function of one member's parameters, and such a function over all members at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.utils._pytree import tree_flatten, tree_map

from llpbench.core.bags import Bags
from llpbench.core.method import Method, Progress
from llpbench.core.model import Model, Random

RECOMPILES = 64
"""of a step; beyond it torch silently stops compiling"""


class Objective(nn.Module):
    """A method around its network, so that `functional_call` can put a member's parameters in place."""

    def __init__(self, network: nn.Module, method: Method) -> None:
        super().__init__()
        self.network = network
        self.method = method
        self.stage = ""

    def forward(
        self, what: str, values: dict[str, Tensor], bags: Bags, key: Tensor | None, progress: Progress | None
    ) -> Any:
        """`what`: "predict", "represent", "pseudo_pairs", or the name of a phase, of which this is the loss."""
        method = self.method.bind(values)
        method.stage = self.stage
        if key is not None and progress is not None:
            return method.phase_loss(what, Model(self.network, Random(key)), bags, progress)
        model = Model(self.network)
        if what == "pseudo_pairs":
            return tuple(method.pseudo_pairs(model, bags))
        return method.log_proba(model, bags) if what == "predict" else method.represent(model, bags)


@dataclass(frozen=True)
class Output:
    """One of an objective's outputs without randomness, as a function to map over members."""

    objective: Objective
    what: str

    def __call__(self, parameters: Any, buffers: Any, values: Any, bags: Bags) -> Any:
        return functional_call(self.objective, (parameters, buffers), (self.what, values, bags, None, None))


def map_members(function: Callable[..., Any], stackable: bool, *stacked: Any) -> Any:
    """`function`, written for one member, over all: by vmap or, where a method forbids that, one by one."""
    if stackable:
        return vmap(function, randomness="error")(*stacked)
    each = [function(*tree_map(itemgetter(position), stacked)) for position in range(len(tree_flatten(stacked)[0][0]))]
    return tree_map(lambda *parts: torch.stack(parts), *each)


def compiled(losses: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Compiled for every combination of phase, stage and number of members that a training meets."""
    torch.compiler.reset()  # what was compiled for other populations is of no use to this one, but counts
    torch._dynamo.config.recompile_limit = RECOMPILES
    # sizes that torch would take for dynamic, since another population had others, cannot be mapped over members
    return torch.compile(losses, dynamic=False)
