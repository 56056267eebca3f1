"""Checks of a method's declaration that need no training."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, ClassVar, get_args, get_origin, get_type_hints

from llpbench.core.bags import SUPERVISIONS
from llpbench.core.method import DirectMethod, DirectParams, Method, MethodParams, Phase, Reports, Stage
from llpbench.core.ranges import Choice, Uniform, conditions, ranges
from llpbench.core.registry import Entry
from llpbench.core.text import hint


def faults(entry: Entry, *, formal: bool = False) -> list[str]:
    """Return one line with advice for each fault in a method's declaration that makes results wrong or impossible.

    `formal`: also faults in the facts shown in lists and on leaderboards, or if it is no method at all.
    """
    declared: Any = entry.load()
    if not isinstance(declared, type) or (formal and not issubclass(declared, Method | DirectMethod)):
        return [f"{declared.__name__} is neither a Method nor a DirectMethod: make it a subclass of one"]
    formalities = _formalities(entry, declared) if formal else ()
    return [*formalities, *_hooks(declared), *_supervision(entry), *_hyperparameters(declared)]


def course_faults(method: Method) -> Iterator[str]:
    """Yield the faults in the stages and phases of a method, which may depend on its hyperparameters."""
    stages, phases = method.stages, method.phases
    for what, parts, kind in (("stages", stages, Stage), ("phases", phases, Phase)):
        if not (isinstance(parts, tuple) and parts and all(isinstance(part, kind) for part in parts)):
            yield f"{what} must be a tuple of {kind.__name__}, got {parts!r}"
            return
    if not stages[-1].judged:
        yield "the last stage must be judged: nothing else selects an epoch"
    names = [stage.name for stage in stages]
    if twice := next((name for name in names if names.count(name) > 1), None):
        yield f"two stages are called {twice!r}: give each a name"
    players: dict[str, Phase] = {}
    for phase in phases:
        if players.setdefault(phase.name, phase) != phase:
            yield f"two different phases are called {phase.name!r}: give each player a name"
            return


def _formalities(entry: Entry, declared: type) -> Iterator[str]:
    """Yield faults in the facts shown in lists and on leaderboards."""
    if not entry.summary:
        yield f"{declared.__name__} needs a docstring; its first line is shown in lists"
    if not (entry.facts["reference"] or entry.facts["role"]):
        yield 'state where it comes from: @register_method(..., reference="Doe 2026")'


def _supervision(entry: Entry) -> Iterator[str]:
    declared, roles = entry.load(), {"instances": "ceiling", "validation": "control"}
    supervision = declared.supervision
    if supervision not in SUPERVISIONS:
        yield f"supervision must be {' or '.join(SUPERVISIONS)}, got {supervision!r}"
    elif (role := roles.get(supervision)) and entry.facts["role"] != role:
        yield f'a method that sees labels of rows must be a {role}: add role="{role}"'
    elif supervision == "validation" and not issubclass(declared, DirectMethod):
        yield "a network needs labels of validation rows to choose its epoch: only a direct method can train on them"


def _hooks(declared: type) -> Iterator[str]:
    """Yield faults in hooks: without this check, a misspelt hook would silently never be called."""
    base, needed, signature = (
        (DirectMethod, "fit", "train, schema, rng")
        if issubclass(declared, DirectMethod)
        else (Method, "loss", "model, bags, now")
    )
    hooks = [name for each in (Method, Reports, DirectMethod) for name in vars(each) if not name.startswith("_")]
    for name in vars(declared):
        near = [] if name in hooks or name.startswith("_") else difflib.get_close_matches(name, hooks, n=1, cutoff=0.8)
        if near:
            yield f"{name!r} is not a hook and would never be called. Did you mean {near[0]}?"
    if getattr(declared, needed) is getattr(base, needed):
        yield f"{declared.__name__} has no {needed}: define {needed}(self, {signature})"


def _hyperparameters(declared: Any) -> Iterator[str]:
    params: Any = declared.Params
    base = DirectParams if issubclass(declared, DirectMethod) else MethodParams
    if not (isinstance(params, type) and issubclass(params, base)):
        yield f"Params must be a subclass of {base.__name__}"
        return
    hints = get_type_hints(params)
    declares = (name for name in vars(params).get("__annotations__", ()) if get_origin(hints[name]) is not ClassVar)
    whole = is_dataclass(params) and set(declares) <= {field.name for field in fields(params)}
    if not (whole and params.__dataclass_params__.frozen):  # type: ignore[union-attr]
        yield f"{params.__name__} must be a @dataclass(frozen=True)"
        return
    searched = ranges(params)
    for name, condition in conditions(params).items():
        if condition.name not in hints:
            near = hint(condition.name, hints)
            yield f"hyperparameter {name!r}: When names the unknown {condition.name!r}. {near}".rstrip()
        elif isinstance(other := searched.get(condition.name), Choice):
            for value in (value for value in condition.values if value not in other.values):
                yield f"hyperparameter {name!r}: When asks {condition.name!r} for {value!r}, not one of its choices"
    for field in fields(params):
        default, search = field.default, searched.get(field.name)
        which = f"hyperparameter {field.name!r}"
        types = get_args(hints[field.name]) or (hints[field.name],)
        if field.default_factory is not MISSING:
            yield f"{which} has a default_factory: give it an immutable default"
        elif default is MISSING:
            yield f"{which} has no default"
        elif not isinstance(search, Choice) and not set(types) <= _TYPES:
            yield f"{which}: no command can give a {hints[field.name]}. Make it a number, text or bool, or a Choice"
        elif isinstance(search, Uniform) and float not in types:
            yield f"{which}: {type(search).__name__} takes floats. Use Choice for whole numbers"
        elif default is None:
            if type(None) not in get_args(hints[field.name]):
                yield f"{which}: default None, but its type does not allow it"
        elif isinstance(search, Choice):
            if default not in search.values:
                yield f"{which}: default {default!r} is not one of its choices {', '.join(map(repr, search.values))}"
        elif isinstance(search, Uniform) and not (
            isinstance(default, int | float) and search.low <= default <= search.high
        ):
            yield f"{which}: default {default!r} is outside its range {search.low:g} to {search.high:g}"


_TYPES = {int, float, bool, str, type(None)}
"""types of hyperparameters that are not a `Choice`"""
