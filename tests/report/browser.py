# SPDX-License-Identifier: BSL-1.0
"""A headless Chromium that is clicked like a person would: the DevTools protocol over two pipes, nothing but Python.

    with Browser() as browser:
        browser.open(path)
        browser.click(120, 80)
        print(browser.ask("document.title"))
"""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"]
PATIENCE = 60  # seconds until an answer is missed


def find_chromium():
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    def __init__(self, width=1200, height=900):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        commands_out, self.commands = os.pipe()
        self.answers, answers_in = os.pipe()
        # The protocol's pipes are descriptors 3 and 4; a shell puts them there whatever their numbers are here.
        program = f'exec "$@" 3<&{commands_out} 4>&{answers_in}'
        self.process = subprocess.Popen(
            ["bash", "-c", program, "bash", find_chromium(), "--headless", "--no-sandbox", "--disable-gpu",
             "--disable-dev-shm-usage", "--no-first-run", "--remote-debugging-pipe", f"--user-data-dir={self.folder.name}",
             f"--window-size={width},{height}", "about:blank"],
            pass_fds=(commands_out, answers_in), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(commands_out)
        os.close(answers_in)
        self.buffer, self.number, self.session, self.events = b"", 0, None, []
        page = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.resize(width, height)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for pipe in (self.commands, self.answers):
            os.close(pipe)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.folder.cleanup()

    def read(self):
        """The next message: an answer or an event."""
        end = time.monotonic() + PATIENCE
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.answers], [], [], max(0, end - time.monotonic()))
            piece = os.read(self.answers, 1 << 16) if ready else b""
            if not piece:
                raise RuntimeError("the browser does not answer")
            self.buffer += piece
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        self.number += 1
        command = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            command["sessionId"] = self.session
        os.write(self.commands, json.dumps(command).encode() + b"\0")
        while True:
            message = self.read()
            if message.get("id") == self.number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self.events.append(message)

    def open(self, path):
        self.visit(Path(path).resolve().as_uri())

    def visit(self, url):
        self.events.clear()
        self.call("Page.navigate", url=url)
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self.read())

    def ask(self, expression):
        """The value of an expression of the page, after the next picture has been painted."""
        painted = f"new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done({expression}))))"
        result = self.call("Runtime.evaluate", expression=painted, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def move(self, x, y):
        self.mouse("mouseMoved", x, y)

    def press(self, x, y):
        self.mouse("mousePressed", x, y, button="left", buttons=1, clickCount=1)

    def release(self, x, y):
        self.mouse("mouseReleased", x, y, button="left", clickCount=1)

    def click(self, x, y):
        self.move(x, y)
        self.press(x, y)
        self.release(x, y)

    def drag(self, x1, y1, x2, y2):
        self.move(x1, y1)
        self.press(x1, y1)
        self.mouse("mouseMoved", (x1 + x2) / 2, (y1 + y2) / 2, button="left", buttons=1)
        self.mouse("mouseMoved", x2, y2, button="left", buttons=1)
        self.release(x2, y2)

    def wheel(self, x, y, down):
        self.mouse("mouseWheel", x, y, deltaX=0, deltaY=down)

    def key(self, name, shift=False):
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name, modifiers=8 if shift else 0)

    def screenshot(self, path):
        Path(path).write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def media(self, **features):
        """What the person prefers: media(prefers_color_scheme="dark")."""
        chosen = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.call("Emulation.setEmulatedMedia", features=chosen)

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def complaints(self, own="file:"):
        """Errors of scripts, what the console was told, and what was asked of anything but `own`: the beginning of addresses."""
        told = [e for e in self.events if e.get("method") in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")]
        asked = [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]
        return told + [url for url in asked if not url.startswith((own, "data:"))]
