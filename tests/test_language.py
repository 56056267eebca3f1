"""Words that made readers stop: they stay out of code, messages and documentation."""

from __future__ import annotations

import re
from pathlib import Path

from repository import ROOT

BANNED = (
    r"however: ",
    r"\b(told|tells?|telling) (\w+ )*apart\b",
    r"\bdealt (out )?(at random|into|anew)\b",
    r"\banew\b",
    r"\bmend(s|ed|ing)?\b",
    r"\bfor want of\b",
    r"\bwhoever\b",
    r"\bone's\b",
    r"\bleft? away\b",
    r"\bis level with\b",
    r"\bas good as better\b",
    r"\b(what|that) there is\b",
    r"\b(of|by) which\b",
    r"\b(as it|as they) began\b",
    r"\btakes? no longer than\b",
    r"\bwhat is\b(?! none)",
    r"\b(can|could|cannot) (not )?be had\b",
    r"\bnobody knows\b",
    r"\bmade again\b",
    r"\bis no (plot|method|model)'s\b",
    r"\bfrom which it is told\b",
    r"\bnext to nothing\b",
    r"\btells? nothing\b",
    r"\bas far as somebody\b",
    r"\bis no chance\b",
    r"\bfinds nothing to obey\b",
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
