# SPDX-License-Identifier: BSL-1.0
"""The data members of structs, with their types, their initial values and their comments."""
import re

from signatures import DIRECTIVE
from torn import blanked

STRUCT = re.compile(r"\bstruct\s+(?:alignas\([^)]*\)\s+|\[\[[^\]]*\]\]\s+)*(\w+)\s*(?:final\s*)?(?::[^;{()]*)?\{")
OPENS, CLOSES = "{(", "})"
NO_MEMBER = re.compile(r"(static|using|friend|template|typedef|constexpr|consteval|enum|struct|class|union|explicit|operator|requires|PIPE_\w+)\b")
ACCESS = re.compile(r"(public|private|protected)\s*:")
ATTRIBUTE = re.compile(r"\[\[[^\]]*\]\]")
POINTER = re.compile(r"\(\*\s*(?:const\s+)?(\w+)\)\s*\(")  # to a function
ENUM = re.compile(r"enum\s+(?:class\s+|struct\s+)?(\w+)")
ARRAY = re.compile(r"(\[[^\]]*\]\s*)+$")


def closing(code, at):
    """The index of the brace that closes the one before `at`."""
    depth = 1
    while at < len(code) and depth:
        depth += (code[at] in OPENS) - (code[at] in CLOSES)
        at += 1
    return at - 1


def parts(code, begin, end, separator, brackets="<>(){}[]"):
    """The ranges of [begin, end) between separators outside brackets; behind a body in braces a statement ends without one."""
    depth, start = 0, begin
    for at in range(begin, end):
        c = code[at]
        if c in brackets:
            is_arrow = c == ">" and code[at - 1] == "-"
            depth += 0 if is_arrow else 1 if brackets.index(c) % 2 == 0 else -1
        if depth == 0 and (c == separator or c == "}" and separator == ";" and code[at + 1:end].lstrip()[:1] not in (",", ";")):
            yield start, at
            start = at + 1
    if code[start:end].strip():
        yield start, end


def initial(code, begin, end):
    """Where a declarator's initial value begins: its `=` or its brace, outside template arguments; else its end."""
    depth = 0
    for at in range(begin, end):
        depth += (code[at] in "<([") - (code[at] in ">)]")
        if depth == 0 and code[at] in "={":
            return at
    return end


def tidy(text):
    text = re.sub(r"\s+", " ", text).strip()
    return re.sub(r"\b(?:pp::)?(?:detail|custom|schedules|transports|files)::", "", re.sub(r"\s*([*&])", r"\1", text))


def comment_of(lines, number):
    """The docstring behind or before the declaration in a line."""
    if "///<" in lines[number]:
        text = [lines[number].split("///<", 1)[1].strip()]
        for line in lines[number + 1:]:
            if not line.strip().startswith("///<"):
                break
            text.append(line.strip()[4:].strip())
        return " ".join(text)
    above = []
    while number > 0 and re.match(r"\s*///(?!<)", lines[number - 1]):
        number -= 1
        above.insert(0, lines[number].strip()[3:].strip())
    return " ".join(above)


def members_of(text, code, begin, end):
    """(name, type, initial value, comment) of each data member between two places."""
    lines, enum = text.splitlines(), None
    for first, last in parts(code, begin, end, ";", "(){}"):
        head = ATTRIBUTE.sub(lambda m: " " * len(m[0]), code[first:last])
        while match := ACCESS.match(head.strip()):
            if match[1] != "public":
                return
            head = head.replace(match[0], " " * len(match[0]), 1)
        before, enum = enum, ENUM.match(head.strip())
        if head.strip() and not NO_MEMBER.match(head.strip()):
            yield from members_of_statement(text, code[:first] + head + code[last:], (first, last), lines, before and before[1])


def members_of_statement(text, code, place, lines, enum):
    """Those of one declaration; enum: the enumeration that is declared before it, of whose type a name without a type is."""
    base, found = "", []
    for a, b in parts(code, *place, ","):
        value = initial(code, a, b)
        declared = code[a:value]
        comment = comment_of(lines, text.count("\n", 0, value - len(declared) + len(declared.rstrip())))
        if match := POINTER.search(declared):
            found.append((match[1], tidy(declared.replace(match[1], "", 1)), tidy(text[value:b]).lstrip("= "), comment))
            continue
        array = ARRAY.search(declared)
        match = re.search(r"(\w+)\s*$", declared[:array.start()] if array else declared)
        kind = tidy(declared[:match.start()]) if match else ""
        if not match or "operator" in declared or "(" in re.sub(r"<.*>", "", declared, flags=re.S) or not (base or kind or enum):
            return
        if not base:
            base, kind = re.sub(r"[*&]+$", "", kind or enum or "").strip(), kind or enum
        else:
            kind = base + kind
        start = tidy(text[value:b])
        start = start[1:].strip() if start.startswith("=") else start[1:-1].strip()
        found.append((match[1], kind + (tidy(array[0]) if array else ""), start, comment))
    yield from found


def structs(text):
    """(name, position, members) of every struct of a text that has data members."""
    code = DIRECTIVE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), blanked(text))
    for match in STRUCT.finditer(code):
        if found := list(members_of(text, code, match.end(), closing(code, match.end()))):
            yield match[1], match.start(), found
