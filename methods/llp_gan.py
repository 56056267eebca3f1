"""LLP-GAN: a network that learns classes from proportions and also distinguishes real rows from generated ones.

    L_D = −E_real log σ(s) − E_fake log σ(−s) + weight · L_bag;  L_G = ‖ E_real h − E_fake h ‖²
    L_D, L_G: losses of classifier and generator;  s: score of a row being real;  h: last features of the classifier

Liu et al. 2019. The discriminator has K logits l(x). The fake class has an implicit logit of 0. With
s(x) = logsumexp_c l_c(x), a row is real with probability sigmoid(s). The prediction is softmax(l). h(x) are the
features of the discriminator. L_G is averaged over them (`objective="fm"`).

The players take turns on the same bags. Differences from the published code:

- Tables have no convolutions. Both players are those of cWGAN, a GAN for mixed columns (Engelmann & Lessmann 2021).
  Published comparisons on tables use this variant. Both represent a row as one vector: numbers, then one-hot columns.
  Numbers are ranks among the training rows, scaled to [-1, 1]. In fake rows the one-hot columns are soft, so that
  gradients pass.
- cWGAN has a class-conditional generator and an auxiliary classifier. Both need labels of rows, so this generator is
  unconditional.
- Losses are averaged over the rows of several bags, with one fake per real row.
- L_bag is the KL divergence of `dllp`, the published cross-entropy minus a constant. Its sign follows the paper. One
  re-implementation reverses the sign, and matches features row by row instead of their means.
- `objective="wgan"` has two heads: the classifier, and a critic trained as in WGAN-GP (Gulrajani et al. 2017), with
  three turns per turn of the generator. Adam has beta1 = 0 for both players, as in cWGAN. Learning rates are those of
  "fm".

A step takes five to six times as long as a step of `dllp` (adult, MLP). In `dllp`, rows pass one network once. Here
they pass the discriminator four times (three times with gradients) and the generator twice (once with gradients).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Annotated, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import grad
from torch.nn.functional import leaky_relu, softplus

from llpbench import Bags, Member, Method, MethodParams, Now, Phase, Reports, Rows, Schema, losses, register_method
from llpbench.core.model import Encoder, Model, Network, Random, dropped_out
from llpbench.core.ranges import Choice, LogUniform

GANObjective = Literal["fm", "wgan"]

KNOTS = 65
"""quantiles of a number; ranks are interpolated between them"""
NUMERIC_NOISE = 0.01
"""standard deviation of the noise that the discriminator adds to numbers, which lie in [-1, 1]"""
SLOPE = 0.2
"""slope of leaky ReLU below zero"""
CRITIC_TURNS = 3
"""turns of the discriminator per turn of the generator if the objective is "wgan" """


@dataclass(frozen=True)
class _GANParams(MethodParams):
    """Hyperparameters of both players."""

    learning_rate: Annotated[float, LogUniform(1e-5, 1e-3)] = 3e-4
    """learning rate of the discriminator's AdamW"""
    generator_learning_rate: Annotated[float, LogUniform(1e-5, 1e-3)] = 3e-4
    """learning rate of the generator's AdamW"""
    dropout: Annotated[float, Choice(0.0, 0.1, 0.2, 0.3)] = 0.1
    """dropout after the discriminator's hidden layers, for real and fake rows"""
    hidden: Annotated[int, Choice(64, 128, 256, 512)] = 128
    """width of the discriminator's first layer; its second and third are a half and a quarter as wide"""
    objective: Annotated[GANObjective, Choice("fm", "wgan")] = "fm"
    """feature matching, or a separate critic"""
    proportion_weight: Annotated[float, LogUniform(0.1, 10.0)] = 1.0
    """weight of the proportion loss"""
    noise: Annotated[int, Choice(30, 64, 100)] = 30
    """number of random inputs from which a fake row is generated"""
    temperature: Annotated[float, Choice(0.3, 0.66, 1.0)] = 0.66
    """temperature of fake categories; a lower one is closer to one-hot and has a smaller gradient"""
    gradient_penalty: Annotated[float | None, Choice(0.0, 1.0, 10.0)] = None
    """weight of the gradient penalty (norm - 1)^2 on the score; None: 0 in "fm", 10 in "wgan" """

    def __post_init__(self) -> None:
        if self.gradient_penalty is None:
            object.__setattr__(self, "gradient_penalty", 10.0 if self.objective == "wgan" else 0.0)


