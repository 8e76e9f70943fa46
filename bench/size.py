# SPDX-License-Identifier: BSL-1.0
"""The size of the library at commits: headers, lines, folders, names, functions, repeated blocks, words of documentation.

--commits A B: in a column each (default: HEAD); needs the repository's history
"""
import argparse
import collections
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/structure"))
from names import public  # noqa: E402
from signatures import signatures  # noqa: E402
from torn import blanked  # noqa: E402

BLOCK = 8  # lines of code that are repeated
SUFFIXES = {".hpp", ".cuh", ".inl"}


def repeated_blocks(texts):
    """The number of blocks of BLOCK or more lines of code that are there a second time; comments, spaces and lines of brackets do not count."""
    lines = []
    for name, text in texts.items():
        code = [re.sub(r"\s+", "", line) for line in blanked(text).splitlines()]
        lines += [line for line in code if re.search(r"\w", line) and not line.startswith("#")] + [f"end of {name}"]
    seen, found, at = {}, 0, 0
    while at + BLOCK <= len(lines):
        window = tuple(lines[at:at + BLOCK])
        first = seen.setdefault(window, at)
        if first + BLOCK > at or any(line.startswith("end of ") for line in window):
            at += 1
            continue
        found += 1
        while at < len(lines) and lines[first] == lines[at]:
            first, at = first + 1, at + 1
    return found


def figures(tree):
    headers = {p: p.read_text() for p in sorted((tree / "include").rglob("*")) if p.suffix in SUFFIXES}
    files = collections.Counter(p.parent for p in headers)
    pages = [tree / "README.md", *(tree / "docs").rglob("*.md")]
    found = [s for text in headers.values() for s in signatures(text)]
    return {
        "headers": len(headers),
        "lines of headers": sum(text.count("\n") for text in headers.values()),
        "of these, code": sum(bool(line.strip()) for text in headers.values() for line in blanked(text).splitlines()),
        "folders of headers": len(files),
        "most files of a folder": max(files.values()),
        "lines of the longest header": max(text.count("\n") for text in headers.values()),
        "names in namespace pp": sum("::" not in name for name in public(tree)),
        "friends that are classes": sum(len(re.findall(r"\bfriend\s+[\w:<>, ]+;", blanked(text))) for text in headers.values()),
        "functions of more than 8 parameters": sum(count > 8 for name, _, count in found if not name.startswith("class ")),
        "classes of more than 35 fields": sum(count > 35 for name, _, count in found if name.startswith("class ")),
        f"blocks of {BLOCK} or more lines that are repeated": repeated_blocks({str(p): text for p, text in headers.items()}),
        "pages of documentation": len(pages),
        "pages of decisions": sum("decisions" in p.parts and p.name[0].isdigit() for p in pages),
        "words of README": len(pages[0].read_text().split()),
        "words of documentation": sum(len(p.read_text().split()) for p in pages),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commits", nargs="+", default=["HEAD"])
    commits, columns = parser.parse_args().commits, []
    for commit in commits:
        with tempfile.TemporaryDirectory() as folder:
            archive = subprocess.run(["git", "-C", ROOT, "archive", commit, "include", "docs", "README.md"], check=True, stdout=subprocess.PIPE)
            subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
            columns.append(figures(pathlib.Path(folder)))
    print("| | " + " | ".join(commits) + " |\n|---|" + "---|" * len(commits))
    for name in columns[0]:
        print(f"| {name} | " + " | ".join(f"{column[name]:,}" for column in columns) + " |")


if __name__ == "__main__":
    main()
