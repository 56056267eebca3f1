"""Checks of every encoder, on toy data."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from llpbench.conformance.checks import CLOSE, LEARNED, LEARNING_EPOCHS, checks_of, together
from llpbench.conformance.subject import USUAL, Subject, require, with_awkward
from llpbench.core.bags import Rows, Schema, Task
from llpbench.core.metrics import holdout_criteria
from llpbench.core.model import Encoder, Encoding, Random
from llpbench.core.registry import METHODS, Entry
from llpbench.core.tables import Assignment, Table
from llpbench.data.tasks import build_task
from llpbench.data.toy import pure_bags

_DROPOUT = 0.2
_BAGS, _SIZE = 2, 6


class EncoderSubject(Subject):
    """An encoder with its defaults, trained by the proportion loss (`dllp`) on toy data."""

    def __init__(self, entry: Entry) -> None:
        self.encoder: Any = entry.load()
        super().__init__(METHODS.entry("dllp"), {"hidden": entry.facts.get("hidden", USUAL["hidden"])})
        self.entry, self.name = entry, entry.name
        self.mask = torch.ones(_BAGS, _SIZE, dtype=torch.bool)
        self.mask[1, _SIZE // 2 :] = False

    @cached_property
    def built(self) -> Encoder:
        """The encoder for the toy table, always the same."""
        return self.build(self.toy().schema)

    def build(self, schema: Schema, dropout: float = _DROPOUT) -> Encoder:
        """Return the untrained encoder."""
        torch.manual_seed(0)
        found: Encoder = self.encoder(schema, self.encoder.Params(), dropout)
        return found

    def drawn(self, task: Task | None = None) -> Rows:
        """Return [bags, size] rows of the toy task."""
        index = torch.arange(_BAGS * _SIZE).reshape(_BAGS, _SIZE)
        return Rows(*(torch.from_numpy(part)[index] for part in (task or self.toy()).train.rows))

    def encode(self, rows: Rows, *, key: int | None = None, encoder: Encoder | None = None) -> Encoding:
        """Return the encoding of rows; `key`: key of the random stream of a training step, None to predict.

        Raises `FaultError` if its shapes are not those of the contract.
        """
        made = encoder or self.built
        sizes = [getattr(made, name, None) for name in ("dim", "token_dim")]
        require(None not in sizes, "set self.dim and self.token_dim, the widths of z and of a token, in __init__")
        features = rows.numeric.shape[-1] + rows.categorical.shape[-1]
        with torch.no_grad():
            embedded = made.embed(rows)
            _require_shape("embed", embedded, (_BAGS, _SIZE, features, made.token_dim))
            found = made.encode(embedded, self.mask, None if key is None else Random(torch.tensor(key)))
        require(isinstance(found, Encoding), f"encode must give an Encoding(z, tokens), got {type(found).__name__}")
        _require_shape("z of encode", found.z, (_BAGS, _SIZE, made.dim))
        _require_shape("tokens of encode", found.tokens, (_BAGS, _SIZE, features, made.token_dim))
        return found


def _require_shape(what: str, value: Any, shape: tuple[int, ...]) -> None:
    however = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
    require(however == shape, f"{what} must be of shape {shape}, got {however}")


def _declaration(subject: EncoderSubject) -> str:
    """Its declaration is complete and consistent."""
    require(
        isinstance(subject.encoder, type) and issubclass(subject.encoder, Encoder),
        f"{subject.encoder.__name__} must be a subclass of Encoder",
    )
    for hook, takes in (("embed", "rows"), ("encode", "embeddings, mask, random")):
        own = getattr(subject.encoder, hook) is not getattr(Encoder, hook)
        require(own, f"{subject.encoder.__name__} needs {hook}({takes})")
    require(bool(subject.entry.summary), f"{subject.encoder.__name__} needs a docstring; lists show its first line")
    for fact in ("learning_rate", "hidden"):
        stated = isinstance(subject.entry.facts.get(fact), int | float)
        require(stated, f"methods use its {fact}: @register_encoder({subject.name!r}, learning_rate=1e-3, hidden=64)")
    sizes = getattr(subject.encoder, "Params", None)
    whole = isinstance(sizes, type) and is_dataclass(sizes) and sizes.__dataclass_params__.frozen  # type: ignore[attr-defined]
    require(whole, "it needs `Params`, a @dataclass(frozen=True) of its sizes, empty if it has none")
    assert sizes is not None
    names = {name for name, _ in subject.built.named_parameters()}
    for name in subject.built.of_copy:
        require(name in names, f"of_copy names the parameters of a copy, got {name!r}. Available: {', '.join(names)}")
    require(subject.built.copies == 1 or bool(subject.built.of_copy), "copies need parameters of their own: of_copy")
    return f"{len(fields(sizes))} sizes; {sum(weight.numel() for weight in subject.built.parameters()):,} parameters"


def _encodes(subject: EncoderSubject) -> str:
    """It returns row vectors and a token for each feature."""
    found = subject.encode(subject.drawn())
    for name, value in zip(Encoding._fields, found, strict=True):
        require(bool(torch.isfinite(value[subject.mask]).all()), f"{name} is not finite")
    return f"z {found.z.shape[-1]}, tokens {found.tokens.shape[-1]} wide"


def _seeded(subject: EncoderSubject) -> str:
    """Prediction is deterministic, and training draws only from its random stream."""
    rows = subject.drawn()
    before = {name: value.clone() for name, value in subject.built.state_dict().items()}
    once, again = subject.encode(rows).z, subject.encode(rows).z
    require(torch.equal(once, again), "two predictions differ: draw no random numbers without a random stream")
    first, same, other = (subject.encode(rows, key=key).z for key in (1, 1, 2))
    require(
        torch.equal(first, same), "one stream gives different encodings: draw random numbers only from the given stream"
    )
    for name, value in subject.built.state_dict().items():
        require(
            torch.equal(value, before[name]),
            f"{name!r} changes when rows are encoded: an encoder must not store anything of them",
        )
    return "dropout draws from its stream" if not torch.equal(first, other) else "it draws nothing"


def _padding(subject: EncoderSubject) -> str:
    """Padding has no effect."""
    rows, rng = subject.drawn(), np.random.default_rng(0)
    numeric = torch.from_numpy(10 * rng.normal(size=rows.numeric.shape)).float()
    dirty = rows._replace(numeric=torch.where(subject.mask[..., None], rows.numeric, numeric))
    one, other = (subject.encode(each) for each in (rows, dirty))
    for name, first, second in zip(Encoding._fields, one, other, strict=True):
        same = torch.allclose(first[subject.mask], second[subject.mask], atol=1e-5)
        require(same, f"{name} of rows depends on padding: use the mask")
    return "garbage in the padding changes nothing"


def _row_interaction(subject: EncoderSubject) -> str:
    """Rows influence one another only if this is declared."""
    rows = subject.drawn()
    changed = rows.numeric.clone()
    changed[0, 0] += 1.0
    difference = (subject.encode(rows._replace(numeric=changed)).z - subject.encode(rows).z).abs().amax(dim=-1)
    require(float(difference[0, 0]) > 0, "a row's vector does not depend on its numbers")
    seen = float(difference[0, 1:].max()) > CLOSE
    said = subject.encoder.row_interaction
    require(said or not seen, "a row's vector depends on other rows of its bag: declare row_interaction = True")
    require(seen or not said, "rows do not influence one another: declare row_interaction = False")
    return "they do" if seen else "they do not"


def _contextual(subject: EncoderSubject) -> str:
    """Tokens influence one another only if this is declared."""
    rows = subject.drawn()
    changed = rows.numeric.clone()
    changed[..., 0] += 1.0
    difference = (subject.encode(rows._replace(numeric=changed)).tokens - subject.encode(rows).tokens).abs()
    moved = [float(difference[subject.mask][:, place].max()) > CLOSE for place in range(difference.shape[2])]
    seen, said = sum(moved) > 1, subject.encoder.contextual
    require(said or not seen, "a feature's token depends on another feature: declare contextual = True")
    require(seen or not said, "tokens do not influence one another: declare contextual = False")
    return "they do" if seen else "they do not"


def _awkward(subject: EncoderSubject) -> str:
    """Missing values, constant columns, unseen values and a single kind of feature do no harm."""

    def encode(table: Table, assignment: Assignment) -> None:
        task = build_task(table, assignment)
        z = subject.encode(subject.drawn(task), encoder=subject.build(task.schema)).z
        require(bool(torch.isfinite(z[subject.mask]).all()), "z is not finite")

    tried = with_awkward(subject, encode)
    rows = subject.drawn()
    shown = subject.encode(rows._replace(missing=torch.zeros_like(rows.missing))).z
    hidden = subject.encode(rows._replace(missing=torch.ones_like(rows.missing))).z
    require(not torch.allclose(shown, hidden), "it treats a missing number as 0: use rows.missing")
    return tried


def _learns(subject: EncoderSubject) -> str:
    """It learns pure bags with the proportion loss."""
    task = build_task(*pure_bags(2))
    auc = holdout_criteria(subject.learn(task, epochs=LEARNING_EPOCHS).proba, task.test)["auc"]
    require(auc >= LEARNED, f"AUC {auc:.3f} on well-separated classes in pure bags, below {LEARNED}")
    return f"AUC {auc:.3f}"


ENCODER_CHECKS = checks_of(
    _declaration, _encodes, _seeded, _padding, _row_interaction, _contextual, _awkward, together, _learns
)
