#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Holds the pages about schedules equal to what the examples `schedules` and `search_schedule` print and draw.

schedule_pages.py SCHEDULES [SEARCH_SCHEDULE] [--update]: every family has a page, which it may share, and a picture; a block of a page that begins
with `$ examples/run.sh schedules ...` or `$ examples/run.sh search_schedule` shows what that prints. With --update blocks and
pictures are rewritten instead. Blocks of a program that is not given are not looked at.
"""
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES, PICTURES = ROOT / "docs/schedules", ROOT / "docs/pictures/schedules"
MORE_PAGES = {"README", "compare", "floors", "own", "problem", "recompute-ahead", "steady"}
# Twice the unit, so that what a rank with two chunks does takes whole units, too.
DRAWN = "--ranks 4 --micro-batches 8 --forward 2 --backward 2 --weight 2 --format svg --schedule"
LENGTHS = ("--ranks 4 --micro-batches 16 --lengths 128:1600,256:800,512:400,1024:200,2048:200 --scores .18 --schedule 1f1b --format svg "
           "--mini-batch 3")
BLOCK = re.compile(r"^```text\n\$ examples/run\.sh (schedules|search_schedule)(.*)\n((?:.*\n)*?)```$", re.M)


def answer(program, arguments):
    done = subprocess.run([program, *shlex.split(arguments)], stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    return "\n".join(line.rstrip() for line in done.stdout.splitlines()) + "\n"


def differing(program, search, update):
    names = [line.split(",")[0] for line in answer(program, "--format csv").splitlines()[1:]]
    pages = sorted(PAGES.glob("*.md"))
    pictures = {name.replace(" ", "-"): name for name in names}
    for kind, found, needed in (("page", {p.stem for p in pages} - MORE_PAGES, {name.split()[0] for name in names}),  # "paired 1f1b": paired
                                ("picture", {p.stem for p in PICTURES.iterdir()}, set(pictures))):
        if not update or kind == "page":
            yield from (f"{name}: no {kind}" for name in sorted(needed - found))
            yield from (f"{name}: a {kind} of a schedule that does not exist" for name in sorted(found - needed))

    def expected(block):
        asked = program if block[1] == "schedules" else search
        return f"```text\n$ examples/run.sh {block[1]}{block[2]}\n{answer(asked, block[2])}```" if asked else block[0]

    wanted = {PICTURES / f"{file}.svg": answer(program, f"{DRAWN} '{name}'") for file, name in pictures.items()}
    wanted[PICTURES.parent / "steady.svg"] = answer(program, f"--steps 3 {DRAWN} zb-h2")
    wanted[PICTURES.parent / "recompute-ahead.svg"] = answer(program, f"--recompute ahead {DRAWN} 1f1b")
    for way in ("as-they-come", "by-tokens"):
        wanted[PICTURES.parent / f"lengths-{way}.svg"] = answer(program, f"{LENGTHS} --composition {way}")
    wanted |= {page: BLOCK.sub(expected, page.read_text(encoding="utf-8")) for page in pages}
    for path, text in wanted.items():
        if update:
            path.write_text(text, encoding="utf-8")
        elif not path.is_file() or path.read_text(encoding="utf-8") != text:
            yield f"{path.relative_to(ROOT)} is not what the program makes today: run this with --update"


if __name__ == "__main__":
    programs = [Path(a).resolve() for a in sys.argv[1:] if a != "--update"]
    problems = list(differing(programs[0], programs[1] if len(programs) > 1 else None, "--update" in sys.argv))
    print("\n".join(problems) if problems else "every page and picture of a schedule is what the program makes")
    sys.exit(1 if problems else 0)
