"""What is wrong with how a method is declared, as far as that can be told without training it."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_args, get_type_hints

from llpbench.core.entries import Entry
from llpbench.core.method import DirectMethod, DirectParams, Method, MethodParams, Reports
from llpbench.core.ranges import Choice, Uniform, ranges


def complaints(entry: Entry) -> list[str]:
    """A line for each fault in the declaration of a method, with what to do."""
    declared: Any = entry.load()
    if not (is_a(declared, Method) or is_a(declared, DirectMethod)):
        return [f"{declared.__name__} is neither a Method nor a DirectMethod: make it a subclass of one"]
    return [*_formalities(entry, declared), *faults(entry)]


def faults(entry: Entry) -> list[str]:
    """Those of them that make its results wrong, or none at all."""
    return [*_hooks(entry.load()), *_supervision(entry), *_hyperparameters(entry.load())]


def _formalities(entry: Entry, declared: type) -> Iterator[str]:
    """What readers of lists and boards want to know."""
    if not entry.summary:
        yield f"{declared.__name__} needs a docstring; its first line is shown in lists"
    role, classes, reference = (entry.facts[fact] for fact in ("role", "classes", "reference"))
    if role not in ("", "floor", "ceiling"):
        yield f"role must be floor or ceiling, however: {role!r}"
    if not (reference or role):
        yield 'state where it comes from: @register_method(..., reference="Doe 2026")'
    if classes not in ("multi", "binary"):
        yield f"classes must be multi or binary, however: {classes!r}"


def _supervision(entry: Entry) -> Iterator[str]:
    supervision = entry.load().supervision
    if supervision not in ("bags", "instances"):
        yield f"supervision must be bags or instances, however: {supervision!r}"
    elif supervision == "instances" and entry.facts["role"] != "ceiling":
        yield 'what sees labels of rows is a ceiling: role="ceiling"'


def _hooks(declared: type) -> Iterator[str]:
    """A hook in another spelling would never be called, and nobody would notice."""
    base, needed, signature = (
        (DirectMethod, "fit", "train, schema, rng")
        if is_a(declared, DirectMethod)
        else (Method, "loss", "model, bags, now")
    )
    hooks = [name for each in (Method, Reports, DirectMethod) for name in vars(each) if not name.startswith("_")]
    for name in vars(declared):
        near = [] if name in hooks or name.startswith("_") else difflib.get_close_matches(name, hooks, n=1, cutoff=0.8)
        if near:
            yield f"{name!r} is no hook, and would never be called. Did you mean {near[0]}?"
    if getattr(declared, needed) is getattr(base, needed):
        yield f"{declared.__name__} has no {needed}: define {needed}(self, {signature})"


def _hyperparameters(declared: Any) -> Iterator[str]:
    params, base = declared.Params, DirectParams if is_a(declared, DirectMethod) else MethodParams
    if not is_a(params, base):
        yield f"Params must be a subclass of {base.__name__}"
        return
    whole = is_dataclass(params) and set(vars(params).get("__annotations__", ())) <= {f.name for f in fields(params)}
    if not (whole and params.__dataclass_params__.frozen):  # type: ignore[attr-defined]
        yield f"{params.__name__} must be a @dataclass(frozen=True)"
        return
    searched, hints = ranges(params), get_type_hints(params)
    for field in fields(params):
        default, search = field.default, searched.get(field.name)
        which = f"hyperparameter {field.name!r}"
        if default is MISSING:
            yield f"{which} has no default"
        elif default is None:
            if type(None) not in get_args(hints[field.name]):
                yield f"{which}: default None, but its type does not allow it"
        elif isinstance(search, Choice):
            if default not in search.values:
                yield f"{which}: default {default!r} is none of its choices {', '.join(map(repr, search.values))}"
        elif isinstance(search, Uniform) and not (
            isinstance(default, int | float) and search.low <= default <= search.high
        ):
            yield f"{which}: default {default!r} is outside its range {search.low:g} to {search.high:g}"


def is_a(thing: Any, base: type) -> bool:
    return isinstance(thing, type) and issubclass(thing, base)