class _Columns:
    """Rows as vectors: numbers, then one-hot categories, then a two-column missing flag for each number.

    Neighbouring one-hot columns of equal width form a block.
    """

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

    def by_block(self, one_hot: Tensor) -> list[Tensor]:
        """Return one-hot columns [..., one-hot] as one tensor [..., columns, width] for each block."""
        parts = torch.split(one_hot, [columns * width for columns, width in self.blocks], dim=-1)
        return [torch.unflatten(part, -1, block) for part, block in zip(parts, self.blocks, strict=True)]


class _Ranks(nn.Module):
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

    def __init__(self, columns: _Columns) -> None:
        super().__init__()
        self.columns = columns
        shapes = [(count, width, min(math.ceil(width / 3), 20)) for count, width in columns.blocks]
        self.weights = nn.ParameterList(_uniform(*shape, fan_in=shape[1]) for shape in shapes)
        self.dim = sum(count * dim for count, _, dim in shapes)

    def forward(self, one_hot: Tensor) -> Tensor:
        """Map [..., one-hot] to [..., dim]."""
        blocks = zip(self.columns.by_block(one_hot), self.weights, strict=True)
        return torch.cat([torch.einsum("...cw,cwd->...cd", block, weight).flatten(-2) for block, weight in blocks], -1)


class _Cross(nn.Module):
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


class _Judgement(NamedTuple):
    """The discriminator's output for rows."""

    features: Tensor
    """[..., dim] last hidden layer and cross layers: the row vector; the generator matches its mean"""
    logits: Tensor
    """[..., classes] float32"""
    score: Tensor
    """[...] float32, larger for rows that seem real"""


class _Discriminator(nn.Module):
    """A classifier of real against fake rows, and of the classes of real ones."""

    def __init__(self, columns: _Columns, classes: int, hidden: int, dropout: float, objective: GANObjective) -> None:
        super().__init__()
        self.columns, self.dropout = columns, dropout
        self.embeddings = _ColumnEmbeddings(columns)
        inputs = columns.numeric + self.embeddings.dim
        widths = (inputs, hidden, hidden // 2, hidden // 4)
        self.layers = nn.ModuleList(nn.Linear(*pair) for pair in pairwise(widths))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for width in widths[2:])  # no norm after the first layer
        self.cross = _Cross(inputs, 2)
        self.dim = widths[-1] + inputs
        self.classifier = nn.Linear(self.dim, classes)
        self.critic = nn.Linear(self.dim, 1) if objective == "wgan" else None

    def forward(self, vectors: Tensor, random: Random | None) -> _Judgement:
        """Judge rows [..., numeric + one-hot]; a random stream adds dropout and noise on the numbers."""
        numeric, one_hot = vectors.tensor_split([self.columns.numeric], dim=-1)
        if random is not None:
            numeric = numeric + NUMERIC_NOISE * random.normal(*numeric.shape)
        x = inputs = torch.cat([numeric, self.embeddings(one_hot)], dim=-1)
        for layer, norm in zip(self.layers, [nn.Identity(), *self.norms], strict=True):
            x = dropped_out(leaky_relu(norm(layer(x)), SLOPE), self.dropout, random)
        features = torch.cat([x, self.cross(inputs)], dim=-1)
        logits = self.classifier(features).float()
        # the fake class has logit 0, so P(real) = sigmoid(s) with s the logsumexp of the others
        score = logits.logsumexp(dim=-1) if self.critic is None else self.critic(features).float().squeeze(-1)
        return _Judgement(features, logits, score)


class _Generator(nn.Module):
    """A generator of rows from noise: first categories, then matching numbers."""

    HIDDEN = (128, 64)
    CONDITION, NUMERIC_HIDDEN = 16, 32

    def __init__(self, columns: _Columns, noise: int, temperature: float) -> None:
        super().__init__()
        self.columns, self.noise, self.temperature = columns, noise, temperature
        self.layers = nn.ModuleList(nn.Linear(*pair) for pair in pairwise((noise, *self.HIDDEN)))
        self.cross = _Cross(noise, 1)
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


class _Players(Network):
    """Both networks of one member, without an encoder."""

    def __init__(
        self, encoder: Encoder, columns: _Columns, discriminator: _Discriminator, generator: _Generator
    ) -> None:
        super().__init__(encoder, nn.Identity())
        self.columns = columns
        self.ranks = _Ranks(columns.numeric)
        self.discriminator = discriminator
        self.generator = generator

    def vectors(self, rows: Rows) -> Tensor:
        """Return vectors [..., numeric + one-hot] of real rows."""
        return self.columns.vectors(rows._replace(numeric=self.ranks(rows.numeric)))


def _uniform(*shape: int, fan_in: int) -> nn.Parameter:
    """Return a weight initialised like those of `nn.Linear`."""
    bound = 1.0 / math.sqrt(fan_in)
    return nn.Parameter(torch.empty(*shape).uniform_(-bound, bound))


