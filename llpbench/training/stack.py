"""Many networks as one: their parameters are the rows of a matrix, and one AdamW updates them all.

With a matrix [members, parameters] instead of a tensor per layer, few operations suffice for an optimiser step, a
snapshot of the best weights, gradient clipping or the removal of members, whatever the number of layers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from llpbench.core.model import Network


class Stack:
    """Parameters and buffers of several networks of the same architecture."""

    def __init__(self, networks: Sequence[Network], device: torch.device) -> None:
        self.template = networks[0].to(device)
        named = [dict(network.named_parameters()) for network in networks]
        self.names = list(named[0])
        self.shapes = [named[0][name].shape for name in self.names]
        self.sizes = [shape.numel() for shape in self.shapes]
        rows = [torch.cat([params[name].detach().reshape(-1).to(device) for name in self.names]) for params in named]
        self.theta = torch.stack(rows)
        """[members, parameters] before training"""
        buffers = [dict(network.named_buffers()) for network in networks]
        self.buffers = {name: torch.stack([b[name].to(device) for b in buffers]) for name in buffers[0]}
        """[members, ...] by name, before training"""

    def parameters(self, theta: Tensor, prefixes: tuple[str, ...] = ("",)) -> dict[str, Tensor]:
        """Return rows of a matrix like `theta` as named parameters, each with a leading dimension [members].

        Parameters whose names start with none of the prefixes are detached, because they need no gradient.
        """
        parts = torch.split(theta, self.sizes, dim=1)  # one split: its backward pass is one concatenation
        if prefixes != ("",):
            named = zip(self.names, parts, strict=True)
            parts = tuple(part if name.startswith(prefixes) else part.detach() for name, part in named)
        return {  # a vector needs no new shape
            name: part if len(shape) == 1 else part.view(len(theta), *shape)
            for name, part, shape in zip(self.names, parts, self.shapes, strict=True)
        }

    def columns(self, prefixes: tuple[str, ...]) -> Tensor:
        """Return which parameters are in modules with one of the prefixes [parameters]."""
        sizes = zip(self.names, self.sizes, strict=True)
        marks = [torch.full((size,), name.startswith(prefixes)) for name, size in sizes]
        return torch.cat(marks).to(self.theta.device)

    def place(self, name: str) -> slice:
        """Return the columns of a parameter."""
        start = sum(self.sizes[: self.names.index(name)])
        return slice(start, start + self.sizes[self.names.index(name)])

    def write_out(self, weights: Tensor, buffers: Mapping[str, Tensor], number: int) -> Network:
        """Return the template with a member's `weights` [parameters] and its part of `buffers` [members, ...]."""
        with torch.no_grad():
            for name, value in self.parameters(weights[None]).items():
                self.template.get_parameter(name).copy_(value[0])
            for name, value in buffers.items():
                self.template.get_buffer(name).copy_(value[number])
        return self.template

    def read_back(self, buffers: Mapping[str, Tensor], number: int) -> Tensor:
        """Return the parameters [parameters] of the template; copy its buffers into the member's part of `buffers`."""
        for name, value in buffers.items():
            value[number] = self.template.get_buffer(name)
        return torch.cat([self.template.get_parameter(name).detach().reshape(-1) for name in self.names])


class AdamW:
    """AdamW (Loshchilov & Hutter 2019) on a matrix of parameters, with a learning rate and weight decay for each row.

    Formulas and defaults are those of `torch.optim.AdamW`, which has only one learning rate. Before a step, the
    gradient of each row is clipped to a norm.
    """

    BETA2, EPS = 0.999, 1e-8

    def __init__(
        self,
        theta: Tensor,
        rate: Tensor,
        decay: Tensor,
        clip: float,
        columns: Tensor | None = None,
        beta1: float = 0.9,
        compiled: bool = False,
    ) -> None:
        """`rate`, `decay` [members]; `columns` [parameters] bool marks the parameters to update, None: all."""
        self.rate, self.decay, self.columns, self.clip, self.beta1 = rate, decay, columns, clip, beta1
        self.mean = torch.zeros_like(theta)
        self.square = torch.zeros_like(theta)
        self.steps = torch.zeros((), device=theta.device)
        self._update: Callable[..., Any] = torch.compile(_adamw, dynamic=False) if compiled else _adamw

    def step(self, theta: Tensor, gradient: Tensor) -> None:
        """Update `theta` and the running means in place, since a GPU replays a step with the same addresses."""
        with torch.no_grad():
            self.steps += 1
            moments, settings = (self.mean, self.square, self.steps), (self.rate, self.decay, self.clip, self.columns)
            updated, mean, square = self._update(theta, gradient, *moments, *settings, self.beta1)
            for place, new in ((theta, updated), (self.mean, mean), (self.square, square)):
                place.copy_(new)

    def keep(self, positions: Tensor) -> None:
        """Remove the state of all members except those at some positions."""
        self.mean, self.square = self.mean[positions], self.square[positions]
        self.rate, self.decay = self.rate[positions], self.decay[positions]


def _adamw(
    theta: Tensor,
    gradient: Tensor,
    mean: Tensor,
    square: Tensor,
    steps: Tensor,
    rate: Tensor,
    decay: Tensor,
    clip: float,
    columns: Tensor | None,
    beta1: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return new parameters, mean and mean square. Without in-place operations it compiles to one kernel."""
    if columns is not None:
        gradient = gradient * columns
    norm = gradient.square().sum(dim=1, keepdim=True).sqrt()
    gradient = gradient * (clip / norm.clamp(min=clip))
    mean = beta1 * mean + (1 - beta1) * gradient
    square = AdamW.BETA2 * square + (1 - AdamW.BETA2) * gradient.square()
    unbiased_mean = mean / (1 - beta1**steps)
    unbiased_root = (square / (1 - AdamW.BETA2**steps)).sqrt() + AdamW.EPS
    change = rate[:, None] * (unbiased_mean / unbiased_root + decay[:, None] * theta)
    return theta - (change if columns is None else change * columns), mean, square
