"""Functions of one member's network and method, and such functions over all members at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from operator import itemgetter
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.utils._pytree import tree_flatten, tree_map

from llpbench.core.bags import Bags
from llpbench.core.errors import hook_error
from llpbench.core.method import Method, Now, Reports
from llpbench.core.model import Model, Network, Random
from llpbench.core.text import one_line

OfMember = Callable[..., Any]
"""takes a member's network, its method, and what else is mapped"""


class Weights(NamedTuple):
    """What sets members apart, each with a leading dimension [members]."""

    parameters: Mapping[str, Tensor]
    buffers: Mapping[str, Tensor]
    values: Mapping[str, Tensor]
    """hyperparameters in which members may differ"""


def log_proba(network: Network, method: Method, bags: Bags) -> Tensor:
    """The prediction that is judged."""
    made = method.log_proba(Model(network), bags)
    if not isinstance(made, Tensor) or made.shape[:-1] != bags.mask.shape:
        given = tuple(made.shape) if isinstance(made, Tensor) else type(made).__name__
        what = f"must give [bags, size, classes], here {[*bags.mask.shape]} and one for classes, got {given}"
        raise hook_error(method, "log_proba", what)
    return made


def representation(network: Network, method: Method, bags: Bags) -> Tensor:
    """The row vectors that are looked at."""
    model = Model(network)
    return method.represent(model, bags) if isinstance(method, Reports) else model.encode(bags).z


def pseudo_pairs(network: Network, method: Method, bags: Bags) -> tuple[Tensor, ...]:
    """The pairs that the method forms between two bags."""
    assert isinstance(method, Reports)
    return tuple(method.pseudo_pairs(Model(network), bags))


def loss_at(now: Now) -> OfMember:
    """The loss at a moment of training, with a member's bags and the key of its random stream."""

    def loss(network: Network, method: Method, bags: Bags, key: Tensor) -> Tensor:
        made = method.loss(Model(network, Random(key)), bags, now)
        if not isinstance(made, Tensor):
            raise hook_error(method, "loss", f"must give a tensor of a single number, got {type(made).__name__}")
        return made

    return loss


class MemberMap:
    """Maps functions of one member over the members of a stack."""

    def __init__(self, template: Network, method: Method) -> None:
        """`template`: a network whose weights are put aside for those of each member."""
        self._caller = _Caller(template)
        self.method = method
        self._names = tuple(name for name in vars(method) if name != "params")

    def __call__(self, function: OfMember, weights: Weights, *stacked: Any) -> Any:
        """`function(network, method, *own)` of each member, `own` its part of `stacked`; results with [members]."""

        def of_member(parameters: Any, buffers: Any, values: Any, *own: Any) -> Any:
            method = self._bound(values)
            named = {f"network.{name}": value for name, value in (parameters | buffers).items()}
            return functional_call(self._caller, named, (lambda network: function(network, method, *own),))

        return over_members(of_member, self.method.stackable, *map(dict, weights), *stacked)

    def _bound(self, values: Mapping[str, Any]) -> Method:
        """The method with one member's hyperparameters. By hand, since torch 2.11 cannot compile `copy()`."""
        bound: Method = object.__new__(type(self.method))
        for name in self._names:
            setattr(bound, name, getattr(self.method, name))
        bound.params = replace(self.method.params, **values)
        return bound


class _Caller(nn.Module):
    """Calls a function with its network, so that `functional_call` can put a member's weights in place."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, function: Callable[[Network], Any]) -> Any:
        return function(self.network)


def over_members(function: Callable[..., Any], stackable: bool, *stacked: Any) -> Any:
    """`function`, written for one member, over all: by vmap or, where a method forbids that, one by one."""
    if stackable:
        return vmap(function, randomness="error")(*stacked)
    members = len(next(leaf for leaf in tree_flatten(stacked)[0]))
    each = [function(*tree_map(itemgetter(position), stacked)) for position in range(members)]
    return tree_map(lambda *parts: torch.stack(parts), *each)


class UnmappableError(RuntimeError):
    """A method cannot be mapped over members, said in words for its author."""


@contextmanager
def explained() -> Iterator[None]:
    """What `vmap` refuses in a method, in words for its author; any other error as it is."""
    try:
        yield
    except UnmappableError:
        raise
    except RuntimeError as error:
        text = str(error)
        if "vmap" not in text and "broadcast shape" not in text:  # the latter: a write in place
            raise
        if "random" in text:
            told = "torch's own random functions cannot be used in a method. Use model.random instead."
        else:
            told = (
                "the method cannot be mapped over members (torch.func.vmap): it looks at values, or writes in place. "
                "Write it with torch.where and without .item(), or declare stackable = False. "
                f"In detail: {one_line(error, 160)}"
            )
        raise UnmappableError(told) from error
