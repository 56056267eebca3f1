"""What the site shows besides this folder: boards and examples, to which pages link as `../leaderboards/`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]


def on_files(files: Any, config: Any) -> Any:
    """Add the boards and their page, and the examples."""
    for path in sorted([*(ROOT / "leaderboards").glob("*.md"), *(ROOT / "examples").iterdir()]):
        if path.is_file():
            name = str(path.relative_to(ROOT))
            files.append(File.generated(config, name, content=path.read_text(encoding="utf-8")))
    page = (ROOT / "leaderboards" / "index.html").read_text(encoding="utf-8")
    files.append(File.generated(config, "leaderboards/page.html", content=page))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Files next to this folder in the repository are inside it on the site."""
    markdown = markdown.replace("](../examples/", "](examples/").replace("](../docs/", "](../")
    markdown = markdown.replace("](index.html", "](page.html")  # the page of the boards, as boards link to it
    return markdown.replace("](../leaderboards/index.html", "](leaderboards/page.html").replace(
        "](../leaderboards/", "](leaderboards/"
    )
