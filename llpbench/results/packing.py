"""The journal's lines: each evaluation of a run is written once.

Several criteria often choose the same epoch, and for a method without epochs all of them do. In memory each criterion
has its own evaluation (`core.record.CriterionResult`). A line holds the distinct ones in a list, and the position of
each criterion's evaluation::

    "judged": [{"epoch": 7, "diagnostics": {}, "test": {"auc": 0.9}}],
    "results": {"auc": {"judged": 0, "validation": 0.8}, "mpiou": {"judged": 0, "validation": 0.7}}

Lines of schema 2 repeat the evaluation for each criterion. They can be read, too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

UNPACKED = 2
"""The schema whose lines repeat evaluations."""

_OWN = "validation"
"""The part of a result that criteria do not share: the value on the validation rows."""


class PackingError(ValueError):
    """The results of a line refer to an evaluation that it does not contain."""


def packed(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record as a line of its schema. A search is returned unchanged."""
    if "results" not in record or record.get("schema") == UNPACKED:
        return dict(record)
    judged: dict[str, dict[str, Any]] = {}
    places: dict[str, int] = {}
    results: dict[str, Any] = {}
    for criterion, result in record["results"].items():
        judgement = {name: value for name, value in result.items() if name != _OWN}
        text = json.dumps(judgement, sort_keys=True)
        judged.setdefault(text, judgement)
        results[criterion] = {"judged": places.setdefault(text, len(places)), _OWN: result.get(_OWN)}
    return {name: results if name == "results" else value for name, value in record.items()} | {
        "judged": list(judged.values())
    }


def unpacked(line: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record packed by `packed`. Criteria with the same evaluation share its objects.

    Raises `PackingError` if the line does not follow this schema.
    """
    if "results" not in line:
        return dict(line)
    judged, results = line.get("judged"), line["results"]
    if not isinstance(judged, list) or not all(isinstance(each, dict) for each in judged):
        raise PackingError("judged is not a list of objects")
    if not isinstance(results, dict):
        raise PackingError("results is not an object")
    record = {name: value for name, value in line.items() if name != "judged"}
    record["results"] = {criterion: _unpacked(criterion, result, judged) for criterion, result in results.items()}
    return record


def _unpacked(criterion: str, result: Any, judged: list[dict[str, Any]]) -> dict[str, Any]:
    if not isinstance(result, dict):
        raise PackingError(f"results.{criterion} is not an object")
    place = result.get("judged")
    if type(place) is not int or not 0 <= place < len(judged):
        raise PackingError(f"results.{criterion}.judged is {json.dumps(place)}, not the position of an evaluation")
    own = {name: value for name, value in result.items() if name != "judged"}
    return judged[place] | own