@register_method("llp-gan", version=1, reference="Liu et al. 2019")
class LLPGAN(Method, Reports):
    """A discriminator that learns from proportions, against a generator of rows."""

    Params = _GANParams
    params: _GANParams
    takes_encoder = False

    def __init__(self, params: MethodParams | None = None) -> None:
        super().__init__(params)
        wgan = self.params.objective == "wgan"
        beta1 = 0.0 if wgan else 0.5
        ratio = self.params.generator_learning_rate / self.params.learning_rate
        discriminator = Phase("discriminator", ("discriminator.",), beta1=beta1)
        generator = Phase("generator", ("generator.",), ratio, beta1)
        self.phases = (*[discriminator] * (CRITIC_TURNS if wgan else 1), generator)

    def build(self, encoder: Encoder, schema: Schema) -> Network:
        """Return both players; there is no encoder."""
        columns, p = _Columns(schema), self.params
        discriminator = _Discriminator(columns, schema.classes, p.hidden, p.dropout, p.objective)
        return _Players(encoder, columns, discriminator, _Generator(columns, p.noise, p.temperature))

    def prepare(self, member: Member, now: Now) -> None:
        """Compute quantiles of the training rows' numbers."""
        member.network.ranks.fit(member.train.rows)

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        """Return L_D or L_G."""
        assert model.random is not None
        assert isinstance(model.network, _Players)
        real = model.network.vectors(bags.rows)
        loss = self.discriminator_loss if now.phase == "discriminator" else self.generator_loss
        return loss(model.network, real, bags, model.random)

    def discriminator_loss(self, players: _Players, real: Tensor, bags: Bags, random: Random) -> Tensor:
        """Return the loss of real against fake rows + weight * proportion loss + weight * gradient penalty."""
        with torch.no_grad():
            fake = players.generator(bags.mask.shape, random)
        of_real: _Judgement = players.discriminator(real, random)
        of_fake: _Judgement = players.discriminator(fake, random)
        if self.params.objective == "wgan":  # E_fake s - E_real s
            loss = losses.masked_mean(of_fake.score - of_real.score, bags.mask)
        else:  # -E_real log sigmoid(s) - E_fake log sigmoid(-s)
            loss = losses.masked_mean(softplus(-of_real.score) + softplus(of_fake.score), bags.mask)
        loss = loss + self.params.proportion_weight * losses.proportion_loss(of_real.logits.log_softmax(dim=-1), bags)
        if not self.params.gradient_penalty:
            return loss
        between = torch.lerp(fake, real, random.uniform(*bags.mask.shape, 1))
        penalty = _gradient_penalty(lambda x: players.discriminator(x, random).score, between, bags.mask)
        return loss + self.params.gradient_penalty * penalty

    def generator_loss(self, players: _Players, real: Tensor, bags: Bags, random: Random) -> Tensor:
        """Return the difference of mean features ("fm"), or minus the critic's score of the fakes ("wgan")."""
        of_fake: _Judgement = players.discriminator(players.generator(bags.mask.shape, random), random)
        if self.params.objective == "wgan":
            return -losses.masked_mean(of_fake.score, bags.mask)
        with torch.no_grad():
            of_real: _Judgement = players.discriminator(real, random)
        return _feature_matching(of_real.features, of_fake.features, bags.mask)

    def log_proba(self, model: Model, bags: Bags) -> Tensor:
        """Return the log-softmax of the K logits: the class of a row, given that it is real."""
        return _verdict(model, bags).logits.log_softmax(dim=-1)

    def represent(self, model: Model, bags: Bags) -> Tensor:
        """Return the discriminator's features."""
        return _verdict(model, bags).features


def _feature_matching(real: Tensor, fake: Tensor, mask: Tensor) -> Tensor:
    """Return the squared difference of the mean real and fake features [bags, size, dim], averaged over features."""
    difference = torch.where(mask.unsqueeze(-1), real.float() - fake.float(), 0.0).sum(dim=(0, 1)) / mask.sum()
    return difference.square().mean()


def _gradient_penalty(score: Callable[[Tensor], Tensor], rows: Tensor, mask: Tensor) -> Tensor:
    """Return the mean over rows of (||gradient of the score|| - 1)^2; `score` judges each of `rows` by itself."""
    gradient: Tensor = grad(lambda x: score(x).sum())(rows)
    norm = (gradient.float().square().sum(dim=-1) + 1e-12).sqrt()
    return losses.masked_mean((norm - 1).square(), mask)


def _verdict(model: Model, bags: Bags) -> _Judgement:
    network = model.network
    return network.discriminator(network.vectors(bags.rows), model.random)
