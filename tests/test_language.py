"""Words that made readers stop: they stay out of code, messages and documentation."""

from __future__ import annotations

import re
from pathlib import Path

from repository import ROOT

BANNED = (
    r"however: ",
    r"\b(told|tells?|telling) (\w+ )*apart\b",
    r"\bdealt (out )?(at random|into|anew)\b",
    r"\bmend(s|ed|ing)?\b",
    r"\b(anew|for want of|whoever|one's|is level with|as good as better|nobody knows|made again|tells? nothing)\b",
    r"\b(next to nothing|as far as somebody|is no chance|finds nothing to obey|from which it is told)\b",
    r"\bleft? away\b",
    r"\b(what|that) there is\b",
    r"\b(of|by) which\b",
    r"\b(as it|as they) began\b",
    r"\btakes? no longer than\b",
    r"\bwhat is\b(?! none)",
    r"\b(can|could|cannot) (not )?be had\b",
    r"\bis no (plot|method|model)'s\b",
    r"\bmeets? (held-out )?bags\b",
)
"""patterns, in lower case"""

PLACES = [f"{folder}/**/*.py" for folder in ("llpbench", "methods", "datasets", "tests", "benchmarks", "examples")]

TEXTS = sorted(
    path
    for pattern in (*PLACES, "llpbench/**/*.html", "llpbench/**/*.j2", "docs/*.md", "*.md", "leaderboards/*.md")
    for path in ROOT.glob(pattern)
    if path.name != Path(__file__).name
)


def test_no_text_has_banned_phrase() -> None:
    banned = re.compile("|".join(BANNED))
    for path in TEXTS:
        for number, line in enumerate(path.read_text(encoding="utf-8").lower().splitlines(), start=1):
            found = {each[0] for each in banned.finditer(line)}
            assert not found, f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
