"""Checks of every encoder and bagging on toy data, and of every dataset on this machine's copy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from llpbench.conformance.checks import CHECKS, CLOSE, LEARNED, LEARNING_EPOCHS, Check, checks_of
from llpbench.conformance.subject import USUAL, InapplicableError, Subject, require, with_awkward
from llpbench.core.bags import IntArray, Rows, Schema, Task
from llpbench.core.cell import is_without_labels
from llpbench.core.errors import DataError
from llpbench.core.method import MethodParams
from llpbench.core.metrics import holdout_criteria
from llpbench.core.model import Encoder, Encoding, Random
from llpbench.core.ranges import read_params
from llpbench.core.registry import METHODS, Entry
from llpbench.core.tables import Assignment, PublishedBags, Table
from llpbench.data.baggings import OWN_SIZES, format_bagging, is_sized, needed_options, options_of, parse_bagging
from llpbench.data.frames import read_parquet
from llpbench.data.loading import load_table, locate
from llpbench.data.specs import DatasetSpec, dataset_spec
from llpbench.data.splits import assign_bags
from llpbench.data.tasks import build_task
from llpbench.data.toy import pure_bags, toy_table

(_together,) = (check.function for check in CHECKS if check.name == "together")

_BAGS, _SIZE = 2, 6
"""number and size of the bags that encoders encode"""


class _EncoderSubject(Subject):
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

    @property
    def sizes(self) -> Any:
        """Its `Params`. Raises `FaultError` if it has none."""
        sizes = getattr(self.encoder, "Params", None)
        whole = isinstance(sizes, type) and is_dataclass(sizes) and sizes.__dataclass_params__.frozen  # type: ignore[attr-defined]
        require(whole, "it needs `Params`, a @dataclass(frozen=True) of its sizes, empty if it has none")
        return sizes

    def build(self, schema: Schema, dropout: float = 0.2) -> Encoder:
        """Return the untrained encoder."""
        torch.manual_seed(0)
        return self.encoder(schema, self.sizes(), dropout)

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


def _declaration_of_encoder(subject: _EncoderSubject) -> str:
    """Its declaration is complete and consistent."""
    is_encoder = isinstance(subject.encoder, type) and issubclass(subject.encoder, Encoder)
    require(is_encoder, f"{subject.encoder.__name__} must be a subclass of Encoder")
    for hook, takes in (("embed", "rows"), ("encode", "embeddings, mask, random")):
        own = getattr(subject.encoder, hook) is not getattr(Encoder, hook)
        require(own, f"{subject.encoder.__name__} needs {hook}({takes})")
    require(bool(subject.entry.summary), f"{subject.encoder.__name__} needs a docstring; lists show its first line")
    for fact in ("learning_rate", "hidden"):
        stated = isinstance(subject.entry.facts.get(fact), int | float)
        require(stated, f"methods use its {fact}: @register_encoder({subject.name!r}, learning_rate=1e-3, hidden=64)")
        read_params(MethodParams, {fact: subject.entry.facts[fact]}, owner=f"encoder {subject.name}")
    sizes = subject.sizes
    names = {name for name, _ in subject.built.named_parameters()}
    for name in subject.built.of_copy:
        require(name in names, f"of_copy names the parameters of a copy, got {name!r}. Available: {', '.join(names)}")
    require(subject.built.copies == 1 or bool(subject.built.of_copy), "each copy needs separate parameters: of_copy")
    return f"{len(fields(sizes))} sizes; {sum(weight.numel() for weight in subject.built.parameters()):,} parameters"


def _encodes(subject: _EncoderSubject) -> str:
    """It returns row vectors and a token for each feature."""
    found = subject.encode(subject.drawn())
    for name, value in zip(Encoding._fields, found, strict=True):
        require(bool(torch.isfinite(value[subject.mask]).all()), f"{name} is not finite")
    return f"z {found.z.shape[-1]}, tokens {found.tokens.shape[-1]} wide"


def _seeded_of_encoder(subject: _EncoderSubject) -> str:
    """Prediction is deterministic, and training draws only from its random stream."""
    rows = subject.drawn()
    before = {name: value.clone() for name, value in subject.built.state_dict().items()}
    once, again = subject.encode(rows).z, subject.encode(rows).z
    require(torch.equal(once, again), "two predictions differ: draw no random numbers without a random stream")
    first, same, other = (subject.encode(rows, key=key).z for key in (1, 1, 2))
    told = "one stream gives different encodings: draw random numbers only from the given stream"
    require(torch.equal(first, same), told)
    for name, value in subject.built.state_dict().items():
        told = f"{name!r} changes when rows are encoded: an encoder must not store anything of them"
        require(torch.equal(value, before[name]), told)
    return "dropout draws from its stream" if not torch.equal(first, other) else "it draws nothing"


def _padding(subject: _EncoderSubject) -> str:
    """Padding has no effect."""
    rows, rng = subject.drawn(), np.random.default_rng(0)
    numeric = torch.from_numpy(10 * rng.normal(size=rows.numeric.shape)).float()
    dirty = rows._replace(numeric=torch.where(subject.mask[..., None], rows.numeric, numeric))
    one, other = (subject.encode(each) for each in (rows, dirty))
    for name, first, second in zip(Encoding._fields, one, other, strict=True):
        same = torch.allclose(first[subject.mask], second[subject.mask], atol=1e-5)
        require(same, f"{name} of rows depends on padding: use the mask")
    return "garbage in the padding changes nothing"


def _row_interaction(subject: _EncoderSubject) -> str:
    """Rows influence each other only if this is declared."""
    rows = subject.drawn()
    changed = rows.numeric.clone()
    changed[0, 0] += 1.0
    difference = (subject.encode(rows._replace(numeric=changed)).z - subject.encode(rows).z).abs().amax(dim=-1)
    require(float(difference[0, 0]) > 0, "a row's vector does not depend on its numbers")
    seen = float(difference[0, 1:].max()) > CLOSE
    return _declared(subject, "row_interaction", seen, "a row's vector depends on other rows of its bag", "rows")


def _contextual(subject: _EncoderSubject) -> str:
    """Tokens influence each other only if this is declared."""
    rows = subject.drawn()
    changed = rows.numeric.clone()
    changed[..., 0] += 1.0
    difference = (subject.encode(rows._replace(numeric=changed)).tokens - subject.encode(rows).tokens).abs()
    moved = [float(difference[subject.mask][:, place].max()) > CLOSE for place in range(difference.shape[2])]
    return _declared(subject, "contextual", sum(moved) > 1, "a feature's token depends on another feature", "tokens")


def _declared(subject: _EncoderSubject, fact: str, seen: bool, what: str, who: str) -> str:
    """Return whether parts influence each other. Raises `FaultError` if the encoder declares something else."""
    said = getattr(subject.encoder, fact)
    require(said or not seen, f"{what}: declare {fact} = True")
    require(seen or not said, f"{who} do not influence each other: declare {fact} = False")
    return "they do" if seen else "they do not"


def _awkward_of_encoder(subject: _EncoderSubject) -> str:
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


def _learns(subject: _EncoderSubject) -> str:
    """It learns pure bags with the proportion loss."""
    task = build_task(*pure_bags(2))
    auc = holdout_criteria(subject.learn(task, epochs=LEARNING_EPOCHS).proba, task.test)["auc"]
    require(auc >= LEARNED, f"AUC {auc:.3f} on well-separated classes in pure bags, below {LEARNED}")
    return f"AUC {auc:.3f}"


_ROWS = 3000
_BAG_SIZES = (7, 64)


def _published(table: Table) -> Table:
    """Return the same rows without labels, in bags with published counts."""
    bags = np.random.default_rng(0).permutation(np.arange(len(table)) // _BAG_SIZES[1])
    counts = np.zeros((bags.max() + 1, len(table.classes)))
    np.add.at(counts, (bags, table.row_labels), 1)
    return replace(table, labels=None, published=PublishedBags(bags, counts, 0.0))


@dataclass
class _BaggingSubject:
    """A bagging with its default options; required options name a feature of the table."""

    entry: Entry
    dataset: str | None = None  # source of rows instead of toys; nothing is downloaded

    @cached_property
    def text(self) -> str:
        """The bagging in the syntax of `--baggings`."""
        named: tuple[str, ...] = ("d",)
        if self.dataset is not None:
            keys, table = dataset_spec(self.dataset).natural_keys, self._whole
            named = tuple(keys[0].split("+")) if keys else (*table.categorical_names, *table.numeric_names)[:1]
        return format_bagging(self.entry.name, dict.fromkeys(needed_options(self.entry.name), named))

    @cached_property
    def table(self) -> Table:
        return self.fresh()

    @cached_property
    def _whole(self) -> Table:
        assert self.dataset is not None
        return load_table(self.dataset, download=False)

    def fresh(self) -> Table:
        """Return a new table of data that the bagging takes: a toy, or random rows of the dataset."""
        if self.dataset is None:
            table = toy_table(_ROWS)
            return _published(table) if is_without_labels(self.entry.name) else table
        if (whole := self._whole).published is not None:  # its counts are of whole bags
            return replace(whole, numeric=whole.numeric.copy(), categorical=whole.categorical.copy())
        return _taken(whole, np.resize(np.random.default_rng(0).permutation(len(whole)), _ROWS))

    @property
    def sizes(self) -> tuple[int | None, ...]:
        return _BAG_SIZES if is_sized(self.entry.name) else (None,)

    def bags(self, table: Table, size: int | None, seed: int = 0) -> Assignment:
        """Return split and bags, checked by the engine: rows from the input, each once, in bags of the given size."""
        try:
            return assign_bags(table, self.text, size, seed)
        except DataError as error:
            raise InapplicableError(f"{error} Name a dataset that has it: --dataset NAME.") from error


def _declaration_of_bagging(subject: _BaggingSubject) -> str:
    """Its declaration is complete and consistent."""
    require(bool(subject.entry.summary), f"{subject.entry.name} needs a docstring; its first line is shown in lists")
    own = {name: value for name, value in options_of(subject.entry.name).items() if name not in OWN_SIZES}
    for name, value in own.items():
        is_text = name in needed_options(subject.entry.name) or isinstance(value, bool | int | float | str | tuple)
        require(is_text, f"option {name!r}: default {value!r} cannot be written as a text")
    again = parse_bagging(subject.text)
    require(format_bagging(*again) == subject.text, f"{subject.text!r} is not read back as written")
    sized = "of a given size" if is_sized(subject.entry.name) else "of varying sizes"
    return f"bags {sized}; " + (f"options {', '.join(own)}" if own else "no options")


def _bags_rows(subject: _BaggingSubject) -> str:
    """It puts rows into bags of the given size, each row at most once."""
    numbers = []
    for size in subject.sizes:
        found = subject.bags(subject.table, size)
        sizes = (found.train >= 0).sum(axis=1)
        numbers.append(f"{len(sizes):,} of {sizes.min()}" + (f" to {sizes.max()}" if sizes.max() > sizes.min() else ""))
    return f"{', '.join(numbers)} training rows"


def _seeded_of_bagging(subject: _BaggingSubject) -> str:
    """Its generator determines the bags."""
    for size in subject.sizes:
        np.random.seed(0)  # noqa: NPY002  (finds a bagging that draws from it)
        first = subject.bags(subject.table, size)
        np.random.seed(1)  # noqa: NPY002
        same = first.manifest == subject.bags(subject.table, size).manifest
        require(same, "one seed gives different bags: draw random numbers only from the given generator")
    return "one seed gives the same bags"


def _harmless(subject: _BaggingSubject) -> str:
    """It leaves the table unchanged."""
    table = subject.fresh()
    before = table.fingerprint
    subject.bags(table, subject.sizes[0])
    require(replace(table).fingerprint == before, "it modifies the table: sort or standardise a copy")
    return "the table is unchanged"


def _awkward_of_bagging(subject: _BaggingSubject) -> str:
    """Missing values, constant columns and a single kind of feature do no harm."""
    if subject.dataset is not None:
        raise InapplicableError(f"tried only on {subject.dataset}")
    if needed_options(subject.entry.name):
        raise InapplicableError("it uses only the features in its options")
    if is_without_labels(subject.entry.name):
        raise InapplicableError("it uses the published bags")

    def bags(table: Table, _: Assignment) -> Assignment:
        return subject.bags(_taken(table, np.resize(np.arange(len(table)), _ROWS)), subject.sizes[0])

    return with_awkward(subject, bags)


def _keyed(subject: _BaggingSubject) -> str:
    """If it is declared keyed, the bag of a row depends on that row alone."""
    if not subject.entry.facts["keyed"]:
        raise InapplicableError("not declared: new rows have no bag")
    found = subject.bags(subject.table, None)
    assert found.test_bags is not None
    pairs = [_of_row(found.train), dict(zip(found.split.test.tolist(), found.test_bags.tolist(), strict=True))]
    bags = _of_row(subject.bags(subject.table, None, 1).train)
    for part in pairs:
        both = {(bag, bags[row]) for row, bag in part.items() if row in bags and bag >= 0}
        require(len(both) == len({bag for bag, _ in both}), "rows of one bag are in several bags of another seed")
    return "two seeds put rows into the same bags"


def _taken(table: Table, rows: IntArray) -> Table:
    parts: dict[str, Any] = {name: getattr(table, name)[rows] for name in ("numeric", "categorical", "labels")}
    return replace(table, **parts)


def _of_row(bags: IntArray) -> dict[int, int]:
    return {int(row): number for number, bag in enumerate(bags) for row in bag[bag >= 0]}


_MOST_IN_BAG = 256
"""largest number of rows per bag"""


@dataclass
class _DatasetSubject:
    """A dataset; nothing is downloaded for it."""

    entry: Entry

    @cached_property
    def spec(self) -> DatasetSpec:
        return dataset_spec(self.entry.name)

    @cached_property
    def table(self) -> Table:
        """Table of the dataset, checked against its declaration."""
        if locate(self.spec) is None:
            fetch = f"llpbench data fetch {self.entry.name}"
            raise InapplicableError(f"not on this machine: {fetch}" if self.spec.remote else self.spec.absence)
        return load_table(self.entry.name, download=False)

    @property
    def labelled(self) -> Table:
        """The table, if its labels are known. Raises `InapplicableError` otherwise."""
        if self.table.labels is None:
            raise InapplicableError("the labels of its rows are unknown")
        return self.table


def _declaration_of_dataset(subject: _DatasetSubject) -> str:
    """Its declaration is complete and consistent."""
    spec = subject.spec
    require(bool(spec.summary), f"{subject.entry.name} needs a docstring; its first line is shown in lists")
    if spec.remote is not None:
        require(spec.licence != "not stated", "a dataset for download must state its licence")
        told = f"a dataset for download must state the sha256 of its table (llpbench data fetch {spec.name})"
        require(bool(spec.sha256 or spec.facts), told)
    return f"licence: {spec.licence}"


def _loads(subject: _DatasetSubject) -> str:
    """Its data match the declaration."""
    table = subject.table
    return f"{len(table):,} rows, {len(table.numeric_names)} + {len(table.categorical_names)} features"


def _unchanged(subject: _DatasetSubject) -> str:
    """Prepared data stay unchanged when prepared again."""
    assert subject.table is not None
    place = locate(subject.spec)
    assert place is not None
    if place.path.suffix != ".parquet":
        raise InapplicableError("its source is not a parquet file")
    first = subject.spec.frame(read_parquet(place.path), "a first time")
    again = subject.spec.prepare(first.copy())
    require(first.equals(again[first.columns]), "its function changes its own output: check for the target")
    return "prepared twice, the same"


def _classes(subject: _DatasetSubject) -> str:
    """Every class is in every part of a split."""
    table = subject.labelled
    counts = np.bincount(table.row_labels, minlength=len(table.classes))
    require(len(table.classes) >= 2, f"there is only one class: {table.classes}")
    rarest = int(counts.argmin())
    told = f"class {table.classes[rarest]!r} has {counts[rarest]} rows: a split needs at least 10"
    require(counts[rarest] >= 10, told)
    return ", ".join(f"{name} {count / len(table):.1%}" for name, count in zip(table.classes[:6], counts, strict=False))


def _features(subject: _DatasetSubject) -> str:
    """No feature is constant or reveals the label by itself."""
    table = subject.labelled
    for place, name in enumerate(table.categorical_names):
        codes = table.categorical[:, place]
        values = np.unique(codes)
        require(len(values) > 1, f"feature {name!r} is constant: leave it out")
        if len(values) <= len(table) / 10:  # names and identifiers differ in each row
            most = sum(np.bincount(table.row_labels[codes == value]).max() for value in values) / len(table)
            require(most < 1.0, f"feature {name!r} reveals the label by itself: is it made from the target?")
    for place, name in enumerate(table.numeric_names):
        numbers = table.numeric[:, place]
        known = ~np.isnan(numbers)
        require(len(np.unique(numbers[known])) > 1, f"feature {name!r} is constant: leave it out")
        order = np.argsort(numbers[known], kind="stable")
        labels = table.row_labels[known][order]
        runs = 1 + int((np.diff(labels) != 0).sum())
        require(runs > len(table.classes), f"feature {name!r} reveals the label by itself: is it made from the target?")
    return f"{len(table.numeric_names) + len(table.categorical_names)} checked"


def _bags_of_dataset(subject: _DatasetSubject) -> str:
    """Its rows fill bags, also by its natural keys."""
    table = subject.table
    if table.labels is None:
        return f"{len(assign_bags(table, 'given', None, 0).train):,} published bags"
    size = min(_MOST_IN_BAG, len(table) // 10)
    found = [f"{len(assign_bags(table, 'ordered', size, 0).train):,} of {size}"]
    for key in subject.spec.natural_keys:
        made = assign_bags(table, f"column:by={key}", None, 0)
        sizes = (made.train >= 0).sum(axis=1)
        require(len(sizes) > 1, f"natural key {key!r} makes one bag of all rows")
        found.append(f"{len(sizes):,} by {key}")
    return "; ".join(found)


_OF_ENCODERS = (
    *checks_of(_declaration_of_encoder, _encodes, _seeded_of_encoder, _padding),
    *checks_of(_row_interaction, _contextual, _awkward_of_encoder, _together, _learns),
)
_OF_BAGGINGS = checks_of(
    _declaration_of_bagging, _bags_rows, _seeded_of_bagging, _harmless, _awkward_of_bagging, _keyed
)
_OF_DATASETS = checks_of(_declaration_of_dataset, _loads, _unchanged, _classes, _features, _bags_of_dataset)
OTHER_KINDS: Mapping[str, tuple[Callable[..., Any], tuple[Check, ...]]] = {
    "encoder": (_EncoderSubject, _OF_ENCODERS),
    "bagging": (_BaggingSubject, _OF_BAGGINGS),
    "dataset": (_DatasetSubject, _OF_DATASETS),
}
"""for each kind but methods: the class that wraps an entry for its checks, and the checks"""
