#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""The page of a run in a headless Chromium: while the run trains, when it has ended, and as a file.

live_check.py PROGRAM: examples/gpt. The result is 77 (skipped) where no Chromium is installed.
live_check.py PROGRAM --picture FILE: a picture of the page for the documentation.
"""
import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from browser import Browser, find_chromium

SKIPPED = 77
PATIENCE = 120  # seconds for the page to show something
CURVES = ["loss", "learning rate", "gradient norm", "samples per second", "seconds", "bubble", "bits per byte", "tokens per second"]


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


class Run:
    """A training that is watched, until the block ends."""

    def __init__(self, program, folder, *arguments):
        Path(folder, "text").write_text("".join(f"{i} times {i} makes {i * i}.\n" for i in range(3000)))
        self.process = subprocess.Popen([Path(program).resolve(), "--data", "text", "--generate", "0", *arguments], cwd=folder,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.output = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def url(self):
        for line in self.process.stdout:
            self.output.append(line)
            if match := re.fullmatch(r"watch: (http://127\.0\.0\.1:\d+/)\n", line):
                return match[1]
        raise AssertionError("".join(self.output))


def text(browser, name):
    return browser.ask(f"document.getElementById('{name}').textContent")


def wait_for(browser, pattern, name="status"):
    end = time.monotonic() + PATIENCE
    while not re.search(pattern, shown := text(browser, name)):
        expect(time.monotonic() < end, f"{pattern} is shown: {shown}")
        time.sleep(0.05)
    return shown


def values(browser):
    cards = browser.ask("[...document.querySelectorAll('#charts .card')].map(c => [c.querySelector('h2').textContent, "
                        "c.querySelector('.value').textContent])")
    return dict(cards)


def contrast(browser, selector, background):
    """Of a text to what it stands on, as WCAG 2 counts."""
    def luminance(colour):
        parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    style = "getComputedStyle(document.querySelector('{}')).{}"
    name = browser.ask(f"document.querySelector('{selector}') instanceof SVGElement") and "fill" or "color"
    a, b = (luminance(browser.ask(style.format(*of))) + 0.05 for of in [(selector, name), (background, "backgroundColor")])
    return max(a, b) / min(a, b)


def check_looks(browser):
    for scheme in ("light", "dark"):
        browser.media(prefers_color_scheme=scheme)
        dark = int(re.findall(r"\d+", browser.ask("getComputedStyle(document.body).backgroundColor"))[0]) < 128
        expect(dark == (scheme == "dark"), f"the page is {scheme}")
        for selector in ("h1", "#status", "h2", ".value", "svg text", "svg text.of-plan", "td", "#slowest"):
            on = "body" if selector in ("h1", "#status") else ".card"
            ratio = contrast(browser, selector, on)
            expect(ratio >= 4.5, f"{selector} is readable when it is {scheme}: {ratio:.1f}")
    dashes = "getComputedStyle(document.querySelector('.{}')).strokeDasharray"
    expect(browser.ask(dashes.format("plan")) != browser.ask(dashes.format("curve")), "prediction and measurement differ without colour")
    for width in (1200, 380):
        browser.resize(width, 900)
        expect(browser.ask("document.documentElement.scrollWidth <= innerWidth"), f"nothing is beside a page of {width} pixels")
    browser.resize(1200, 900)


def check_pointing(browser):
    before = browser.ask("document.querySelectorAll('.hair').length")
    browser.ask("document.querySelector('#charts svg').focus()")
    browser.key("ArrowLeft")
    shown = values(browser)
    steps = {re.search(r" at step (\d+)$", value)[1] for value in shown.values()}
    expect(before == 0 and len(steps) == 1, f"a key shows one step in all charts: {shown}")
    browser.key("Escape")
    expect(not any(" at step " in value for value in values(browser).values()), "Escape lets go")
    at = browser.ask("document.querySelector('#charts svg').getBoundingClientRect().toJSON()")
    browser.move(at["x"] + at["width"] / 2, at["y"] + 60)
    expect(" at step " in values(browser)["bubble"], "so does the pointer, in all charts")
    browser.move(5, 5)
    choose = "(s => {{ s.value = '{}'; s.dispatchEvent(new Event('change')); }})(document.getElementById('axes'))"
    for axes, kind in (("logarithmic", "logarithmic"), ("linear", "")):
        browser.ask(choose.format(axes))
        expect(browser.ask("document.querySelector('.kind').textContent") == kind, f"a reader chooses {axes} axes")
    browser.ask(choose.format("automatic"))


def check_axes(browser, folder, program):
    """A run of 3000 steps whose loss falls from 2.6 to 0.03 and goes on falling."""
    def show(loss):
        points = range(1024 - 24)
        steps = [3 * i + 3 for i in points]
        curves = [{"name": "loss", "mean": [loss(s) for s in steps], "low": [loss(s) for s in steps], "high": [loss(s) for s in steps]}]
        data = {"step": 3000, "of_steps": 3000, "seconds_left": 0, "quiet_seconds": 0, "ended": True, "predicted_bubble": None, "resident_bytes": 0,
                "busy": [], "planned_bytes": [], "allocated_bytes": [], "version": 1, "first": 0, "stride": 3, "begin": 1, "steps": steps, "curves": curves}
        page = re.sub(r'(<script type="application/json" id="data">).*?(</script>)', lambda m: m[1] + json.dumps(data) + m[2], program, flags=re.S)
        Path(folder, "axes.html").write_text(page)
        browser.open(Path(folder, "axes.html"))
        browser.resize(1200, 900)
        return browser.ask("[...document.querySelectorAll('#charts svg text')].map(t => t.textContent)"), browser.ask("document.querySelector('.kind').textContent")

    texts, kind = show(lambda s: 2.5 * 0.99 ** s + 0.3 * 0.999 ** s)
    expect("step 1" in texts and "3000" in texts, f"the axis begins with the run: {texts}")
    expect(kind == "logarithmic" and {"0.1", "1"} <= set(texts), f"late progress is seen: {kind}, {texts}")
    line = browser.ask("document.querySelector('.curve').getAttribute('d')")
    heights = [float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", line)]
    expect(heights[-1] - heights[len(heights) // 2] > 20, f"the last half of the run falls by more than 20 pixels: {heights[len(heights) // 2]}, {heights[-1]}")
    for loss in (lambda s: 2 + 0.999 ** s, lambda s: -s, lambda s: 1 if s < 9 else 0):
        expect(show(loss)[1] == "", "a narrow range, and values that are not above 0, have a linear axis")


def check(program):
    with tempfile.TemporaryDirectory() as folder, Browser() as browser:
        with Run(program, folder, "--steps", "100000", "--watch", "0", "--watch-file", "run.html") as run:
            url = run.url()
            browser.visit(url)
            wait_for(browser, r"^step \d+ of 100000, (\d+:)?\d+:\d\d left$")
            first = int(wait_for(browser, r"^step ([3-9]|\d\d+) of").split()[1])
            expect(browser.ask("document.title").endswith("GPT, 1f1b"), "the title")
            shown = values(browser)
            expect(list(shown) == CURVES and all(value != "-" for value in shown.values()), f"a chart for each number: {shown}")
            about = text(browser, "about")
            expect(all(part in about for part in ("parameters", "stages on 4 ranks, schedule 1f1b", "device: host, ")), f"model, plan and device: {about}")
            expect("predicted" in browser.ask("document.querySelector('.of-plan').textContent"), "the predicted bubble")
            expect(re.fullmatch(r"slowest: rank [0-3], busy \d+\.\d %", text(browser, "slowest")), "the slowest rank is named")
            rows = browser.ask("[...document.querySelectorAll('#ranks tr')].map(r => [...r.cells].map(c => c.textContent))")
            expect(len(rows) == 4 and all(row[2] == row[3] and "MiB" in row[2] for row in rows), f"memory as planned: {rows}")
            check_looks(browser)
            check_pointing(browser)
            wait_for(browser, rf"^step (?!{first} )\d+ of")
            expect(browser.complaints(url) == [], f"no errors, nothing from elsewhere: {browser.complaints(url)}")
            print("while it trains: as it should be")
        wait_for(browser, "^no answer for .*: the program has ended or cannot be reached; last seen at step")
        print("when it has gone: as it should be")

        with Run(program, folder, "--steps", "3", "--watch-file", "short.html", "--checkpoints", "other") as run:
            run.process.wait(PATIENCE)
        with Browser() as other:  # that has never asked a server
            other.open(Path(folder, "short.html"))
            expect(text(other, "status") == "ended after step 3 of 3" and list(values(other)) == CURVES, "the file of a run that has ended")
            check_axes(other, folder, Path(folder, "short.html").read_text())
            expect(other.complaints() == [], f"no errors, no network: {other.complaints()}")
        print("as a file: as it should be")


def draw(program, picture):
    with tempfile.TemporaryDirectory() as folder, Browser(1200, 960) as browser:
        with Run(program, folder, "--steps", "300", "--watch", "0") as run:
            browser.visit(run.url())
            wait_for(browser, r"^step 2\d\d of")
            browser.screenshot(picture)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--picture")
    chosen = parser.parse_args()
    if not find_chromium():
        print("skipped: there is no Chromium to watch with")
        sys.exit(SKIPPED)
    if chosen.picture:
        draw(chosen.program, chosen.picture)
    else:
        check(chosen.program)
