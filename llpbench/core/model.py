"""Networks and what a loss sees of them: an encoder, a head and one random stream.

All randomness of a training step comes from `Random`, a counter-based generator: the number at a position is a hash of
(key, draw, position). The key is an ordinary tensor, so under `vmap` every member of a population has its own stream,
equal to the one it has when it trains alone. torch's own generators cannot do that: there a member's numbers depend on
how many train beside it.
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

    Every call draws fresh numbers; the same key and the same sequence of calls give the same numbers, on every device.
    """

    def __init__(self, key: Tensor) -> None:
        """`key`: 0-d int64 tensor in [0, 2**32)."""
        self._key = key
        self._draws = 0

    def bits(self, *shape: int) -> Tensor:
        """Uniform 32-bit words, in an int64 tensor."""
        return self._words(*shape).long() & _MASK

    def _words(self, *shape: int) -> Tensor:
        """The same words in int32, twice as fast on a CPU; in int64 for compilers, which may count on no overflow."""
        self._draws += 1
        start = _mix(self._key ^ (self._draws * 0x9E3779B9 & _MASK))
        positions = torch.arange(math.prod(shape), device=self._key.device)
        if torch.compiler.is_compiling():
            return _mix(_mix(start ^ positions) ^ start).reshape(shape)
        start = start.int()
        return _mix_int32(_mix_int32(start ^ positions.int()) ^ start).reshape(shape)

    def uniform(self, *shape: int) -> Tensor:
        """Uniform numbers in (0, 1), float32: of 23 bits, so that none is rounded to 1."""
        return ((self._words(*shape) >> 9 & 0x7FFFFF).float() + 0.5) * 2.0**-23

    def normal(self, *shape: int) -> Tensor:
        """Standard normal numbers (Box-Muller), float32."""
        radius = (-2.0 * self.uniform(*shape).log()).sqrt()
        return radius * (2.0 * math.pi * self.uniform(*shape)).cos()

    def permutation(self, size: int) -> Tensor:
        """A random permutation of `0 .. size-1`, int64."""
        return self.bits(size).argsort()

    def dropout(self, x: Tensor, probability: float) -> Tensor:
        """Zero elements of `x` with `probability` (to 1/256) and scale the rest up, as in `nn.Dropout`."""
        dropped = round(probability * 256)
        if dropped == 0:
            return x
        # a word serves four elements, a byte each: on a CPU this is three times as fast as torch's own dropout
        words = self._words(math.ceil(x.numel() / 4)).int()
        drawn = _bytes(words)[: x.numel()].reshape(x.shape)
        # 1.0 where `drawn >= dropped`, else 0.0: in floats, since what compilers make of stored booleans is slow
        keep = (drawn.float() - (dropped - 1)).clamp(0.0, 1.0)
        return x * (keep * (256 / (256 - dropped)))


_MASK = 0xFFFFFFFF

_MAPS_VIEWS = torch._C._dispatch_has_kernel_for_dispatch_key("aten::view.dtype", "FuncTorchBatched")
"""whether `vmap` can map a view of another type: torch 2.11 cannot"""


def _bytes(words: Tensor) -> Tensor:
    """The four bytes of each of [words] int32 words, lowest first: [4 * words] numbers from 0 to 255."""
    if _MAPS_VIEWS:
        return words.view(torch.uint8)
    return ((words[:, None] >> torch.arange(0, 32, 8, device=words.device)) & 0xFF).flatten()


def _mix(x: Tensor) -> Tensor:
    """A bijective hash of 32-bit words, from Wellons' hash prospector.

    Held in int64, where no product overflows: both factors are below 2**31. (Overflow wraps around in eager torch, but
    not in what a compiler makes of it.)
    """
    x = ((x ^ (x >> 16)) * 0x21F0AAAD) & _MASK
    x = ((x ^ (x >> 15)) * 0x735A2D97) & _MASK
    return x ^ (x >> 15)


