#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""The HTML page in a headless Chromium, by pointing, clicking, dragging, turning the wheel and typing.

html_check.py PROGRAM: examples/see_schedule. The result is 77 (skipped) where no Chromium is installed.
"""
import subprocess
import sys
import tempfile
from pathlib import Path

from browser import Browser, find_chromium

SKIPPED = 77
TITLE = "</script><script>document.title='caught'</script><b>\"a\" & 'b'</b>"
LEFT, RIGHT = 72, 12  # pixels beside the time, in the page's script
ROW = 13  # pixels to the middle of the first row
RUNS = 20


class Page:
    """What a person sees of the page, and where it is."""

    def __init__(self, browser):
        self.browser = browser
        self.data = browser.ask("JSON.parse(document.getElementById('data').textContent)")
        self.makespan = max(d["makespan"] * d["scale"] for d in self.data["drawings"])

    def text(self, name):
        return self.browser.ask(f"document.getElementById('{name}').textContent")

    def place(self, selector, index=0):
        return self.browser.ask(f"document.querySelectorAll('{selector}')[{index}].getBoundingClientRect().toJSON()")

    def click_on(self, selector, index=0):
        at = self.place(selector, index)
        self.browser.click(at["x"] + at["width"] / 2, at["y"] + at["height"] / 2)

    def actions(self, drawing, rank):
        flat = self.data["drawings"][drawing]["ranks"][rank]["actions"]
        names = ["kind", "chunk", "micro_batch", "start", "end", "shade", "critical", "with_next"]
        return [dict(zip(names, flat[i:i + len(names)])) for i in range(0, len(flat), len(names))]

    def point(self, drawing, rank, time):
        """The pixel of a time when everything is shown."""
        at, d = self.place("canvas.rows", drawing), self.data["drawings"][drawing]
        x = at["x"] + LEFT + time * d["scale"] / self.makespan * (at["width"] - LEFT - RIGHT)
        return x, at["y"] + ROW + 26 * rank

    def middle(self, drawing, rank, action):
        return self.point(drawing, rank, (action["start"] + action["end"]) / 2)

    def tip(self):
        return self.browser.ask("(t => t.hidden ? null : t.textContent)(document.getElementById('tip'))")

    def pixels(self, selector="canvas.rows", index=0):
        return self.browser.ask(f"document.querySelectorAll('{selector}')[{index}].toDataURL()")


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


def check_beginning(page, browser):
    expect(browser.ask("document.title") == TITLE, "the title is text")
    expect(browser.ask("document.querySelector('h1').textContent") == TITLE, "the heading is text")
    expect(browser.ask("document.scripts.length") == 2 and browser.ask("document.querySelector('h1 b') === null"),
           "no markup comes from a title")
    headings = browser.ask("[...document.querySelectorAll('h2')].map(h => h.textContent)")
    expect(headings == ["Wide, predicted", TITLE], f"predicted above measured: {headings}")
    expect(page.place("canvas.rows", 0)["bottom"] <= page.place("canvas.rows", 1)["top"], "one below the other")
    for said in browser.ask("[...document.querySelectorAll('section > p')].map(p => p.textContent)"):
        expect("of the makespan" in said and "of the stage-local span" in said, f"both bubbles are named: {said}")
    expect(browser.ask("document.getElementById('keys').textContent") == "F forwardBW backward, bothno order ends before", "the legend")


def check_hover(page, browser):
    for drawing in (0, 1):
        for rank in (0, 3):
            for action in page.actions(drawing, rank)[:3]:
                browser.move(*page.middle(drawing, rank, action))
                lines = (page.tip() or "").split("\n")
                kind = page.data["kinds"][action["kind"]]
                expect(lines[0] == f"{kind} of micro-batch {action['micro_batch']}, chunk {action['chunk']}, rank {rank}",
                       f"under the pointer is {action} of rank {rank}: {lines}")
                expect(" to " in lines[1] and "takes" in lines[1] and lines[2].startswith("memory ") and "B" in lines[2],
                       f"times and bytes: {lines}")
                expect(("on the critical path" in lines) == bool(action["critical"]), f"critical or not: {lines}")
    browser.move(*page.middle(1, 3, page.actions(1, 3)[0]))
    expect("matmul" in (page.tip() or ""), "kernels of a measured action")
    browser.move(*page.point(0, 3, page.actions(0, 3)[0]["start"] / 2))
    expect(page.tip() is None, "nothing is said where a rank is idle")
    browser.move(5, 5)
    expect(browser.ask("[...document.querySelectorAll('.hair')].every(h => h.hidden)"), "no line without a pointer")


def check_pick(page, browser):
    before = page.pixels()
    action = page.actions(0, 1)[1]
    browser.click(*page.middle(0, 1, action))
    expect(page.text("picked").startswith(f"Wide, predicted: F of micro-batch {action['micro_batch']}, chunk 1, rank 1; "),
           f"a click picks: {page.text('picked')}")
    expect(page.pixels() != before, "its micro-batch stands out")
    browser.key("ArrowRight", shift=True)
    expect("rank 1" in page.text("picked") and page.text("picked") != "", "the next action by key")
    browser.key("ArrowDown", shift=True)
    expect("rank 2" in page.text("picked"), f"the next rank by key: {page.text('picked')}")
    browser.key("Escape")
    browser.move(5, 5)
    expect(page.text("picked") == "" and page.pixels() == before, "Escape lets go")


def check_toggles(page, browser):
    before = [page.pixels(index=i) for i in (0, 1)]
    for name in ("critical", "transfers"):
        page.click_on(f"#{name}")
        expect(all(page.pixels(index=i) != before[i] for i in (0, 1)), f"{name} is drawn")
        page.click_on(f"#{name}")
        expect([page.pixels(index=i) for i in (0, 1)] == before, f"{name} is gone")


def check_zoom(page, browser):
    everything, before = page.text("window"), page.pixels()
    page.click_on("#in")
    closer = page.text("window")
    expect(closer != everything and page.pixels() != before, f"+ magnifies: {closer}")
    page.click_on("#out")
    expect(page.text("window") == everything, "- takes it back")
    page.click_on("#out")
    expect(page.text("window") == everything, "there is no more than everything")

    last = page.actions(0, 0)[-1]
    x, y = page.middle(0, 0, last)
    for _ in range(4):
        browser.wheel(x, y, -400)
        browser.ask("0")
    browser.move(x, y)
    expect(page.text("window") != everything and "BW of micro-batch 7, chunk 0, rank 0" in (page.tip() or ""),
           f"the wheel magnifies around the pointer: {page.text('window')}, {page.tip()}")
    shown = page.text("window")
    at = page.place("canvas.rows")
    browser.drag(at["x"] + 600, at["y"] + 40, at["x"] + 300, at["y"] + 40)
    expect(page.text("window") != shown and page.text("picked") == "", "a drag moves and picks nothing")
    browser.drag(at["x"] + 300, at["y"] + 40, at["x"] + 600, at["y"] + 40)
    expect(page.text("window") == shown, f"and back: {shown}, {page.text('window')}")
    page.click_on("#all")
    expect(page.text("window") == everything and page.pixels() == before, "Fit shows everything")

    browser.ask("document.querySelector('canvas.rows').focus()")
    browser.key("+")
    browser.key("ArrowRight")
    expect(page.text("window") not in (everything, closer), "keys magnify and move")
    browser.key("0")
    expect(page.text("window") == everything, "0 shows everything")


def check_numbers(page, browser):
    page.click_on("section summary")
    rows = browser.ask("[...document.querySelectorAll('section tbody tr')].map(r => [...r.cells].map(c => c.textContent))")
    expect([row[:2] for row in rows] == [[f"rank {rank}", "16"] for rank in range(4)], f"a line for every rank: {rows}")


def open_page(browser, program, folder):
    """The page of a run whose actions are wide enough to be hit: on a busy machine a single one may take nearly all the time."""
    for _ in range(RUNS):
        subprocess.run([program, "--out", folder, "--title", TITLE], check=True, stdout=subprocess.DEVNULL)
        browser.open(Path(folder, "step.html"))
        page = Page(browser)
        widths = [page.point(drawing, rank, a["end"])[0] - page.point(drawing, rank, a["start"])[0]
                  for drawing in (0, 1) for rank in (0, 1, 3) for a in page.actions(drawing, rank)[:3]]
        if min(widths) > 3:
            break
    return page


def check(program):
    with tempfile.TemporaryDirectory() as folder, Browser() as browser:
        page = open_page(browser, program, folder)
        for part in (check_beginning, check_hover, check_pick, check_toggles, check_zoom, check_numbers):
            part(page, browser)
            print(f"{part.__name__}: as it should be")
        expect(browser.complaints() == [], f"no errors, no network: {browser.complaints()}")


if __name__ == "__main__":
    if not find_chromium():
        print("skipped: there is no Chromium to click in")
        sys.exit(SKIPPED)
    check(sys.argv[1])
