"""llpbench: the benchmark suite for learning from label proportions on tables."""

from pathlib import Path

__version__ = "0.1.0"

_here = Path(__file__).resolve().parent
if not (_here / "methods").is_dir():  # a checkout, first on the path: there contributions lie beside this package
    __path__.append(str(_here.parent))