def _mix_int32(x: Tensor) -> Tensor:
    """`_mix` of words held in int32: products wrap around, shifts bring in ones, which are masked."""
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
    """What an encoder makes of rows."""

    z: Tensor
    """[..., dim] the row vector (SAINT: the output at [CLS])"""
    tokens: Tensor
    """[..., features, dim] one vector a feature"""


class Encoder(nn.Module):
    """Base of encoders: rows to row vectors and feature tokens, without a Python loop over columns.

    `forward(rows, mask, random)` takes rows with leading dimensions [bags, size], the padding mask of those bags, and
    a random stream, or None to predict: there is no train/eval state. Subclasses state `Params`, a frozen dataclass of
    hyperparameters (part of a cell's specification), and set `dim` and `token_dim`.
    """

    dim: int
    """width of `z`"""
    token_dim: int
    """width of a feature token"""
    row_interaction: ClassVar[bool] = False
    """whether a row's encoding depends on the other rows it is given with"""
    contextual: ClassVar[bool] = True
    """whether the tokens know of one another; where not, only `z` has seen the whole row"""
    compiles: ClassVar[bool] = False
    """whether long trainings on a CPU repay compiled steps: so for deep encoders"""
    copies: int = 1
    """networks in one, with shared weights. The encoder is written for one of them; the engine makes the others by
    `another`, trains them by the mean of their losses, and predicts the mean of their probabilities"""
    of_copy: tuple[str, ...] = ()
    """names of the parameters that each copy has of its own; the copies share the others"""

    def another(self) -> Self:
        """Return the untrained encoder of one more copy. Only parameters in `of_copy` may differ from this one's."""
        return deepcopy(self)

    def embed(self, rows: Rows) -> Tensor:
        """[..., features, dim] embeddings of the single features, before they meet."""
        raise NotImplementedError

    def encode(self, embeddings: Tensor, mask: Tensor, random: Random | None) -> Encoding:
        """From feature embeddings, possibly perturbed or mixed, to the row vector and tokens."""
        raise NotImplementedError

    def forward(self, rows: Rows, mask: Tensor, random: Random | None) -> Encoding:
        return self.encode(self.embed(rows), mask, random)


class NoEncoder(Encoder):
    """Stands where a method brings its own network."""

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
    """The modules of one member: encoder, prediction head, and what a method adds."""

    encoder: Encoder
    head: nn.Module
    of_copy: tuple[str, ...] = ()
    """names of the parameters and buffers [copies, ...] that each copy of the encoder has of its own"""

    def __init__(self, encoder: Encoder, head: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head

    def forward(self, function: Callable[[Self], Any]) -> Any:
        """Return `function` of this network, for `torch.func.functional_call` to put other weights in place."""
        return function(self)

    def add(self, **modules: nn.Module) -> Self:
        """This network with further modules, by name."""
        for name, module in modules.items():
            setattr(self, name, module)
        return self

    if TYPE_CHECKING:  # what a method adds it knows itself

        def __getattr__(self, name: str) -> Any: ...


class Model:
    """What a method's loss and prediction see: a network in training (with a random stream) or predicting (without).

    Inside a population its parameters are those of one member; a method never notices the others.
    """

    def __init__(self, network: Network, random: Random | None = None) -> None:
        """`network`: what `Method.build` made."""
        self.network = network
        self.random = random

    def frozen(self) -> Model:
        """The same network without dropout."""
        return Model(self.network)

    def encode(self, bags: Bags) -> Encoding:
        """Row vectors [bags, size, dim] and tokens [bags, size, features, dim]."""
        encoding: Encoding = self.network.encoder(bags.rows, bags.mask, self.random)
        return encoding

    def log_proba(self, bags: Bags) -> Tensor:
        """[bags, size, classes] log of the predicted class probabilities."""
        return self.classify(self.encode(bags).z)

    def classify(self, z: Tensor) -> Tensor:
        """Log class probabilities of row vectors, in float32 whatever the encoder's precision."""
        logits: Tensor = self.network.head(z)
        return logits.float().log_softmax(dim=-1)
