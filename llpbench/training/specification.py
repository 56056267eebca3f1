"""Complete cells: all hyperparameters are filled in from methods, encoders and pretraining."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, is_dataclass, replace
from typing import Any

from llpbench.blocks.pretraining import PretrainingParams
from llpbench.core.cell import Cell, Protocol
from llpbench.core.errors import LLPBenchError
from llpbench.core.method import DirectMethod
from llpbench.core.ranges import read_params
from llpbench.core.registry import ENCODERS, METHODS
from llpbench.data.baggings import is_sized, parse_bagging


def make_cell(
    method: str,
    dataset: str,
    *,
    bag_size: int | None,
    bagging: str = "ordered",
    encoder: str = "saint",
    protocol: Protocol | None = None,
    params: Mapping[str, Any] | None = None,
    pretraining: str = "none",
    pretraining_params: Mapping[str, Any] | None = None,
    max_bags: int | None = None,
    numbers: str | None = None,
) -> Cell:
    """Return a cell with every hyperparameter filled in from the declarations of method and encoder.

    `params` and `pretraining_params` are hyperparameters that differ from the defaults, as values or texts. Raises
    `LLPBenchError` for unknown names and invalid values. Direct methods ignore `protocol`. They and methods with their
    own network ignore `encoder` and pretraining. A bagging with its own sizes ignores `bag_size`. `numbers` is one of
    `cell.NUMBERS`; by default it is the encoder's declaration, or z-scores without encoder. A method with its own
    network always uses z-scores.
    """
    if not is_sized(parse_bagging(bagging)[0]):
        bag_size = None
    entry = METHODS.entry(method)
    declared = entry.load()
    values = asdict(read_params(declared.Params, params or {}, owner=entry.name))
    cell = Cell(
        entry.name, dataset, bagging, bag_size, None, values, protocol=protocol or Protocol(), max_bags=max_bags
    )
    if issubclass(declared, DirectMethod):
        return replace(cell, protocol=None, numbers=numbers or "z")
    if not declared.takes_encoder:
        return cell
    network = ENCODERS.entry(encoder)
    sizes: Any = getattr(network.load(), "Params", None)
    if not (isinstance(sizes, type) and is_dataclass(sizes)):
        raise LLPBenchError(
            f"encoder {network.name!r} ({network.where}) states no `Params`. Give it a frozen dataclass of its sizes, "
            "empty if it has none."
        )
    defaults = {name: network.facts[name] for name, value in values.items() if value is None and name in network.facts}
    read_params(declared.Params, defaults, owner=f"encoder {network.name}")  # else every run would fail
    pretrained: dict[str, Any] = {}
    if pretraining != "none":
        pretrained = asdict(read_params(PretrainingParams, pretraining_params or {}, owner="pretraining"))
    return replace(
        cell,
        encoder=network.name,
        params=values | defaults,
        encoder_params=asdict(sizes()),
        pretraining=pretraining,
        pretraining_params={name: network.facts.get(name) if v is None else v for name, v in pretrained.items()},
        numbers=numbers or network.facts.get("numbers", "z"),
    )


def method_of(cell: Cell) -> Any:
    """Return the method of a cell, with the cell's hyperparameters."""
    declared = METHODS.get(cell.method)
    return declared(read_params(declared.Params, cell.params, owner=cell.method))


def configuration(cell: Cell) -> str:
    """Return the differences from the default configuration as text, such as `hidden=128, learning_rate=0.0003`."""
    texts = {name: f"{value:.4g}" if isinstance(value, float) else value for name, value in changed(cell).items()}
    return ", ".join(f"{name}={text}" for name, text in texts.items())


def changed(cell: Cell) -> dict[str, Any]:
    """Return a cell's hyperparameters that differ from its default configuration, by name.

    Names of pretraining and encoder hyperparameters start with `pretraining.` and `encoder.`.
    """
    bags: dict[str, Any] = {"bag_size": cell.bag_size, "bagging": cell.bagging}
    usual = make_cell(cell.method, cell.dataset, **bags, encoder=cell.encoder or "mlp", pretraining=cell.pretraining)
    parts = {"": "params", "pretraining.": "pretraining_params", "encoder.": "encoder_params"}
    return {
        prefix + name: value
        for prefix, part in parts.items()
        for name, value in cell.spec[part].items()
        if value != usual.spec[part].get(name)
    }
