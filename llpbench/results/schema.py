"""Complete check of a line of a journal against the types and bounds in `core/record.py`.

The check names the first fault of a damaged line. `results/run_lines.py` reads most lines faster.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from functools import cache
from typing import Any, cast, get_type_hints

from pydantic import TypeAdapter, ValidationError
from pydantic_core import SchemaValidator, from_json, to_json
from typing_extensions import TypedDict  # pydantic accepts `typing.TypedDict` only from Python 3.12 on

from llpbench.core.fields import CriterionValue
from llpbench.core.record import SCHEMA, Record, TuningRecord
from llpbench.core.text import one_line
from llpbench.core.tuning_spec import Tuning
from llpbench.results.old_sources import with_versions
from llpbench.results.packing import UNPACKED, PackingError, unpacked

LONGEST_LINE = 2**23
"""Largest number of bytes of a line. The longest line so far has a hundredth of it."""
_WITH_SOURCES = 3
"""Schema whose lines, like those of schema 2, have hashes of sources instead of versions."""
_LATEST_SCHEMA = 9_999
"""Largest schema number that is not considered damage."""
_MOST_FAULTS = 1_000
"""With more faults in a line than this, a warning gives only their number."""
_LONGEST_VALUE = 40
"""Largest number of characters of a value in a warning."""

_WORDS = {
    "dict_type": "an object",
    "list_type": "a list",
    "string_type": "text",
    "bool_type": "true or false",
    "literal_error": "one of {expected}",
    "too_short": "a list of {min_length}",
    "too_long": "a list of {max_length}",
}
"""Expected values by pydantic's name of the error, for fields without a description."""


class DamagedError(ValueError):
    """A line that is no record; the message names the faulty field and its fault."""

    def __init__(self, reason: str) -> None:
        super().__init__("".join(char if char.isprintable() else "?" for char in one_line(reason)))


class NotJSONError(DamagedError):
    """A line that is not even complete JSON, perhaps torn."""


def decode(line: bytes) -> dict[str, Any]:
    """Return the object in a line of a journal, of any schema, not yet validated.

    Lines of schema 2 and 3 are returned as schema 4, lines of another schema unchanged. Non-numbers (NaN, 1e999)
    become null. Raises `NotJSONError`, and `DamagedError` for lines that no version of llpbench has written.
    """
    if len(line) > LONGEST_LINE:
        raise DamagedError(f"it is longer than {LONGEST_LINE:,} bytes")
    try:
        value = from_json(line, cache_strings="keys")
    except ValueError as error:
        raise NotJSONError(f"it is not JSON ({str(error).replace('line 1 column', 'byte')})") from None
    if not isinstance(value, dict) or not {"run", "tuning"} & value.keys():
        raise DamagedError("it is neither a run nor a search")
    encoded = to_json(value, inf_nan_mode="constants")
    if encoded.count(b'":') != line.count(b'":'):  # keys repeat, or there are spaces before colons
        json.loads(line, object_pairs_hook=_without_duplicates)
    if b"NaN" in encoded or b"Infinity" in encoded:
        value = from_json(to_json(value, inf_nan_mode="null"))
    schema = value.get("schema")
    if type(schema) is not int or not 0 < schema <= _LATEST_SCHEMA:
        raise DamagedError(f"schema is {_shortened(schema)}, not a schema number")
    if schema not in (UNPACKED, _WITH_SOURCES, SCHEMA):
        return cast(dict[str, Any], value)
    if schema != SCHEMA:
        value = with_versions({**value, "schema": SCHEMA})
    try:
        return value if schema == UNPACKED else unpacked(value)
    except PackingError as error:
        raise DamagedError(str(error)) from None


def as_run(value: dict[str, Any]) -> Record:
    """Return a decoded object as the record of a run. Raises `DamagedError` with its first fault."""
    _require(value, Record)
    run = cast(Record, value)
    name = f"{run['cell']}-{run['seed']}"
    if run["run"] != name:
        raise DamagedError(f"run is {_shortened(run['run'])}, but cell and seed give {name}")
    if run["status"] == "ok" and not run["results"]:
        raise DamagedError("results is empty, though status is ok")
    for criterion, result in run["results"].items():
        _check(criterion, result["validation"], f"results.{criterion}.validation")
    return run


def as_part_of_run(value: Mapping[str, Any], fields: Collection[str]) -> None:
    """Raise `DamagedError` unless an object has its names and these fields of a run."""
    _require(value, _part(frozenset(fields)))


@cache
def _part(fields: frozenset[str]) -> Any:
    kinds = get_type_hints(Record, include_extras=True)
    return TypedDict("Part", {name: kinds[name] for name in ("run", "cell", "seed", *sorted(fields))})  # type: ignore[operator, misc]


def as_tuning(value: dict[str, Any]) -> TuningRecord:
    """Return a decoded object as the record of a search. Also rejects searches that this version cannot repeat."""
    _require(value, TuningRecord)
    tuning = cast(TuningRecord, value)
    try:
        Tuning.of(tuning["spec"])
    except TypeError as error:
        raise DamagedError(f"spec is of another version ({error})") from None
    for criterion, choice in tuning["best"].items():
        _check(criterion, choice["value"], f"best.{criterion}.value")
        _check(criterion, choice["default"], f"best.{criterion}.default")
    return tuning


def _check(criterion: str, value: float | None, where: str) -> None:
    """Raise `DamagedError` if a criterion known to this version cannot have the value."""
    if criterion in CriterionValue:
        _require(value, CriterionValue[criterion], where)


def _require(value: Any, kind: Any, where: str = "") -> None:
    """Raise `DamagedError` unless a value is of a type. Further keys are allowed: later versions may add some."""
    try:
        _validator(kind).validate_python(value, strict=True)
    except ValidationError as error:
        raise DamagedError(_fault(error, where)) from None


@cache
def _validator(kind: Any) -> SchemaValidator:
    return cast(SchemaValidator, TypeAdapter(kind).validator)


def _fault(error: ValidationError, where: str) -> str:
    """Return the first fault of a value: `results.auc.test.auc is 3.5, not a number from 0 to 1`."""
    if error.error_count() > _MOST_FAULTS:  # each of them would become an object
        return f"{error.error_count():,} of its fields are wrong"
    first = error.errors(include_url=False)[0]
    where = where or ".".join(one_line(part, _LONGEST_VALUE) for part in first["loc"])
    if first["type"] == "missing":
        return f"{where} is missing"
    words = _WORDS.get(first["type"], first["msg"]).format_map(first.get("ctx", {}))
    return f"{where} is {_shortened(first['input'])}, not {words}"


def _shortened(value: Any) -> str:
    """Return a value on one line, shortened."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else f"a list of {len(value)}"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of these pairs. Raises `DamagedError` for a repeated key."""
    value: dict[str, Any] = {}
    for key, item in pairs:
        if key in value:
            raise DamagedError(f"{_shortened(key)} appears twice")
        value[key] = item
    return value
