"""The journal's lines: JSON, checked when it is read.

Several criteria often select the same epoch, and for a method without epochs all of them do. A line holds each
evaluation once, in a list, and the position of each criterion's evaluation::

    "judged": [{"epoch": 7, "diagnostics": {}, "test": {"auc": 0.9}}],
    "results": {"auc": {"judged": 0, "validation": 0.8}, "mpiou": {"judged": 0, "validation": 0.7}}

In memory each criterion has its evaluation (`core.record.CriterionResult`).
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any, cast, get_type_hints

from pydantic import TypeAdapter, ValidationError
from pydantic_core import SchemaValidator, from_json, to_json
from typing_extensions import TypedDict  # pydantic accepts `typing.TypedDict` only from Python 3.12 on

from llpbench.core.cell import Tuning
from llpbench.core.criteria import CRITERIA
from llpbench.core.record import ROUNDING, SCHEMA, Count, Evaluation, Real, Record, TuningRecord
from llpbench.core.text import one_line

_LONGEST = 2**23
"""Largest number of bytes of a line. The longest line so far has a hundredth of it."""
_LATEST_SCHEMA = 9_999
"""Largest schema number that is not considered damage."""
_MOST_FAULTS = 1_000
"""With more faults in a line than this, a warning gives only their number."""
_LONGEST_VALUE = 40
"""Largest number of characters of a value in a warning."""


class DamagedError(ValueError):
    """A line that is no record. The message names the field and its fault."""

    def __init__(self, reason: str, *, is_json: bool = True) -> None:
        """`is_json`: whether the line is complete JSON; otherwise it may be torn."""
        super().__init__(one_line(reason))
        self.is_json = is_json


class OtherSchemaError(ValueError):
    """A line of another version of llpbench."""

    def __init__(self, schema: int) -> None:
        super().__init__()
        self.schema = schema


def to_line(record: Record | TuningRecord) -> bytes:
    """Return a record as a line, with null for NaN and infinities."""
    value: dict[str, Any] = {"schema": SCHEMA, **record}
    if "results" in value:
        judged: dict[str, tuple[int, dict[str, Any]]] = {}
        results = {}
        for criterion, result in value["results"].items():
            evaluation = {name: part for name, part in result.items() if name != "validation"}
            position, _ = judged.setdefault(json.dumps(evaluation, sort_keys=True), (len(judged), evaluation))
            results[criterion] = {"judged": position, "validation": result.get("validation")}
        value |= {"results": results, "judged": [evaluation for _, evaluation in judged.values()]}
    return to_json(value, inf_nan_mode="null") + b"\n"


def decode(line: bytes) -> dict[str, Any]:
    """Return the object in a line, not yet checked. Raises `DamagedError` and `OtherSchemaError`."""
    if len(line) > _LONGEST:
        raise DamagedError(f"it is longer than {_LONGEST:,} bytes")
    try:
        value = from_json(line, allow_inf_nan=False, cache_strings="keys")
    except ValueError as error:
        reason = f"it is not JSON ({str(error).replace('line 1 column', 'byte')})"
        raise DamagedError(reason, is_json=False) from None
    if not isinstance(value, dict) or not {"run", "tuning"} & value.keys():
        raise DamagedError("it is neither a run nor a search")
    schema = value.get("schema")
    if type(schema) is not int or not 0 < schema <= _LATEST_SCHEMA:
        raise DamagedError(f"schema is {_shortened(schema)}, not a schema number")
    if schema != SCHEMA:
        raise OtherSchemaError(schema)
    return value


def read_line(line: bytes) -> Record | TuningRecord:
    """Return the record in a line. Unknown keys are kept: later versions may add some.

    Raises `DamagedError`, and `OtherSchemaError` for a line of another version.
    """
    value = decode(line)
    return _run(value) if "run" in value else _search(value)


class _Selected(TypedDict):
    judged: Count
    validation: Real | None


@cache
def validator(kind: type) -> SchemaValidator:
    """Return the validator of a kind of record, as it is in a line."""
    fields = get_type_hints(kind, include_extras=True)
    if kind is Record:
        fields |= {"results": dict[str, _Selected], "judged": list[Evaluation]}
    return cast(SchemaValidator, TypeAdapter(TypedDict("Line", fields)).validator)  # type: ignore[operator, misc]


def _run(value: dict[str, Any]) -> Record:
    _require(value, Record)
    name, judged, results = f"{value['cell']}-{value['seed']}", value.pop("judged"), value["results"]
    if value["run"] != name:
        raise DamagedError(f"run is {_shortened(value['run'])}, but cell and seed give {name}")
    for field in ("results", "bags", "hardware"):
        if value["status"] == "ok" and not value[field]:
            raise DamagedError(f"{field} is empty, though status is ok")
    for criterion, selected in results.items():
        position, number = selected.pop("judged"), selected["validation"]
        if position >= len(judged):
            raise DamagedError(f"results.{criterion}.judged is {position}, not the position of an evaluation")
        if number is not None and criterion in CRITERIA:
            low, high = CRITERIA[criterion].bounds
            if not low - ROUNDING <= number <= high + ROUNDING:
                raise DamagedError(f"results.{criterion}.validation is {number}. It must be from {low:g} to {high:g}")
        results[criterion] = judged[position] | selected
    return cast(Record, value)


def _search(value: dict[str, Any]) -> TuningRecord:
    """Return the record of a search. Raises `DamagedError` also for one that this version cannot repeat."""
    _require(value, TuningRecord)
    try:
        Tuning.of(value["spec"])
    except TypeError as error:
        raise DamagedError(f"spec is of another version ({error})") from None
    return cast(TuningRecord, value)


def _require(value: dict[str, Any], kind: type) -> None:
    """Raise `DamagedError` with the first fault of a record: `seed is -1. Input should be greater than ...`."""
    try:
        validator(kind).validate_python(value, strict=True)
    except ValidationError as error:
        if error.error_count() > _MOST_FAULTS:  # each of them would become an object
            raise DamagedError(f"{error.error_count():,} of its fields are wrong") from None
        first = error.errors(include_url=False)[0]
        field = ".".join(one_line(part, _LONGEST_VALUE) for part in first["loc"])
        if first["type"] == "missing":
            raise DamagedError(f"{field} is missing") from None
        raise DamagedError(f"{field} is {_shortened(first['input'])}. {first['msg']}") from None


def _shortened(value: Any) -> str:
    """Return a value on one line, shortened."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else f"a list of {len(value)}"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"
