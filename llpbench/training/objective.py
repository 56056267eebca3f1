"""Functions of one member's network and method, and their mapping over all members and copies.

Encoders may have several copies that share weights (`Encoder.copies`). Methods do not notice them: their modules, loss,
prediction and `after_step` are written for one copy and mapped over all. Only `prepare`, which runs once for a member,
sees all copies. Its row vectors and predictions are averages over copies. A value that it copies into a parameter
[copies, ...] is copied to all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

from llpbench.core.bags import Bags, Schema
from llpbench.core.errors import HookError
from llpbench.core.method import Method, Now, Reports
from llpbench.core.model import Encoder, Model, Network, Random
from llpbench.core.text import hint, one_line

OfMember = Callable[..., Any]
"""function of a member's network, its method, and its parts of the other mapped arguments"""


class Weights(NamedTuple):
    """Everything that differs between members; tensors have a leading dimension [members]."""

    parameters: Mapping[str, Tensor]
    buffers: Mapping[str, Tensor]
    values: Mapping[str, Tensor]
    """hyperparameters that may differ between members"""


def build_copies(method: Method, encoder: Encoder, schema: Schema) -> Network:
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


def _over_copies(function: OfMember, network: Network, stackable: bool, *stacked: Any) -> Any:
    """Return `function(network, *parts)` for each copy, with its parts of `stacked`; results are [copies, ...]."""

    def of_copy(tensors_of_copy: dict[str, Tensor], *parts: Any) -> Any:
        return functional_call(network, tensors_of_copy, (lambda copy: function(copy, *parts),))

    tensors = _tensors(network)
    return _map_over(of_copy, stackable, {name: tensors[name] for name in network.of_copy}, *stacked)


def _of_copies(
    function: OfMember, network: Network, method: Method, merge: Callable[..., Tensor] = torch.mean
) -> Tensor:
    """Return a function of a network; if it has several copies, `merge` their values [copies, ...]."""
    if network.of_copy:
        return merge(_over_copies(function, network, method.stackable), dim=0)
    return function(network)


def _map_over(function: Callable[..., Any], stackable: bool, *stacked: Any) -> Any:
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


def log_proba(network: Network, method: Method, bags: Bags) -> Tensor:
    """Return log probabilities, as they are judged."""

    def of_copy(copy: Network) -> Tensor:
        prediction = method.log_proba(Model(copy), bags)
        if not isinstance(prediction, Tensor) or prediction.shape[:-1] != bags.mask.shape:
            given = tuple(prediction.shape) if isinstance(prediction, Tensor) else type(prediction).__name__
            what = f"must give [bags, size, classes], here {[*bags.mask.shape]} and one for classes, got {given}"
            raise HookError.of(method, "log_proba", what)
        return prediction

    return _of_copies(of_copy, network, method, lambda logs, dim: logs.logsumexp(dim) - math.log(len(logs)))


def encoding(network: Network, method: Method, bags: Bags) -> Tensor:
    """Return the row vectors of the encoder."""
    return _of_copies(lambda copy: Model(copy).encode(bags).z, network, method)


def representation(network: Network, method: Method, bags: Bags) -> Tensor:
    """Return the row vectors for diagnostics."""
    if not isinstance(method, Reports):
        return encoding(network, method, bags)
    return _of_copies(lambda copy: method.represent(Model(copy), bags), network, method)


def pseudo_pairs(network: Network, method: Method, bags: Bags) -> tuple[Tensor, ...]:
    """Return the pairs that the method forms between two bags; for several copies, the pairs of the first."""
    assert isinstance(method, Reports)
    if not network.of_copy:
        return tuple(method.pseudo_pairs(Model(network), bags))
    pairs = _over_copies(lambda copy: tuple(method.pseudo_pairs(Model(copy), bags)), network, method.stackable)
    return tuple(part[0] for part in pairs)


def loss_at(now: Now) -> OfMember:
    """Return the loss at a moment of training, as a function of a member's bags and the key of its random stream.

    Each copy has its own stream. Training minimises the mean of the copies' losses, not the loss of their mean.
    """

    def loss(network: Network, method: Method, bags: Bags, key: Tensor) -> Tensor:
        def of_copy(copy: Network, key: Tensor) -> Tensor:
            value = method.loss(Model(copy, Random(key)), bags, now)
            if not isinstance(value, Tensor):
                what = f"must give a tensor of a single number, got {type(value).__name__}"
                raise HookError.of(method, "loss", what)
            return value

        if not network.of_copy:
            return of_copy(network, key)
        keys = Random(key).bits(network.encoder.copies)
        return torch.mean(_over_copies(of_copy, network, method.stackable, keys), dim=0)

    return loss


