"""The networks of `llp-gan`: generator and discriminator for tables, after cWGAN (Engelmann & Lessmann 2021).

Both represent a row as one vector: numbers, then one-hot columns. In fake rows the one-hot columns are soft, so that
gradients pass. Neighbouring categorical columns of equal width form a block. So do the flags of missing numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import leaky_relu

from llpbench.core.bags import Rows, Schema
from llpbench.core.model import Encoder, Network, Random

GANObjective = Literal["fm", "wgan"]

KNOTS = 65
"""quantiles of a number; ranks are interpolated between them"""
NUMERIC_NOISE = 0.01
"""standard deviation of the noise that the discriminator adds to numbers, which lie in [-1, 1]"""
SLOPE = 0.2
"""slope of leaky ReLU below zero"""


class Columns:
    """Rows as vectors: numbers, then one-hot categories, then a two-column missing flag for each number."""

    def __init__(self, schema: Schema) -> None:
        self.numeric = schema.numeric
        widths = [*schema.cardinalities, *[2] * schema.numeric]
        self.blocks = [(len(list(same)), width) for width, same in groupby(widths)]
        """(number of columns, width of a column) of each block"""
        self.one_hot = sum(widths)

    def vectors(self, rows: Rows) -> Tensor:
        """Return vectors [..., numeric + one-hot] of real rows."""
        codes = torch.cat([rows.categorical, rows.missing.long()], dim=-1)
        parts = torch.split(codes, [columns for columns, _ in self.blocks], dim=-1)
        one_hot = [
            (part.unsqueeze(-1) == torch.arange(width, device=part.device)).flatten(-2)
            for part, (_, width) in zip(parts, self.blocks, strict=True)
        ]
        numeric = torch.where(rows.missing, 0.0, rows.numeric)
        return torch.cat([numeric, torch.cat(one_hot, dim=-1).to(numeric.dtype)], dim=-1)

    def split(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """Return numbers [..., numeric] and one-hot columns [..., one-hot]."""
        return vectors[..., : self.numeric], vectors[..., self.numeric :]

    def by_block(self, one_hot: Tensor) -> list[Tensor]:
        """Return one-hot columns [..., one-hot] as one tensor [..., columns, width] for each block."""
        parts = torch.split(one_hot, [columns * width for columns, width in self.blocks], dim=-1)
        return [torch.unflatten(part, -1, block) for part, block in zip(parts, self.blocks, strict=True)]


class Ranks(nn.Module):
    """Numbers as their ranks among the training rows, in [-1, 1].

    In a column with outliers, z-scores of most rows would differ by less than the discriminator's noise.
    """

    def __init__(self, columns: int) -> None:
        super().__init__()
        # a parameter, so that it is saved with a member's weights; no player updates it
        self.knots = nn.Parameter(torch.linspace(-1.0, 1.0, KNOTS).repeat(columns, 1))

    def fit(self, rows: Rows) -> None:
        """Take the quantiles of the training rows (numpy); a column without numbers is left unchanged."""
        with torch.no_grad():
            for knots, numbers, missing in zip(self.knots, rows.numeric.T, rows.missing.T, strict=True):
                if not missing.all():
                    quantiles = np.quantile(numbers[~missing], np.linspace(0.0, 1.0, KNOTS))
                    knots.copy_(torch.from_numpy(quantiles))

    def forward(self, numeric: Tensor) -> Tensor:
        """Map [..., columns] to the same shape, piecewise linearly."""
        low, high = self.knots[:, :-1], self.knots[:, 1:]
        passed = (numeric.unsqueeze(-1) - low) / (high - low).clamp(min=torch.finfo(torch.float32).tiny)
        return 2.0 * passed.clamp(0.0, 1.0).mean(dim=-1) - 1.0


class _ColumnEmbeddings(nn.Module):
    """A linear map without bias for each one-hot column, to a third of its width, but at most to 20."""

    def __init__(self, columns: Columns) -> None:
        super().__init__()
        self.columns = columns
        shapes = [(count, width, min(math.ceil(width / 3), 20)) for count, width in columns.blocks]
        self.weights = nn.ParameterList(_uniform(*shape, fan_in=shape[1]) for shape in shapes)
        self.dim = sum(count * dim for count, _, dim in shapes)

    def forward(self, one_hot: Tensor) -> Tensor:
        """Map [..., one-hot] to [..., dim]."""
        blocks = zip(self.columns.by_block(one_hot), self.weights, strict=True)
        return torch.cat([torch.einsum("...cw,cwd->...cd", block, weight).flatten(-2) for block, weight in blocks], -1)


class Cross(nn.Module):
    """Cross layers: x_{l+1} = x_0 (x_l . w) + b + x_l (Wang et al. 2017)."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.weight = _uniform(layers, width, fan_in=width)
        self.bias = nn.Parameter(torch.zeros(layers, width))

    def forward(self, start: Tensor) -> Tensor:
        """Map [..., width] to [..., width]."""
        x = start
        for weight, bias in zip(self.weight.unbind(), self.bias.unbind(), strict=True):
            x = start * (x * weight).sum(dim=-1, keepdim=True) + bias + x
        return x


