#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Sources of tests as one: what they share is parsed, instantiated and compiled once, so that compiling several takes about three quarters of the time.

    joined.py alone SOURCE...        prints the sources that cannot be joined, one per line
    joined.py write FILE SOURCE...   writes a file of these sources, each in a namespace of its own, behind the headers of all

Messages of the compiler, __FILE__ and __LINE__ name the sources.
"""
import re
import sys
from pathlib import Path

INCLUDE = re.compile(r'^#include ([<"])(.+)[>"].*$', re.MULTILINE)
# A specialization belongs into the namespace of its template, a namespace with a name may be that of a header, and a macro may be meant for a header,
# or for its file alone; so may a header behind a condition. Whatever else needs a source by itself is said in a comment: "// Stands alone: ...".
STANDS_ALONE = re.compile(r"^// Stands alone:|^\s*(template ?<>|namespace [\w:]+ {|#\s*define|#\s*undef)|^#\s*if(?s:.*)^#include <", re.MULTILINE)


def may_be_joined(source):
    """A source with a header of its own defines what other sources call."""
    return not Path(source).with_suffix(".hpp").exists() and not STANDS_ALONE.search(Path(source).read_text(encoding="utf-8"))


def in_namespace(source, name, headers, inlines_its_own=False):
    """The text of a source as the namespace `name`, without what it includes, which is added to the set `headers`, a dict. Headers of its own folder are
    in its text instead where they need what stands before them."""
    def text_of(path):
        def included(match):
            beside = path.parent / match[2]
            if match[1] == '"' and beside.exists():
                if inlines_its_own:
                    return f'# 1 "{beside}"\n{text_of(beside)}\n# {match.string[:match.end()].count(chr(10)) + 2} "{path}"'
                headers[f'"{beside.resolve()}"'] = True
            else:
                headers[f"<{match[2]}>"] = True
            return ""
        return INCLUDE.sub(included, path.read_text(encoding="utf-8").replace("#pragma once", ""))

    return f'namespace {name} {{\n# 1 "{source}"\n{text_of(Path(source))}\n}}\n'


def program(sources, **how):
    """The text of a program of sources."""
    headers = {}
    parts = [in_namespace(source, f"{Path(source).stem}_{number}", headers, **how) for number, source in enumerate(sources)]
    return "".join(f"#include {name}\n" for name in headers) + "".join(parts)


def main():
    command, *arguments = sys.argv[1:]
    if command == "alone":
        print("\n".join(source for source in arguments if not may_be_joined(source)))
        return 0
    file, *sources = arguments
    if alone := [source for source in sources if not may_be_joined(source)]:
        print(f"{alone[0]} can no longer be joined with others: configure again")
        return 1
    text, file = program(sources), Path(file)
    if not file.exists() or file.read_text(encoding="utf-8") != text:  # else there is nothing to compile anew
        file.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