def after_step_at(now: Now) -> OfMember:
    """Return a function for the method's new parameters and buffers, by name, at a moment of training."""

    def of_copy(copy: Network, method: Method) -> dict[str, Tensor]:
        tensors = _tensors(copy)
        # without integer codes and offsets, since a method may average all values
        given = method.after_step({name: v for name, v in tensors.items() if v.is_floating_point()}, now)
        return _new_values(method, given, tensors)

    def changed(network: Network, method: Method) -> dict[str, Tensor]:
        if not network.of_copy:
            return of_copy(network, method)
        values: dict[str, Tensor] = _over_copies(lambda copy: of_copy(copy, method), network, method.stackable)
        return {name: v if name in network.of_copy else v.mean(dim=0) for name, v in values.items()}

    return changed


def _new_values(method: Method, returned: object, current: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the result of `after_step`. Raises `HookError` unless it has tensors like those of the network."""
    if not isinstance(returned, Mapping):
        what = f"must return new values by name, {{}} for none, got {type(returned).__name__}"
        raise HookError.of(method, "after_step", what)
    for name, value in returned.items():
        if name not in current:
            what = f"must name what the network has, got {name!r}. {hint(name, current)}"
            raise HookError.of(method, "after_step", what.rstrip())
        if not isinstance(value, Tensor) or value.shape != current[name].shape:  # else it would be broadcast
            given = [*value.shape] if isinstance(value, Tensor) else type(value).__name__
            what = f"must give {name!r} a tensor of shape {[*current[name].shape]}, got {given}"
            raise HookError.of(method, "after_step", what)
    return dict(returned)


class MemberMap:
    """Mapping of functions of one member over the members of a stack."""

    def __init__(self, template: Network, method: Method) -> None:
        """`template` is a network. Each member's weights replace its weights."""
        self._template = template
        self._places = _places(template)
        self.method = method
        self._names = tuple(name for name in vars(method) if name != "params")

    def __call__(self, function: OfMember, weights: Weights, *stacked: Any, in_turn: bool = False) -> Any:
        """Return `function(network, method, *parts)` for each member, stacked as [members, ...].

        `parts` are the member's shares of `stacked`. With `in_turn`, vmap is not used.
        """

        def of_member(parameters: Any, buffers: Any, values: Any, *parts: Any) -> Any:
            method, tensors = self._bound(values), parameters | buffers
            if torch.compiler.is_compiling():
                return functional_call(self._template, tensors, (lambda network: function(network, method, *parts),))
            return self._with_tensors(tensors, lambda: function(self._template, method, *parts))

        return _map_over(of_member, self.method.stackable and not in_turn, *map(dict, weights), *stacked)

    def _with_tensors(self, tensors: Mapping[str, Tensor], function: Callable[[], Any]) -> Any:
        """Return `function()` while the template has other tensors, as `functional_call` does at ten times the cost."""
        before = [store[leaf] for store, leaf, _ in self._places]
        try:
            for store, leaf, name in self._places:
                store[leaf] = tensors[name]
            return function()
        finally:
            for (store, leaf, _), tensor in zip(self._places, before, strict=True):
                store[leaf] = tensor

    def _bound(self, values: Mapping[str, Any]) -> Method:
        """Return the method with one member's hyperparameters. Copied by hand: torch 2.11 cannot compile `copy()`."""
        bound: Method = object.__new__(type(self.method))
        for name in self._names:
            setattr(bound, name, getattr(self.method, name))
        bound.params = replace(self.method.params, **values)
        return bound


def _places(network: Network) -> list[tuple[dict[str, Any], str, str]]:
    """Return where a network keeps its parameters and buffers: the dictionary of a module, the key in it, the name.

    A tensor that several modules share has the name of its first place.
    """
    names = {id(tensor): name for name, tensor in (*network.named_parameters(), *network.named_buffers())}
    return [
        (store, leaf, names[id(tensor)])
        for module in network.modules()
        for store in (module._parameters, module._buffers)
        for leaf, tensor in store.items()
        if tensor is not None
    ]


@contextmanager
def explained() -> Iterator[None]:
    """Convert errors of `vmap` into a `ValueError` that addresses the method's author; pass on other errors."""
    try:
        yield
    except RuntimeError as error:
        text = str(error)
        if "vmap" not in text and "broadcast shape" not in text:  # the second text: a write in place
            raise
        message = (
            "the method cannot be mapped over members (torch.func.vmap): it looks at values, or writes in place. "
            "Write it with torch.where and without .item(), or declare stackable = False. "
            f"In detail: {one_line(error, 160)}"
        )
        if "random" in text:
            message = "torch's own random functions cannot be used in a method. Use model.random instead."
        raise ValueError(message) from error
