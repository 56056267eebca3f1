"""Plots on a dark ground: rules that an SVG carries along, for readers who prefer dark."""

from __future__ import annotations

import colorsys
import re
from collections.abc import Collection

from matplotlib.colors import to_hex, to_rgb

GROUND, INK = "#1a1d21", "#e5e7ea"
"""of the page in the dark (`page/page.css`)"""

FEWEST_LIGHT = 0.2
"""relative luminance of a coloured line: what is darker is not seen on the ground"""

_COLOUR = re.compile(r"(fill|stroke): (#[0-9a-f]{6})")


def dark_rules(svg: str, kept: Collection[str] = ()) -> str:
    """CSS that turns the colours of an SVG into their dark counterparts, but for those that are `kept`."""
    found = sorted({(what, colour) for what, colour in _COLOUR.findall(svg) if colour not in kept})
    rules = [
        f"[style*='{what}: {colour}']{{{what}:{dark}!important}}"
        for what, colour in found
        if (dark := dark_of(colour)) != colour
    ]
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
