"""Global state of a process that foreign code can change, which would affect later results in the same process.

Libraries and the interpreter have settings for the whole process: torch's default dtype, random generators, warning
filters, environment variables. `restored` resets them after a piece of code. `contained` also logs who changed which
setting, once per process.
"""

from __future__ import annotations

import contextlib
import gc
import os
import random
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from llpbench.core.text import LOG

_UNKNOWN = object()
_SET_BY_LIBRARIES = ("KMP_", "PYTORCH_", "TORCH_", "TORCHINDUCTOR_", "TRITON_")
"""environment variables that libraries set themselves when they are first used"""


@dataclass(frozen=True)
class _Setting:
    """One part of the global state."""

    name: str
    """name in the log"""
    read: Callable[[Any], Any]
    """function that returns the value, given `library`"""
    write: Callable[[Any, Any], object]
    """function that sets the value, given `library` and the value"""
    library: str = "sys"
    """module with the setting, which is not read before the module is imported"""
    fresh: Any = _UNKNOWN
    """value directly after the import of the library"""
    by_imports: bool = False
    """whether imports of libraries change the setting; a change during an import is then reset silently"""


def _cudnn(torch: Any) -> tuple[bool, ...]:
    cudnn = torch.backends.cudnn
    return bool(cudnn.enabled), bool(cudnn.benchmark), bool(cudnn.deterministic)


def _set_cudnn(torch: Any, flags: tuple[bool, ...]) -> None:
    cudnn = torch.backends.cudnn
    cudnn.enabled, cudnn.benchmark, cudnn.deterministic = flags


def _generators(torch: Any) -> list[bytes]:
    states = [torch.get_rng_state(), *(torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else ())]
    return [state.numpy().tobytes() for state in states]


def _set_generators(torch: Any, states: list[bytes]) -> None:
    cpu, *gpus = (torch.frombuffer(bytearray(state), dtype=torch.uint8) for state in states)
    torch.set_rng_state(cpu)
    for device, state in enumerate(gpus):
        torch.cuda.set_rng_state(state, device)


def _numpy_generator(numpy: Any) -> tuple[Any, ...]:
    kind, keys, *rest = numpy.random.get_state()
    return (kind, keys.tobytes(), *rest)


def _set_numpy_generator(numpy: Any, state: tuple[Any, ...]) -> None:
    kind, keys, *rest = state
    numpy.random.set_state((kind, numpy.frombuffer(keys, numpy.uint32), *rest))


def _filters(_: Any) -> list[Any]:
    """Return the filters that apply to all warnings. Imported libraries add filters for their own warnings."""
    return [each for each in warnings.filters if each[0] == "error" or (each[1] is None and each[2] is Warning)]


def _folder(_: Any) -> str | None:
    try:
        return os.getcwd()
    except OSError:  # the folder was removed
        return None


def _set_folder(_: Any, folder: str | None) -> None:
    with contextlib.suppress(OSError):
        os.chdir(folder or os.curdir)


def _variables(_: Any) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(_SET_BY_LIBRARIES)}


def _set_variables(_: Any, variables: dict[str, str]) -> None:
    for name in _variables(None).keys() - variables.keys():
        del os.environ[name]
    os.environ.update(variables)


_SETTINGS = (
    _Setting(
        "torch's default dtype",
        lambda torch: str(torch.get_default_dtype()),
        lambda torch, dtype: torch.set_default_dtype(getattr(torch, dtype.removeprefix("torch."))),
        "torch",
        fresh="torch.float32",
    ),
    _Setting(
        "torch's default device",
        lambda torch: str(torch.get_default_device()),
        lambda torch, device: torch.set_default_device(None if device == "cpu" else device),
        "torch",
        fresh="cpu",
    ),
    _Setting(
        "torch's grad mode",
        lambda torch: torch.is_grad_enabled(),
        lambda torch, enabled: torch.set_grad_enabled(enabled),
        "torch",
        fresh=True,
    ),
    _Setting(
        "torch's number of threads",
        lambda torch: torch.get_num_threads(),
        lambda torch, number: torch.set_num_threads(number),
        "torch",
    ),
    _Setting(
        "torch's deterministic mode",
        lambda torch: torch.get_deterministic_debug_mode(),
        lambda torch, mode: torch.set_deterministic_debug_mode(mode),
        "torch",
        fresh=0,
    ),
    _Setting("cuDNN's flags", _cudnn, _set_cudnn, "torch", fresh=(True, False, False)),
    _Setting(
        "torch's precision of matrix products",
        lambda torch: torch.get_float32_matmul_precision(),
        lambda torch, precision: torch.set_float32_matmul_precision(precision),
        "torch",
        fresh="highest",
    ),
    _Setting(
        "torch's anomaly detection",
        lambda torch: torch.is_anomaly_enabled(),
        lambda torch, enabled: torch.autograd.set_detect_anomaly(enabled),
        "torch",
        fresh=False,
    ),
    _Setting(
        "torch's autocast",
        lambda torch: torch.is_autocast_enabled("cpu"),
        lambda torch, enabled: torch.set_autocast_enabled("cpu", enabled),
        "torch",
        fresh=False,
    ),
    _Setting("torch's global random generator", _generators, _set_generators, "torch", by_imports=True),
    _Setting("numpy's global random generator", _numpy_generator, _set_numpy_generator, "numpy", by_imports=True),
    _Setting(
        "Python's global random generator",
        lambda _: random.getstate(),
        lambda _, state: random.setstate(state),
        by_imports=True,
    ),
    _Setting(
        "numpy's handling of floating-point errors",
        lambda numpy: numpy.geterr(),
        lambda numpy, handling: numpy.seterr(**handling),
        "numpy",
        fresh={"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"},
    ),
    _Setting(
        "scikit-learn's configuration",
        lambda sklearn: sklearn.get_config(),
        lambda sklearn, config: sklearn.set_config(**config),
        "sklearn",
    ),
    _Setting(
        "the garbage collector",
        lambda _: gc.isenabled(),
        lambda _, enabled: gc.enable() if enabled else gc.disable(),
    ),
    _Setting("the current directory", _folder, _set_folder),
    _Setting("environment variables", _variables, _set_variables),
)


@contextmanager
def restored() -> Iterator[list[str]]:
    """Reset all settings that the code inside changes. Yields a list; on exit their names are added to it."""
    changed: list[str] = []
    modules, filters, concerning = len(sys.modules), [*warnings.filters], _filters(None)
    before = {
        setting.name: setting.read(sys.modules[setting.library])
        for setting in _SETTINGS
        if setting.library in sys.modules
    }
    try:
        yield changed
    finally:
        for setting in _SETTINGS:
            value = before.get(setting.name, setting.fresh)
            library = sys.modules.get(setting.library)
            if library is None or value is _UNKNOWN:
                continue
            now = setting.read(library)
            if now != value:
                setting.write(library, value)
                if not (setting.by_imports and len(sys.modules) > modules):
                    changed.append(_named(setting, value, now))
        if _filters(None) != concerning:
            changed.append("warning filters")
            warnings.filters[:] = filters  # type: ignore[index]
            with warnings.catch_warnings():  # informs Python that the filters have changed
                pass


def _named(setting: _Setting, before: Any, now: Any) -> str:
    if setting.name != "environment variables":
        return setting.name
    names = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
    return f"{setting.name} ({', '.join(names)})"


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
