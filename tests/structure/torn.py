# SPDX-License-Identifier: BSL-1.0
"""Template argument lists that clang-format has torn into comparisons, as `f < P, G > (x)`: it does so where an argument has `<`, `&&` or `==`.

clang-format writes a comparison with blanks around it, and an argument list without. So a `<` and a `>` with blanks, of one depth of brackets
and one statement, are two comparisons or a torn list. They are a list if

* no operand can follow the `>`, or
* only names and commas stand between them, where a comparison of a comparison would be left, or
* `(` follows and a comma stands between them, or the name before the `<` has a tight argument list elsewhere.

Where the name has such a list elsewhere, `>>` ends a list and compares its value: `f < P >> x` is `f<P> > x`.
"""
import re

LEFT = re.compile(r"\b(?!(?:template|operator|return|case|requires)\b)([A-Za-z_]\w*)\s+<(?=\s)")
TOKEN = re.compile(r"\w+|<<=|>>=|<=>|->|&&|\|\||[<>=!+\-*/%&|^]=|<<|>>|::|\S")
BLANKED = re.compile(r"//[^\n]*|/\*.*?\*/|R\"(\w*)\(.*?\)\1\"|\"(?:\\.|[^\"\\\n])*\"|(?<!\w)'(?:\\.|[^'\\\n])+'", re.DOTALL)
TIGHT = re.compile(r"\b([A-Za-z_]\w*)<(?![<=\s])")
NO_OPERAND = {";", ",", ")", "]", "}", "::", ">", ">>", "{", "&&"}


def blanked(text):
    """The text with letters in place of comments and literals, as long as before and with the same lines."""
    return BLANKED.sub(lambda m: re.sub(r"[^\n]", " " if m[0].startswith("/") else "_", m[0]), text)


def is_list(name, between, after, is_template):
    if after in NO_OPERAND:
        return True
    logical, comma = bool(between & {"&&", "||"}), "," in between
    if after == "(":
        return comma or not logical and not between & {"==", "!="} or is_template(name)
    return not (logical or comma or between & {"==", "!="})


def torn_lists(text, is_template):
    """The numbers of the lines on which torn lists begin."""
    if not LEFT.search(text):
        return
    code = blanked(text)
    for left in LEFT.finditer(code):
        depth, opened, angles, between = 0, 1, 0, set()
        tokens = ((m[0], m.start(), m.end()) for m in TOKEN.finditer(code, left.end()))
        for token, start, end in tokens:
            depth += (token in "([{") - (token in ")]}")
            if depth < 0 or depth == 0 and token in (";", "?", ":", "="):
                break
            if depth > 0 or token in ")]}":
                continue
            blank = code[start - 1].isspace()
            if not blank and token in ("<", ">", ">>"):
                angles += 1 if token == "<" else -len(token)
            elif token == "<":
                opened += 1
            elif token == ">" or token == ">>" and (opened > 1 or is_template(left[1])):
                following = TOKEN.search(code, end)
                if is_list(left[1], between, following[0] if following else ";", is_template):
                    yield code.count("\n", 0, left.start()) + 1
                break
            elif angles <= 0:
                between.add(token)
