"""llpbench: the benchmark suite for learning from label proportions on tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from llpbench.owndata.classifier import LLPClassifier

__all__ = ["LLPClassifier", "__version__"]

__version__ = "0.1.0"

_here = Path(__file__).resolve().parent
if not (_here / "methods").is_dir():  # a checkout, first on the path: there contributions lie beside this package
    __path__.append(str(_here.parent))


def __getattr__(name: str) -> Any:
    """What takes seconds to import comes when it is asked for."""
    if name == "LLPClassifier":
        from llpbench.owndata.classifier import LLPClassifier

        return LLPClassifier
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