class Judgement(NamedTuple):
    """The discriminator's output for rows."""

    features: Tensor
    """[..., dim] last hidden layer and cross layers: the row vector; the generator matches its mean"""
    logits: Tensor
    """[..., classes] float32"""
    score: Tensor
    """[...] float32, larger for rows that seem real"""


class Discriminator(nn.Module):
    """A classifier of real against fake rows, and of the classes of real ones."""

    def __init__(self, columns: Columns, classes: int, hidden: int, dropout: float, objective: GANObjective) -> None:
        super().__init__()
        self.columns, self.dropout = columns, dropout
        self.embeddings = _ColumnEmbeddings(columns)
        inputs = columns.numeric + self.embeddings.dim
        widths = (inputs, hidden, hidden // 2, hidden // 4)
        self.layers = nn.ModuleList(nn.Linear(*pair) for pair in pairwise(widths))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for width in widths[2:])  # no norm after the first layer
        self.cross = Cross(inputs, 2)
        self.dim = widths[-1] + inputs
        self.classifier = nn.Linear(self.dim, classes)
        self.critic = nn.Linear(self.dim, 1) if objective == "wgan" else None

    def forward(self, vectors: Tensor, random: Random | None) -> Judgement:
        """Judge rows [..., numeric + one-hot]; a random stream adds dropout and noise on the numbers."""
        numeric, one_hot = self.columns.split(vectors)
        if random is not None:
            numeric = numeric + NUMERIC_NOISE * random.normal(*numeric.shape)
        x = inputs = torch.cat([numeric, self.embeddings(one_hot)], dim=-1)
        for layer, norm in zip(self.layers, [nn.Identity(), *self.norms], strict=True):
            x = leaky_relu(norm(layer(x)), SLOPE)
            if random is not None:
                x = random.dropout(x, self.dropout)
        features = torch.cat([x, self.cross(inputs)], dim=-1)
        logits = self.classifier(features).float()
        # the fake class has logit 0, so P(real) = sigmoid(s) with s the logsumexp of the others
        score = logits.logsumexp(dim=-1) if self.critic is None else self.critic(features).float().squeeze(-1)
        return Judgement(features, logits, score)


class Generator(nn.Module):
    """A generator of rows from noise: first categories, then matching numbers."""

    HIDDEN = (128, 64)
    CONDITION, NUMERIC_HIDDEN = 16, 32

    def __init__(self, columns: Columns, noise: int, temperature: float) -> None:
        super().__init__()
        self.columns, self.noise, self.temperature = columns, noise, temperature
        self.layers = nn.ModuleList(nn.Linear(*pair) for pair in pairwise((noise, *self.HIDDEN)))
        self.cross = Cross(noise, 1)
        body = self.HIDDEN[-1] + noise
        self.heads = nn.Linear(body, columns.one_hot)
        self.numbers: nn.ModuleList | None = None
        if columns.numeric:
            self.embeddings = _ColumnEmbeddings(columns)
            condition = nn.Linear(self.embeddings.dim, self.CONDITION)
            hidden = nn.Linear(body + self.CONDITION, self.NUMERIC_HIDDEN)
            self.numbers = nn.ModuleList([condition, hidden, nn.Linear(self.NUMERIC_HIDDEN, columns.numeric)])

    def forward(self, shape: Sequence[int], random: Random) -> Tensor:
        """Return fake rows [*shape, numeric + one-hot]."""
        noise = random.uniform(*shape, self.noise)
        x = noise
        for layer in self.layers:
            x = leaky_relu(layer(x), SLOPE)
        body = torch.cat([x, self.cross(noise)], dim=-1)
        one_hot = self.gumbel_softmax(self.heads(body), random)
        if self.numbers is None:
            return one_hot
        condition, hidden, out = self.numbers
        chosen = leaky_relu(condition(self.embeddings(one_hot.detach())), SLOPE)
        numeric = out(leaky_relu(hidden(torch.cat([body, chosen], dim=-1)), SLOPE))
        return torch.cat([numeric, one_hot], dim=-1)

    def gumbel_softmax(self, logits: Tensor, random: Random) -> Tensor:
        """Return a soft draw [..., one-hot] from every column's distribution (Jang et al. 2017)."""
        logits = logits.float()
        gumbel = -(-random.uniform(*logits.shape).log()).log()
        blocks = self.columns.by_block((logits + gumbel) / self.temperature)
        return torch.cat([block.softmax(dim=-1).flatten(-2) for block in blocks], dim=-1)


class Players(Network):
    """Both networks of one member, without an encoder."""

    def __init__(self, encoder: Encoder, columns: Columns, discriminator: Discriminator, generator: Generator) -> None:
        super().__init__(encoder, nn.Identity())
        self.columns = columns
        self.ranks = Ranks(columns.numeric)
        self.discriminator = discriminator
        self.generator = generator

    def vectors(self, rows: Rows) -> Tensor:
        """Return vectors [..., numeric + one-hot] of real rows."""
        numeric = torch.where(rows.missing, 0.0, self.ranks(rows.numeric))
        return self.columns.vectors(rows._replace(numeric=numeric))


def _uniform(*shape: int, fan_in: int) -> nn.Parameter:
    """Return a weight initialised like those of `nn.Linear`."""
    bound = 1.0 / math.sqrt(fan_in)
    return nn.Parameter(torch.empty(*shape).uniform_(-bound, bound))
