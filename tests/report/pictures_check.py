#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""The pictures of the documentation in a headless Chromium: no text leaves a picture, and no two texts of a line lie on each other.

pictures_check.py. The result is 77 (skipped) where no Chromium is installed.
"""
import sys
from pathlib import Path

from browser import Browser, find_chromium

SKIPPED = 77
PICTURES = Path(__file__).resolve().parents[2] / "docs/pictures"
TEXTS = """[...document.querySelectorAll('text')].map(text => {
  const box = text.getBBox();
  return [text.textContent, box.x, box.y, box.x + box.width, box.y + box.height];
})"""
SIZE = "(box => [box.width, box.height])(document.documentElement.viewBox.baseVal)"


def problems(browser, picture):
    browser.open(picture)
    texts, (width, height) = browser.ask(TEXTS), browser.ask(SIZE)
    if not texts:
        yield f"{picture.name}: no text"
    for what, left, upper, right, lower in texts:
        if left < 0 or upper < 0 or right > width or lower > height:
            yield f"{picture.name}: '{what}' leaves the picture: {left:.0f} to {right:.0f} of {width}, {upper:.0f} to {lower:.0f} of {height}"
    lines = {}
    for text in texts:
        lines.setdefault(round(text[2]), []).append(text)
    for line in lines.values():
        line.sort(key=lambda text: text[1])
        for one, other in zip(line, line[1:]):
            if other[1] < one[3] - 0.5:
                yield f"{picture.name}: '{one[0]}' and '{other[0]}' lie on each other"


if __name__ == "__main__":
    if not find_chromium():
        print("skipped: there is no Chromium to look with")
        sys.exit(SKIPPED)
    with Browser() as chromium:
        found = [problem for picture in sorted(PICTURES.rglob("*.svg")) for problem in problems(chromium, picture)]
    print("\n".join(found) if found else "every text of every picture has its place")
    sys.exit(1 if found else 0)
