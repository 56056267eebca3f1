"""Settings of a process that change results, reset after code of a method or plugin so that others keep theirs.

The engine seeds every random generator that it uses, so global generators need no reset.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from llpbench.core.text import LOG


def _settings() -> dict[str, tuple[Any, Callable[[Any], object]]]:
    """Return the current value of each setting, and a function that sets it."""
    import numpy as np
    import torch

    cudnn = torch.backends.cudnn
    flags = cudnn.enabled, cudnn.benchmark, cudnn.deterministic
    device = torch.get_default_device()
    settings: dict[str, tuple[Any, Callable[[Any], object]]] = {
        "torch's default dtype": (torch.get_default_dtype(), torch.set_default_dtype),
        "torch's default device": (device, lambda old: torch.set_default_device(None if old.type == "cpu" else old)),
        "torch's grad mode": (torch.is_grad_enabled(), torch.set_grad_enabled),
        "torch's number of threads": (torch.get_num_threads(), torch.set_num_threads),
        "torch's deterministic mode": (torch.get_deterministic_debug_mode(), torch.set_deterministic_debug_mode),
        "torch's precision of matrix products": (
            torch.get_float32_matmul_precision(),
            torch.set_float32_matmul_precision,
        ),
        "torch's autocast": (torch.is_autocast_enabled("cpu"), partial(torch.set_autocast_enabled, "cpu")),
        "cuDNN's flags": (flags, lambda old: cudnn.set_flags(old[0], old[1], None, old[2])),
        "numpy's handling of floating-point errors": (np.geterr(), lambda old: np.seterr(**old)),
    }
    if (sklearn := sys.modules.get("sklearn")) is not None:  # its import takes a second
        set_config = sklearn.set_config
        settings["scikit-learn's configuration"] = sklearn.get_config(), lambda old: set_config(**old)
    return settings


_reported: set[str] = set()

by_import: dict[str, list[str]] = {}
"""settings that plugins changed during their import, by the name of the module"""


@contextmanager
def restored(who: str = "", module: str | None = None) -> Iterator[list[str]]:
    """Reset what the code inside changes, also filters of warnings. On exit the yielded list names the settings.

    - `who`: whose code it is, for a line of the log, once per process; "" for none
    - `module`: name of the module that the code inside imports, for `by_import`
    """
    changed: list[str] = []
    before = _settings()
    try:
        with warnings.catch_warnings():
            yield changed
    finally:
        now = _settings()
        for name, (value, write) in before.items():
            if now[name][0] != value:
                write(value)
                changed.append(name)
        if module is not None:
            by_import[module] = changed
        if changed and who and who not in _reported:
            _reported.add(who)
            LOG.warning(f"{who} changed {', '.join(changed)}, which was reset for what runs next")


@contextmanager
def quiet() -> Iterator[None]:
    """Silence warnings and log lines of other packages."""
    root, silence = logging.getLogger(), logging.NullHandler()
    level = root.manager.disable
    root.addHandler(silence)  # otherwise logging.warning() in the client would add a permanent handler
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)
        root.removeHandler(silence)
