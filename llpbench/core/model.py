"""Networks, as a loss gets them: an encoder, a head and one random stream.

All randomness of a training step comes from `Random`, a counter-based generator: the number at a position is a hash of
(key, draw, position). The key is an ordinary tensor, so under `vmap` every member of a population has its own stream,
the same as if it were trained alone. torch's own generators cannot do this: a member's numbers would depend on the
number of members trained together.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import deepcopy
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import torch
from torch import Tensor, nn

from llpbench.core.bags import Bags, Rows


class Random:
    """A stream of random numbers for one member and one step.

    Every call draws new numbers. The same key and sequence of calls give the same numbers on every device.
    """

    def __init__(self, key: Tensor) -> None:
        """`key` is a 0-d int64 tensor in [0, 2**32)."""
        self._key = key
        self._draws = 0

    def bits(self, *shape: int) -> Tensor:
        """Return uniform 32-bit words as an int64 tensor."""
        return self._words(*shape).long() & _MASK

    def _words(self, *shape: int) -> Tensor:
        """Return the same words in int32, which is twice as fast on a CPU; in int64 if compiled, to avoid overflow."""
        self._draws += 1
        start = _mix(self._key ^ (self._draws * 0x9E3779B9 & _MASK))
        positions = torch.arange(math.prod(shape), device=self._key.device)
        if torch.compiler.is_compiling():
            return _mix(_mix(start ^ positions) ^ start).reshape(shape)
        start = start.int()
        return _mix_int32(_mix_int32(start ^ positions.int()) ^ start).reshape(shape)

    def uniform(self, *shape: int) -> Tensor:
        """Return uniform float32 numbers in (0, 1). They have 23 bits, so they are never rounded to 1."""
        return ((self._words(*shape) >> 9 & 0x7FFFFF).float() + 0.5) * 2.0**-23

    def normal(self, *shape: int) -> Tensor:
        """Return standard normal float32 numbers (Box-Muller)."""
        radius = (-2.0 * self.uniform(*shape).log()).sqrt()
        return radius * (2.0 * math.pi * self.uniform(*shape)).cos()

    def permutation(self, size: int) -> Tensor:
        """Return a random permutation of `0 .. size-1`, int64."""
        return self.bits(size).argsort()

    def dropout(self, x: Tensor, probability: float) -> Tensor:
        """Zero elements of `x`, and scale up the rest, as `nn.Dropout` does.

        `probability` is rounded to a multiple of 1/256.
        """
        dropped = round(probability * 256)
        if dropped == 0:
            return x
        # a word is used for four elements, one byte each: three times as fast on a CPU as torch's own dropout
        words = self._words(math.ceil(x.numel() / 4)).int()
        drawn = _bytes(words)[: x.numel()].reshape(x.shape)
        # 1.0 if `drawn >= dropped`, else 0.0; in floats, since compilers handle stored booleans slowly
        keep = (drawn.float() - (dropped - 1)).clamp(0.0, 1.0)
        return x * (keep * (256 / (256 - dropped)))


def dropped_out(x: Tensor, probability: float, random: Random | None) -> Tensor:
    """Return `x` after dropout; unchanged without a random stream, as in prediction."""
    return x if random is None else random.dropout(x, probability)


_MASK = 0xFFFFFFFF

_MAPS_VIEWS = torch._C._dispatch_has_kernel_for_dispatch_key("aten::view.dtype", "FuncTorchBatched")
"""whether `vmap` can map a view of another type; in torch 2.11 it cannot"""


def _bytes(words: Tensor) -> Tensor:
    """Return the bytes of int32 `words`, the lowest byte of each word first: [4 * words] numbers from 0 to 255."""
    if _MAPS_VIEWS:
        return words.view(torch.uint8)
    return ((words[:, None] >> torch.arange(0, 32, 8, device=words.device)) & 0xFF).flatten()


def _mix(x: Tensor) -> Tensor:
    """Return a bijective hash of 32-bit words, from Wellons' hash prospector.

    The words are int64, so no product overflows: both factors are below 2**31. In compiled code an overflow would not
    wrap around.
    """
    x = ((x ^ (x >> 16)) * 0x21F0AAAD) & _MASK
    x = ((x ^ (x >> 15)) * 0x735A2D97) & _MASK
    return x ^ (x >> 15)


def _mix_int32(x: Tensor) -> Tensor:
    """Return `_mix` of int32 words: products wrap around, and the sign bits that right shifts insert are masked."""
    y = x >> 16
    y &= 0xFFFF
    y ^= x
    y *= 0x21F0AAAD
    x = y >> 15
    x &= 0x1FFFF
    x ^= y
    x *= 0x735A2D97
    y = x >> 15
    y &= 0x1FFFF
    y ^= x
    return y


class Encoding(NamedTuple):
    """Output of an encoder."""

    z: Tensor
    """[..., dim] row vector (in SAINT the output at [CLS])"""
    tokens: Tensor
    """[..., features, token_dim] a vector for each feature"""


class Encoder(nn.Module):
    """Base of encoders: rows to row vectors and feature tokens, without a Python loop over columns.

    `forward(rows, mask, random)` takes rows with leading dimensions [bags, size], the padding mask of those bags, and a
    random stream, or None to predict: there is no train/eval state. Subclasses define `Params`, a frozen dataclass of
    hyperparameters (part of a cell's specification), and set `dim` and `token_dim`.
    """

    dim: int
    """width of `z`"""
    token_dim: int
    """width of a feature token"""
    row_interaction: ClassVar[bool] = False
    """whether a row's encoding depends on the other rows in its input"""
    contextual: ClassVar[bool] = True
    """whether tokens depend on each other; otherwise only `z` depends on the whole row"""
    compiles: ClassVar[bool] = False
    """whether compiling steps is worthwhile for long training on a CPU, as for deep encoders"""
    copies: int = 1
    """number of networks in one, with shared weights

    The encoder is written for one network. The engine creates the others with `another`, trains them on the mean of
    their losses, and predicts the mean of their probabilities.
    """
    of_copy: tuple[str, ...] = ()
    """names of the parameters that differ between copies; all others are shared"""

    def another(self) -> Self:
        """Return another untrained copy of the encoder. Only parameters in `of_copy` may differ between copies."""
        return deepcopy(self)

    def embed(self, rows: Rows) -> Tensor:
        """Return embeddings of the single features [..., features, token_dim], before they interact."""
        raise NotImplementedError

    def encode(self, embeddings: Tensor, mask: Tensor, random: Random | None) -> Encoding:
        """Return the row vector and tokens for feature embeddings, which may be perturbed or mixed."""
        raise NotImplementedError

    def forward(self, rows: Rows, mask: Tensor, random: Random | None) -> Encoding:
        return self.encode(self.embed(rows), mask, random)


class NoEncoder(Encoder):
    """Placeholder for methods with their own network."""

    dim = token_dim = 0


class MLP(nn.Sequential):
    """Linear layers with ReLU between them: `MLP(32, 256, 256, 2)` has three.

    Examples
    --------
    >>> import torch
    >>> from llpbench import MLP
    >>> MLP(32, 16, 2)(torch.zeros(5, 32)).shape
    torch.Size([5, 2])
    """

    def __init__(self, *widths: int) -> None:
        layers: list[nn.Module] = []
        for fan_in, fan_out in pairwise(widths):
            layers += [nn.Linear(fan_in, fan_out), nn.ReLU()]
        super().__init__(*layers[:-1])


class Network(nn.Module):
    """The modules of one member: encoder, prediction head, and modules added by a method."""

    encoder: Encoder
    head: nn.Module
    of_copy: tuple[str, ...] = ()
    """names of the parameters and buffers [copies, ...] that differ between copies of the encoder"""

    def __init__(self, encoder: Encoder, head: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head

    def forward(self, function: Callable[[Self], Any]) -> Any:
        """Return `function(self)`, so that `torch.func.functional_call` can replace the weights."""
        return function(self)

    def add(self, **modules: nn.Module) -> Self:
        """Add modules by name, and return this network."""
        for name, module in modules.items():
            setattr(self, name, module)
        return self

    if TYPE_CHECKING:  # the method knows the types of the modules that it adds

        def __getattr__(self, name: str) -> Any: ...


class Model:
    """A network as a method's loss and prediction get it: in training with a random stream, in prediction without.

    Inside a population its parameters are those of one member. Methods do not notice the other members.
    """

    def __init__(self, network: Network, random: Random | None = None) -> None:
        """`network` is the result of `Method.build`."""
        self.network = network
        self.random = random

    def frozen(self) -> Model:
        """Return the same network without dropout."""
        return Model(self.network)

    def encode(self, bags: Bags) -> Encoding:
        """Return row vectors [bags, size, dim] and tokens [bags, size, features, token_dim]."""
        return self.network.encoder(bags.rows, bags.mask, self.random)

    def log_proba(self, bags: Bags) -> Tensor:
        """Return the log of the predicted class probabilities [bags, size, classes]."""
        return self.classify(self.encode(bags).z)

    def classify(self, z: Tensor) -> Tensor:
        """Return log class probabilities of row vectors. They are float32 for every precision of the encoder."""
        logits: Tensor = self.network.head(z)
        return logits.float().log_softmax(dim=-1)
