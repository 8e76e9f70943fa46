#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""The drawn files are well-formed whatever the title is, and the picture in the documentation is what is drawn."""
import json
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml
from pathlib import Path

TITLE = "<a href='x'>&\"\\</script>\x01\x1b[31m\u2028"
PICTURE = Path(__file__).resolve().parents[2] / "docs" / "pictures" / "schedule.svg"

with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    text = subprocess.run([sys.argv[1], "--out", name, "--title", TITLE], check=True, stdout=subprocess.PIPE, text=True).stdout
    assert text.startswith("1F1B on four ranks\nmakespan 33, bubble 27.3 % of the makespan, "), text
    assert "\x1b" not in text, "no colours where no terminal is"

    svg = (folder / "schedule.svg").read_text(encoding="utf-8")
    boxes = [e for e in xml.fromstring(svg).iter("{http://www.w3.org/2000/svg}title")]
    assert len(boxes) == 4 * 16, f"a box with its name for every action: {len(boxes)}"
    assert svg == PICTURE.read_text(encoding="utf-8"), f"{PICTURE.name} is not what the library draws: replace it"

    trace = json.loads((folder / "step.json").read_text(encoding="utf-8"))
    names = [e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "process_name"]
    assert names == ["Wide, predicted", TITLE], names
    details = [e for e in trace["traceEvents"] if e.get("cat") == "detail"]
    assert details and all(e["pid"] == 2 for e in details), "kernels are those of the measured run"

    page = (folder / "step.html").read_text(encoding="utf-8")
    data = json.loads(page.split('<script type="application/json" id="data">')[1].split("</script>")[0])
    assert [d["title"] for d in data["drawings"]] == names

    taken = folder / "taken"
    taken.write_text("")
    failed = subprocess.run([sys.argv[1], "--out", str(taken)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert failed.returncode == 1 and len(failed.stderr.splitlines()) == 1, failed
