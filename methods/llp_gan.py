"""LLP-GAN: a network that learns classes from proportions and also distinguishes real rows from generated ones.

    L_D = −E_real log σ(s) − E_fake log σ(−s) + weight · L_bag;  L_G = ‖ E_real h − E_fake h ‖²

Liu et al. 2019. The discriminator has K logits l(x). The fake class has an implicit logit of 0. With
s(x) = logsumexp_c l_c(x), a row is real with probability sigmoid(s). The prediction is softmax(l). The losses of the
two players, with h(x) the features of the discriminator, are

    L_D = -E_real log sigmoid(s) - E_fake log sigmoid(-s) + weight * L_bag
    L_G = || E_real h - E_fake h ||^2, averaged over the features (`objective="fm"`)

The players take turns on the same bags. Differences from the published code:

- Tables have no convolutions. Both players are those of cWGAN, a GAN for mixed columns (Engelmann & Lessmann 2021;
  `blocks/gan.py`). Published comparisons on tables use this variant. Numbers are ranks among the training rows, scaled
  to [-1, 1].
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

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor
from torch.func import grad
from torch.nn.functional import softplus

from llpbench.blocks.gan import Columns, Discriminator, GANObjective, Generator, Judgement, Players
from llpbench.blocks.losses import masked_mean, proportion_loss
from llpbench.core.bags import Bags, Schema
from llpbench.core.method import Member, Method, MethodParams, Now, Phase, Reports
from llpbench.core.model import Encoder, Model, Network, Random
from llpbench.core.ranges import Choice, LogUniform
from llpbench.core.registry import register_method

CRITIC_TURNS = 3
"""turns of the discriminator per turn of the generator if the objective is "wgan" """


@dataclass(frozen=True)
class GANParams(MethodParams):
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


@register_method("llp-gan", version=1, reference="Liu et al. 2019")
class LLPGAN(Method, Reports):
    """A discriminator that learns from proportions, against a generator of rows."""

    Params = GANParams
    params: GANParams
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
        columns, p = Columns(schema), self.params
        discriminator = Discriminator(columns, schema.classes, p.hidden, p.dropout, p.objective)
        return Players(encoder, columns, discriminator, Generator(columns, p.noise, p.temperature))

    def prepare(self, member: Member, now: Now) -> None:
        """Compute quantiles of the training rows' numbers."""
        member.network.ranks.fit(member.train.rows)

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        """Return L_D or L_G."""
        assert model.random is not None
        assert isinstance(model.network, Players)
        real = model.network.vectors(bags.rows)
        loss = self.discriminator_loss if now.phase == "discriminator" else self.generator_loss
        return loss(model.network, real, bags, model.random)

    def discriminator_loss(self, players: Players, real: Tensor, bags: Bags, random: Random) -> Tensor:
        """Return the loss of real against fake rows + weight * proportion loss + weight * gradient penalty."""
        with torch.no_grad():
            fake = players.generator(bags.mask.shape, random)
        of_real: Judgement = players.discriminator(real, random)
        of_fake: Judgement = players.discriminator(fake, random)
        against = wasserstein if self.params.objective == "wgan" else _real_against_fake
        loss = against(of_real.score, of_fake.score, bags.mask)
        loss = loss + self.params.proportion_weight * proportion_loss(of_real.logits.log_softmax(dim=-1), bags)
        if not self.params.gradient_penalty:
            return loss
        between = torch.lerp(fake, real, random.uniform(*bags.mask.shape, 1))
        penalty = gradient_penalty(lambda x: players.discriminator(x, random).score, between, bags.mask)
        return loss + self.params.gradient_penalty * penalty

    def generator_loss(self, players: Players, real: Tensor, bags: Bags, random: Random) -> Tensor:
        """Return the difference of mean features ("fm"), or minus the critic's score of the fakes ("wgan")."""
        of_fake: Judgement = players.discriminator(players.generator(bags.mask.shape, random), random)
        if self.params.objective == "wgan":
            return -masked_mean(of_fake.score, bags.mask)
        with torch.no_grad():
            of_real: Judgement = players.discriminator(real, random)
        return feature_matching(of_real.features, of_fake.features, bags.mask)

    def log_proba(self, model: Model, bags: Bags) -> Tensor:
        """Return the log-softmax of the K logits: the class of a row, given that it is real."""
        return _verdict(model, bags).logits.log_softmax(dim=-1)

    def represent(self, model: Model, bags: Bags) -> Tensor:
        """Return the discriminator's features."""
        return _verdict(model, bags).features


def _real_against_fake(real: Tensor, fake: Tensor, mask: Tensor) -> Tensor:
    """Return -E_real log sigmoid(s) - E_fake log sigmoid(-s), for scores s [bags, size]."""
    return masked_mean(softplus(-real) + softplus(fake), mask)


def wasserstein(real: Tensor, fake: Tensor, mask: Tensor) -> Tensor:
    """Return E_fake s - E_real s, for scores s [bags, size]."""
    return masked_mean(fake - real, mask)


def feature_matching(real: Tensor, fake: Tensor, mask: Tensor) -> Tensor:
    """Return the squared difference of the mean real and fake features [bags, size, dim], averaged over features."""
    difference = torch.where(mask.unsqueeze(-1), real.float() - fake.float(), 0.0).sum(dim=(0, 1)) / mask.sum()
    return difference.square().mean()


def gradient_penalty(score: Callable[[Tensor], Tensor], rows: Tensor, mask: Tensor) -> Tensor:
    """Return the mean over rows of (||gradient of the score|| - 1)^2; `score` judges each of `rows` by itself."""
    gradient: Tensor = grad(lambda x: score(x).sum())(rows)
    norm = (gradient.float().square().sum(dim=-1) + 1e-12).sqrt()
    return masked_mean((norm - 1).square(), mask)


def _verdict(model: Model, bags: Bags) -> Judgement:
    network = model.network
    verdict: Judgement = network.discriminator(network.vectors(bags.rows), model.random)
    return verdict
