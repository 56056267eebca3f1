"""Types of the fields in the journal's records: numbers with bounds, names, moments.

pydantic reads them (`results/schema.py`). It is loaded only with a journal, so each type provides its schema in
`__get_pydantic_core_schema__`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, get_args

from annotated_types import Ge, Le

from llpbench.core.criteria import CRITERIA, METRICS

LARGEST = 2**53 - 1
"""largest integer that every reader of JSON represents exactly"""
MOST = 1e100
"""largest absolute value of other numbers; their squares can still be added"""
LONGEST_NAME = 10_000
"""largest number of characters of a name; some baggings name dozens of columns"""
ROUNDING = 1e-4
"""tolerance for the bounds of a metric, as for predictions (`training/cell_runs.py`)"""


@dataclass(frozen=True)
class Said:
    """A description of a field for a warning, worded to follow "not". The annotated type decides what is valid."""

    words: str

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.custom_error_schema(handler(source), "said", custom_error_message=self.words)


@dataclass(frozen=True)
class Matching:
    """Text of limited length that matches a pattern in the syntax of Rust's `regex`."""

    pattern: str
    longest: int = LONGEST_NAME

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.str_schema(pattern=self.pattern, max_length=self.longest)


@dataclass(frozen=True)
class Shaped:
    """A more exact type for a plainly annotated value, usually a `TypedDict`.

    Other keys are allowed, since later versions may add some.
    """

    shape: Any
    or_empty: bool = False

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        whole = handler.generate_schema(self.shape)
        return core_schema.no_info_wrap_validator_function(_or_empty, whole) if self.or_empty else whole


def _or_empty(value: Any, validate: Callable[[Any], Any]) -> Any:
    return value if value == {} else validate(value)


@dataclass(frozen=True)
class Named:
    """A dictionary with exact types for the values of some keys, if present."""

    types: Mapping[str, Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        fields = {
            name: core_schema.typed_dict_field(handler.generate_schema(kind), required=False)
            for name, kind in self.types.items()
        }
        others = handler.generate_schema(get_args(source)[1])
        return core_schema.typed_dict_schema(fields, extras_schema=others, extra_behavior="allow")


@dataclass(frozen=True)
class _Moment:
    """Text that `datetime` can parse."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_after_validator_function(_moment, handler(source))


def _moment(text: str) -> str:
    datetime.fromisoformat(text)
    return text


def _within(bounds: tuple[float, float]) -> Any:
    """Return the type of a number within bounds, with a tolerance of `ROUNDING`, or null."""
    least, most = bounds
    words = Said(f"a number from {least:,.0f} to {most:,.0f}")
    return Annotated[float, Ge(least - ROUNDING), Le(most + ROUNDING), words] | None


Count = Annotated[int, Ge(0), Le(LARGEST), Said("a whole number of 0 or more")]
Positive = Annotated[int, Ge(1), Le(LARGEST), Said("a whole number of 1 or more")]
Real = Annotated[float, Ge(-MOST), Le(MOST), Said("a number")]
Size = Annotated[float, Ge(0), Le(LARGEST), Said("a number of 0 or more")]
Seconds = Annotated[float, Ge(0), Le(1e9), Said("a number of seconds, 0 or more")]
Name = Annotated[str, Matching(r"^[^\p{Cc}\p{Zl}\p{Zp}]+$"), Said("a name on one line")]
Id = Annotated[str, Matching(r"^[0-9a-f]{16}$"), Said("16 hexadecimal digits")]
Moment = Annotated[str, _Moment(), Said("a moment in ISO 8601")]

CriterionValue: Mapping[str, Any] = {name: _within(each.bounds) for name, each in CRITERIA.items()}
"""type of each criterion's value on validation rows"""
MetricValue: Mapping[str, Any] = {name: _within(each.bounds) for name, each in METRICS.items()}
"""type of each metric's value on test rows"""
