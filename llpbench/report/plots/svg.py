"""An SVG as it is published: small, and with colours for readers who prefer a dark ground."""

from __future__ import annotations

import colorsys
import re
from collections.abc import Collection, Mapping

from matplotlib.colors import to_hex, to_rgb

GROUND, INK = "#1a1d21", "#e5e7ea"
"""of the page in the dark (`page/page.css`)"""

FEWEST_LIGHT = 0.2
"""relative luminance of a coloured line: what is darker is not seen on the ground"""

_COLOUR = re.compile(r"(fill|stroke): (#[0-9a-f]{6})")
_TAG = re.compile(r"<[^<>]+>")
_NUMBERED = re.compile(r' id="[\w.]+_\d+"')
_BETWEEN = re.compile(r">\s+<")
_DIGITS = re.compile(r"(\.\d\d)\d+")
_UNTURNED = re.compile(r' transform="rotate\(-?0 [^"]*"')
_ID = re.compile(r"""( id="|"#|url\(#)([\w.]+)""")
_STYLE = re.compile(r' style="([^"]*)"')


def compacted(svg: str, kept: Collection[str] = ()) -> str:
    """The same picture in half of the bytes, with dark counterparts of its colours, but for those that are `kept`."""
    text = _TAG.sub(_tag, _BETWEEN.sub(">\n<", svg)).replace("<g/>\n", "")
    names: dict[str, str] = {}
    ids: dict[str, str] = {}

    def as_class(style: re.Match[str]) -> str:
        return f' class="{names.setdefault(style[1], f"c{len(names)}")}"'

    def shorter(tag: re.Match[str]) -> str:
        text = _ID.sub(lambda found: f"{found[1]}{ids.setdefault(found[2], f'i{len(ids)}')}", tag[0])
        return _STYLE.sub(as_class, text)

    text = _TAG.sub(shorter, _without_groups(text))
    rules = "".join(f".{name}{{{style}}}" for style, name in names.items())
    return text.replace("</style>", f"{rules}{_dark_rules(names, kept)}</style>", 1)


def _tag(tag: re.Match[str]) -> str:
    """With no more than hundredths of a point, which are enough for any eye, and no id that nothing refers to."""
    return _UNTURNED.sub("", _NUMBERED.sub("", _DIGITS.sub(r"\1", tag[0]))).replace(" \nL ", "L")


def _without_groups(svg: str) -> str:
    """Without groups that say nothing: half of the lines that matplotlib writes."""
    kept: list[str] = []
    said: list[bool] = []
    for line in svg.split("\n"):
        if line.startswith("<g") and not line.endswith("/>"):
            said.append(line != "<g>")
            kept += [line] * said[-1]
        elif line == "</g>":
            kept += [line] * said.pop()
        else:
            kept.append(line)
    return "\n".join(kept)


def _dark_rules(names: Mapping[str, str], kept: Collection[str]) -> str:
    """CSS that turns the colours of styles, which are classes, into their dark counterparts."""
    rules = []
    for style, name in names.items():
        turned = {what: dark_of(colour) for what, colour in _COLOUR.findall(style) if colour not in kept}
        if turned:
            rules.append(f".{name}{{{';'.join(f'{what}:{colour}' for what, colour in turned.items())}}}")
    return f"@media (prefers-color-scheme:dark){{svg{{fill:{INK}}}{''.join(rules)}}}"


def dark_of(colour: str) -> str:
    """White becomes the ground, black the ink, greys what lies between; colours become light enough to be seen."""
    if colour == "#ffffff":
        return GROUND
    hue, lightness, saturation = colorsys.rgb_to_hls(*to_rgb(colour))
    if saturation < 0.12:
        return to_hex(colorsys.hls_to_rgb(hue, 0.9 - 0.75 * lightness, saturation))
    while luminance(colour) < FEWEST_LIGHT and lightness < 0.95:
        lightness += 0.03
        colour = to_hex(colorsys.hls_to_rgb(hue, lightness, saturation))
    return colour


def luminance(colour: str) -> float:
    """Relative luminance (WCAG): 0 of black, 1 of white."""
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
