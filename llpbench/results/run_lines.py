"""Fast reading of runs, for journals with many thousands of lines.

Lines of one cell, dataset or machine have parts in common, such as the specification. `RunLines` decodes and checks
each distinct part once, and only the results line by line. It accepts a line only if it is exactly as llpbench writes
it. `results/schema.py` reads all other lines, and names their faults.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Annotated, Any, NamedTuple, cast, get_type_hints

from pydantic import ConfigDict, TypeAdapter, with_config
from pydantic_core import SchemaValidator, from_json, to_json
from typing_extensions import TypedDict  # pydantic accepts `typing.TypedDict` only from Python 3.12 on

from llpbench.core.fields import Count, CriterionValue, Named
from llpbench.core.record import SCHEMA, CriterionResult, Record

_START = f'{{"schema":{SCHEMA},"run":"'.encode()
_CUTS = (b',"spec":{', b',"status":"', b',"data":{', b',"finished":"', b',"method":{')
"""Beginnings of the pieces of a line after the first. Every second piece is common to many lines."""
_JUDGED, _EARLIER_CURVES = b',"judged":[', b',"earlier_curves":{'
"""Beginnings of the last piece of a line."""
_COMMON = (
    ("spec",),
    ("data", "bags"),
    ("method", "dataset", "versions", "numerics", "code", "libraries", "hardware", "restamped"),
)
"""Fields of the common pieces."""


class _Piece(NamedTuple):
    value: dict[str, Any]
    keys: int
    """Number of keys, those of nested objects included."""


class RunLines:
    """Reader of the lines of a journal. Records share the objects of their common parts."""

    def __init__(self) -> None:
        self._pieces: dict[bytes, _Piece | None] = {}

    def read(self, line: bytes) -> Record | None:
        """Return the record of a run; None if the line is not exactly as llpbench writes it."""
        texts = _cut(line)
        if not texts:
            return None
        spec, data, method = (self._piece(text, names) for text, names in zip(texts[1::2], _COMMON, strict=False))
        if spec is None or data is None or method is None:
            return None
        try:
            start, outcome, finished, end = map(_decode, texts[::2])
            own = {**start, **outcome, **finished, **end}
            _own_validator().validate_python(own, strict=True)
            judged = own["judged"]
            results = {
                criterion: judged[result["judged"]] | {"validation": result["validation"]}
                for criterion, result in own["results"].items()
            }
        except (ValueError, IndexError):  # also pydantic's errors
            return None
        if line.count(b'":') != spec.keys + data.keys + method.keys + _keys(own):  # a key may appear twice
            return None
        record = {**start, **spec.value, **outcome, **data.value, **finished, **method.value, **end, "results": results}
        del record["judged"]
        if record["run"] != f"{record['cell']}-{record['seed']}" or (record["status"] == "ok" and not results):
            return None
        return cast(Record, record)

    def _piece(self, text: bytes, names: tuple[str, ...]) -> _Piece | None:
        if text not in self._pieces:
            self._pieces[text] = _common_piece(text, names)
        return self._pieces[text]


def _cut(line: bytes) -> list[bytes]:
    """Return the pieces of a line; none if one is missing. They may be cut in a wrong place."""
    if not line.startswith(_START) or not line.endswith(b"}"):
        return []
    starts = [0]
    for cut in _CUTS:
        starts.append(line.find(cut, starts[-1]))
        if starts[-1] < 0:
            return []
    judged = line.find(_JUDGED, starts[-1])
    earlier = line.find(_EARLIER_CURVES, starts[-1], judged)
    starts += [judged if earlier < 0 else earlier, len(line) - 1]
    return [line[start:stop] for start, stop in pairwise(starts)] if judged > 0 else []


def _decode(piece: bytes) -> dict[str, Any]:
    """Return the object with the members in a piece of a line. Raises `ValueError` if they are not whole members."""
    return cast(dict[str, Any], from_json(b"{%b}" % piece[1:], allow_inf_nan=False, cache_strings="keys"))


def _common_piece(text: bytes, names: tuple[str, ...]) -> _Piece | None:
    """Return a common piece; None if it has a fault or an infinite number."""
    try:
        value = _decode(text)
        _common_validator(names).validate_python(value, strict=True)
    except ValueError:
        return None
    again = to_json(value, inf_nan_mode="constants")
    return None if b"Infinity" in again else _Piece(value, again.count(b'":'))


def _keys(fields: dict[str, Any]) -> int:
    """Return the number of keys in the fields that each line has for itself, those of nested objects included."""
    nested = [fields["results"], fields["curves"], fields["times"], *fields["results"].values()]
    nested += [part for each in fields["judged"] for part in (each, each["test"], each["diagnostics"])]
    if "earlier_curves" in fields:
        nested += [fields["earlier_curves"], *fields["earlier_curves"].values()]
    return len(fields) + sum(map(len, nested))


@cache
def _common_validator(names: tuple[str, ...]) -> SchemaValidator:
    fields = get_type_hints(Record, include_extras=True)
    return _validator({name: fields[name] for name in names})


@cache
def _own_validator() -> SchemaValidator:
    """Return the validator of the fields that each line has for itself, as `results/packing.py` writes them."""
    common = {name for names in _COMMON for name in names}
    fields = get_type_hints(Record, include_extras=True)
    judgement = get_type_hints(CriterionResult, include_extras=True)
    validation = judgement.pop("validation")
    criteria = {name: _exactly({"judged": Count, "validation": kind}) for name, kind in CriterionValue.items()}
    other, judged = _exactly({"judged": Count, "validation": validation}), _exactly(judgement)
    own = {name: kind for name, kind in fields.items() if name not in common}
    own |= {"results": Annotated[dict[str, other], Named(criteria)], "judged": list[judged]}  # type: ignore[valid-type]
    return _validator(own)


def _validator(fields: dict[str, Any]) -> SchemaValidator:
    return cast(SchemaValidator, TypeAdapter(_exactly(fields)).validator)


def _exactly(fields: dict[str, Any]) -> Any:
    """Return the type of an object with these fields and no others."""
    return with_config(ConfigDict(extra="forbid"))(TypedDict("Fields", fields))  # type: ignore[operator, misc]
