"""Encoders with several copies that share weights (`Encoder.copies`): building them, and mapping functions over copies.

Methods do not notice the copies: their modules, loss, prediction and `after_step` are written for one copy and mapped
over all. Only `prepare`, which runs once for a member, sees all copies. Its row vectors and predictions are averages
over copies. A value that it copies into a parameter [copies, ...] is copied to all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

from llpbench.core.bags import Schema
from llpbench.core.method import Method
from llpbench.core.model import Encoder, Network

_OfCopy = Callable[..., Any]
"""function of one copy's network and of its parts of the other mapped arguments"""


def build(method: Method, encoder: Encoder, schema: Schema) -> Network:
    """Return the modules of one member; parameters that differ between copies are [copies, ...].

    Copies share their encoder's buffers, and its parameters except those in `of_copy`. Everything that the method
    builds, such as the head, exists once for each copy.
    """
    network = method.build(encoder, schema)
    if encoder.copies == 1:
        return network
    others = [method.build(encoder.another(), schema) for _ in range(encoder.copies - 1)]
    named = [_tensors(network_of_copy) for network_of_copy in (network, *others)]
    network.of_copy = tuple(name for name in named[0] if name not in _shared(network))
    for name in network.of_copy:
        module, _, leaf = name.rpartition(".")
        value = torch.stack([tensors[name].detach() for tensors in named])
        is_parameter = isinstance(named[0][name], nn.Parameter)
        setattr(network.get_submodule(module), leaf, nn.Parameter(value) if is_parameter else value)
    return network


def over_copies(function: _OfCopy, network: Network, stackable: bool, *stacked: Any) -> Any:
    """Return `function(network, *parts)` for each copy, with its parts of `stacked`; results are [copies, ...]."""

    def of_copy(tensors_of_copy: dict[str, Tensor], *parts: Any) -> Any:
        return functional_call(network, tensors_of_copy, (lambda copy: function(copy, *parts),))

    tensors = _tensors(network)
    return map_over(of_copy, stackable, {name: tensors[name] for name in network.of_copy}, *stacked)


def mean_of_copies(function: _OfCopy, network: Network, stackable: bool) -> Tensor:
    """Return the mean of a function of a network over its copies."""
    if not network.of_copy:
        alone: Tensor = function(network)
        return alone
    mean: Tensor = over_copies(function, network, stackable).mean(dim=0)
    return mean


def log_mean_of_copies(function: _OfCopy, network: Network, stackable: bool) -> Tensor:
    """Return the log of the mean probability over copies; `function` returns the log probabilities of one copy."""
    if not network.of_copy:
        alone: Tensor = function(network)
        return alone
    logs: Tensor = over_copies(function, network, stackable)
    return logs.logsumexp(dim=0) - math.log(len(logs))


def map_over(function: Callable[..., Any], stackable: bool, *stacked: Any) -> Any:
    """Map `function`, written for one member or copy, over all of them: by vmap, or in turn if vmap is not allowed."""
    leaves, structure = tree_flatten(stacked)
    if stackable:

        def of_leaves(*parts: Any) -> Any:
            return function(*tree_unflatten(parts, structure))

        return vmap(of_leaves, randomness="error")(*leaves)  # three times as fast as with nested arguments
    members = [tree_unflatten([leaf[place] for leaf in leaves], structure) for place in range(len(leaves[0]))]
    results = [function(*parts) for parts in members]
    return tree_map(lambda *parts: torch.stack(parts), *results)


def _tensors(network: Network) -> dict[str, Tensor]:
    return dict(network.named_parameters()) | dict(network.named_buffers())


def _shared(network: Network) -> set[str]:
    """Return the names of tensors that copies share, in all encoders of the network (methods may add encoders)."""
    shared = set()
    for place, module in network.named_modules():
        if isinstance(module, Encoder):
            names = {name for name, _ in module.named_parameters()} - set(module.of_copy)
            names |= {name for name, _ in module.named_buffers()}
            shared |= {f"{place}.{name}" for name in names}
    return shared
