"""LLP-GAN: tell real rows from a generator's fakes, and the classes of the real ones by their bags' proportions.

Liu et al. 2019. The discriminator has K logits l(x), the fake class an implicit logit of 0, so with
s(x) = logsumexp_c l_c(x) a row is real with probability sigmoid(s). It predicts softmax(l). The players' losses, with
h(x) the discriminator's features:

    L_D = -E_real log sigmoid(s) - E_fake log sigmoid(-s) + weight * L_bag
    L_G = || E_real h - E_fake h ||^2, averaged over the features (`objective="fm"`)

They take turns on the same bags. Different from the published code, and why:

- Tables have no convolutions: both players are those of cWGAN, a GAN for mixed columns (Engelmann & Lessmann 2021):
  see `blocks/gan.py`. It is the LLP-GAN of the comparisons on tables. Numbers are ranks among the training rows, in
  [-1, 1].
- Its class-conditional generator and auxiliary classifier learn from labels of rows, which are not given here: this
  generator is unconditional.
- Losses are averaged over the rows of several bags, a fake for each real row; L_bag is the KL of `dllp`, the published
  cross-entropy minus a constant. Its sign is the paper's: one re-implementation rewards wrong proportions, and matches
  features row by row instead of their means.
- `objective="wgan"` has two heads instead: a critic under WGAN-GP (Gulrajani et al. 2017), three turns for one of the
  generator, and the classifier. Its Adam has a decay of 0 as in cWGAN; learning rates are those of "fm".

A step costs five to six times one of `dllp` (Adult, MLP): where that passes one network once, here rows pass the
discriminator four times, three of them with a gradient, and the generator twice, once with one. No part of it stands
out: there are five times as many products of matrices, and they take five times as long.
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
"""of the discriminator for one of the generator, in "wgan" """


@dataclass(frozen=True)
class GANParams(MethodParams):
    """Hyperparameters of both players."""

    learning_rate: Annotated[float, LogUniform(1e-5, 1e-3)] = 3e-4
    """of the discriminator's AdamW"""
    generator_learning_rate: Annotated[float, LogUniform(1e-5, 1e-3)] = 3e-4
    """of the generator's AdamW"""
    dropout: Annotated[float, Choice(0.0, 0.1, 0.2, 0.3)] = 0.1
    """after the discriminator's hidden layers, for real and fake rows"""
    hidden: Annotated[int, Choice(64, 128, 256, 512)] = 128
    """width of the discriminator's first layer; its second and third are a half and a quarter as wide"""
    objective: Annotated[GANObjective, Choice("fm", "wgan")] = "fm"
    """feature matching, or a critic of its own"""
    proportion_weight: Annotated[float, LogUniform(0.1, 10.0)] = 1.0
    """of the proportion loss"""
    noise: Annotated[int, Choice(30, 64, 100)] = 30
    """random numbers that a fake row is made of"""
    temperature: Annotated[float, Choice(0.3, 0.66, 1.0)] = 0.66
    """of the fake categories; the lower, the closer to one-hot, and the smaller the gradient"""
    gradient_penalty: Annotated[float | None, Choice(0.0, 1.0, 10.0)] = None
    """weight of the squared distance of the score's gradient norm from 1; None: 0 in "fm", 10 in "wgan" """

    def __post_init__(self) -> None:
        if self.gradient_penalty is None:
            object.__setattr__(self, "gradient_penalty", 10.0 if self.objective == "wgan" else 0.0)


@register_method("llp-gan", reference="Liu et al. 2019")
class LLPGAN(Method, Reports):
    """A discriminator that knows proportions, against a generator of rows."""

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
        """Both players; there is no encoder."""
        columns, p = Columns(schema), self.params
        discriminator = Discriminator(columns, schema.classes, p.hidden, p.dropout, p.objective)
        return Players(encoder, columns, discriminator, Generator(columns, p.noise, p.temperature))

    def prepare(self, member: Member, now: Now) -> None:
        """Quantiles of the training rows' numbers."""
        del now
        member.network.ranks.fit(member.train.rows)

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        """L_D or L_G."""
        assert model.random is not None
        assert isinstance(model.network, Players)
        real = model.network.vectors(bags.rows)
        loss = self.discriminator_loss if now.phase == "discriminator" else self.generator_loss
        return loss(model.network, real, bags, model.random)

    def discriminator_loss(self, players: Players, real: Tensor, bags: Bags, random: Random) -> Tensor:
        """Real against fake + weight * proportion loss + weight * gradient penalty."""
        with torch.no_grad():
            fake = players.generator(bags.mask.shape, random)
        of_real: Judgement = players.discriminator(real, random)
        of_fake: Judgement = players.discriminator(fake, random)
        against = wasserstein if self.params.objective == "wgan" else real_against_fake
        loss = against(of_real.score, of_fake.score, bags.mask)
        loss = loss + self.params.proportion_weight * proportion_loss(of_real.logits.log_softmax(dim=-1), bags)
        if not self.params.gradient_penalty:
            return loss
        between = torch.lerp(fake, real, random.uniform(*bags.mask.shape, 1))
        penalty = gradient_penalty(lambda x: players.discriminator(x, random).score, between, bags.mask)
        return loss + self.params.gradient_penalty * penalty

    def generator_loss(self, players: Players, real: Tensor, bags: Bags, random: Random) -> Tensor:
        """Means of features ("fm"), or the critic's score of the fakes."""
        of_fake: Judgement = players.discriminator(players.generator(bags.mask.shape, random), random)
        if self.params.objective == "wgan":
            return -masked_mean(of_fake.score, bags.mask)
        with torch.no_grad():
            of_real: Judgement = players.discriminator(real, random)
        return feature_matching(of_real.features, of_fake.features, bags.mask)

    def log_proba(self, model: Model, bags: Bags) -> Tensor:
        """Log-softmax of the K logits: the class of a row, given that it is real."""
        return _verdict(model, bags).logits.log_softmax(dim=-1)

    def represent(self, model: Model, bags: Bags) -> Tensor:
        """The discriminator's features."""
        return _verdict(model, bags).features


def real_against_fake(real: Tensor, fake: Tensor, mask: Tensor) -> Tensor:
    """-E_real log sigmoid(s) - E_fake log sigmoid(-s), of scores [bags, size]."""
    return masked_mean(softplus(-real) + softplus(fake), mask)


def wasserstein(real: Tensor, fake: Tensor, mask: Tensor) -> Tensor:
    """E_fake s - E_real s, of scores [bags, size]."""
    return masked_mean(fake - real, mask)


def feature_matching(real: Tensor, fake: Tensor, mask: Tensor) -> Tensor:
    """Mean over features of the squared difference of their means over rows; features [bags, size, dim]."""
    difference = torch.where(mask.unsqueeze(-1), real.float() - fake.float(), 0.0).sum(dim=(0, 1)) / mask.sum()
    return difference.square().mean()


def gradient_penalty(score: Callable[[Tensor], Tensor], rows: Tensor, mask: Tensor) -> Tensor:
    """Mean over rows of (||gradient of a row's score|| - 1)^2; rows [bags, size, dim], each judged by itself."""
    gradient: Tensor = grad(lambda x: score(x).sum())(rows)
    norm = (gradient.float().square().sum(dim=-1) + 1e-12).sqrt()
    return masked_mean((norm - 1).square(), mask)


def _verdict(model: Model, bags: Bags) -> Judgement:
    network = model.network
    verdict: Judgement = network.discriminator(network.vectors(bags.rows), model.random)
    return verdict
