"""Settings of a process that change results, reset after code of a method or plugin so that others keep theirs.

The engine seeds every random generator that it uses, so global generators need no reset.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from llpbench.core.text import LOG


class _Setting(NamedTuple):
    library: str
    """module with the setting, which is not read before the module is imported"""
    read: Callable[[Any], Any]
    write: Callable[[Any, Any], object]
    fresh: Any = None
    """value directly after the import of the library; None if unknown"""


def _of_torch(name: str, fresh: Any) -> _Setting:
    """Return a setting with functions `torch.get_NAME` and `torch.set_NAME`."""
    return _Setting("torch", lambda t: getattr(t, f"get_{name}")(), lambda t, v: getattr(t, f"set_{name}")(v), fresh)


def _set_cudnn(torch: Any, flags: dict[str, bool]) -> None:
    for name, flag in flags.items():
        setattr(torch.backends.cudnn, name, flag)


_CUDNN = {"enabled": True, "benchmark": False, "deterministic": False}
_NUMPY = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}

_SETTINGS = {
    "torch's default dtype": _Setting(
        "torch",
        lambda torch: str(torch.get_default_dtype()),
        lambda torch, dtype: torch.set_default_dtype(getattr(torch, dtype.removeprefix("torch."))),
        "torch.float32",
    ),
    "torch's default device": _Setting(
        "torch",
        lambda torch: str(torch.get_default_device()),
        lambda torch, device: torch.set_default_device(None if device == "cpu" else device),
        "cpu",
    ),
    "torch's grad mode": _Setting("torch", lambda t: t.is_grad_enabled(), lambda t, v: t.set_grad_enabled(v), True),
    "torch's number of threads": _of_torch("num_threads", None),
    "torch's deterministic mode": _of_torch("deterministic_debug_mode", 0),
    "torch's precision of matrix products": _of_torch("float32_matmul_precision", "highest"),
    "torch's autocast": _Setting(
        "torch", lambda t: t.is_autocast_enabled("cpu"), lambda t, v: t.set_autocast_enabled("cpu", v), False
    ),
    "cuDNN's flags": _Setting(
        "torch", lambda torch: {name: getattr(torch.backends.cudnn, name) for name in _CUDNN}, _set_cudnn, _CUDNN
    ),
    "numpy's handling of floating-point errors": _Setting(
        "numpy", lambda numpy: numpy.geterr(), lambda numpy, handling: numpy.seterr(**handling), _NUMPY
    ),
    "scikit-learn's configuration": _Setting("sklearn", lambda s: s.get_config(), lambda s, v: s.set_config(**v)),
}


@contextmanager
def restored() -> Iterator[list[str]]:
    """Reset what the code inside changes, also filters of warnings. On exit the yielded list names the settings."""
    changed: list[str] = []
    before = {name: one.read(sys.modules[one.library]) for name, one in _SETTINGS.items() if one.library in sys.modules}
    try:
        with warnings.catch_warnings():
            yield changed
    finally:
        for name, setting in _SETTINGS.items():
            library, value = sys.modules.get(setting.library), before.get(name, setting.fresh)
            if library is not None and value is not None and setting.read(library) != value:
                setting.write(library, value)
                changed.append(name)


_reported: set[str] = set()

by_import: dict[str, list[str]] = {}
"""settings that plugins changed during their import, by the name of the module"""


@contextmanager
def contained(who: str, module: str | None = None) -> Iterator[None]:
    """Reset all settings that the code inside changes, and log once per process that `who` changed them.

    `module`: name of the module that the code inside imports, for `by_import`.
    """
    changed: list[str] = []
    try:
        with restored() as changed:
            yield
    finally:
        if module is not None:
            by_import[module] = changed
        if changed and who not in _reported:
            _reported.add(who)
            LOG.warning(f"{who} changed {', '.join(changed)}, which was reset for what runs next")
