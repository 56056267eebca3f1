"""Draw `docs/images/page.png`: the page that the first command of the tutorial writes, in headless Chromium.

python docs/page_image.py
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

DOCS = Path(__file__).parent
SIZE = (1280, 480)
COLOURS = 64


def main() -> None:
    """Run the command in a temporary folder and draw its page."""
    command = (DOCS / "tutorial.md").read_text(encoding="utf-8").split("```bash\n")[1].splitlines()[0]
    program, *arguments = shlex.split(command)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([Path(sys.executable).with_name(program), *arguments], cwd=folder, check=True)
        page = Path(folder) / arguments[-1] / "index.html"
        picture = Path(folder) / "page.png"
        flags = [
            *("--headless=new", "--no-sandbox", "--hide-scrollbars", f"--user-data-dir={folder}/profile"),
            *(f"--window-size={SIZE[0]},{SIZE[1]}", f"--screenshot={picture}"),
        ]
        subprocess.run(["chromium", *flags, page.as_uri()], check=True)
        Image.open(picture).convert("RGB").quantize(COLOURS).save(DOCS / "images" / "page.png", optimize=True)


if __name__ == "__main__":
    main()
