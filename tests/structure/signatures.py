# SPDX-License-Identifier: BSL-1.0
"""Functions with their numbers of parameters, and classes with their numbers of fields, read by tokens.

A `{` opens a namespace, a class or something else (a body, an initialiser), as the statement before the brace says. In a namespace and in a
class, the first `(` behind a name opens the parameters of a function, unless `=` comes first; behind the `[]` of a lambda, or behind its
template parameters, `(` does so anywhere. `<` is a bracket behind a name where `>` follows before the statement or the bracket around it ends.
"""
import re

from torn import TOKEN, blanked

DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.MULTILINE)
NAME = re.compile(r"[A-Za-z_]\w*$")
CLOSES = {"(": ")", "[": "]", "{": "}"}
SPLIT = {">>": [">", ">"], ">>=": [">", ">="], "[[": ["[", "["]}
CLASSES = {"class", "struct", "union"}
ACCESS = {"public", "private", "protected"}
NO_FIELD = CLASSES | {"using", "typedef", "friend", "static", "static_assert", "enum", "template", "concept", "extern", "namespace"}
NO_FUNCTION = {"alignas", "decltype", "explicit", "noexcept", "requires", "static_assert", "__attribute__", "__launch_bounds__", "asm"}
NO_VALUE = {"return", "co_return", "co_yield", "case"}  # what no index follows


class code:
    """The tokens of a text: words[i] in line lines[i]; closes[i] is the index of the bracket that closes the one at i, lists the `<` that have one."""

    def __init__(self, text):
        self.words, self.lines, self.closes = [], [], {}
        text = DIRECTIVE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), blanked(text))
        line, at = 1, 0
        for match in TOKEN.finditer(text):
            line += text.count("\n", at, match.start())
            at = match.start()
            for word in SPLIT.get(match[0], [match[0]]):
                self.words.append(word)
                self.lines.append(line)
        opened = []
        for i, word in enumerate(self.words):
            if word in CLOSES:
                opened.append(i)
            elif opened and word == CLOSES[self.words[opened[-1]]]:
                self.closes[opened.pop()] = i
        for i in range(len(self.words) - 1, 0, -1):
            if self.words[i] == "<" and (NAME.match(self.words[i - 1]) or self.words[i - 1] == "]") and (end := self.end_of_list(i)):
                self.closes[i] = end

    def end_of_list(self, i):
        """The index of the `>` that closes the `<` at i as a list of template arguments or parameters; nothing for a comparison."""
        j = i + 1
        while j < len(self.words) and self.words[j] != ">":
            if self.words[j] in ";)]}" or self.words[j] == "||" or self.words[j] == "&&" and NAME.match(self.words[j + 1]) and self.words[i - 1] != "template":
                return None
            j = self.closes.get(j, j) + 1
        return j if j < len(self.words) else None

    def count(self, i):
        """The number of items, separated by commas, within the bracket at i."""
        at, end, commas = i + 1, self.closes[i], 0
        while at < end:
            commas += self.words[at] == ","
            at = self.closes.get(at, at) + 1
        return commas + 1 if end > i + 1 and self.words[i + 1:end] != ["void"] else 0

    def lambdas(self, begin, end):
        """(name, line, parameters) of the lambdas between two indices."""
        for i in range(begin, end):
            if self.words[i] != "[" or "[" in (self.words[i - 1], self.words[i + 1]) or i not in self.closes:
                continue
            if self.words[i - 1] in (")", "]", ">") or NAME.match(self.words[i - 1]) and self.words[i - 1] not in NO_VALUE:
                continue
            after = self.closes[i] + 1
            if self.words[after:after + 1] == ["<"]:
                after = self.closes.get(after, after) + 1
            if self.words[after:after + 1] == ["("] and after in self.closes:
                yield "lambda", self.lines[i], self.count(after)

    def scope(self, begin, end, fields):
        """(name, line, parameters) of the functions of a namespace or a class, and of what is within them.

        fields is None in a namespace; of a class, a list that receives the line of each field.
        """
        at = begin
        while at < end:
            at = yield from self.statement(at, end, fields)

    def statement(self, begin, end, fields):
        words, head, function, at = self.words, [], None, begin
        while at < end and words[at] != ";":
            word = words[at]
            if word == ":" and head and head[-1] in ACCESS:
                return at + 1
            if word == "operator":
                at += 1
                while words[at] != "(" or words[at + 1] == ")" and words[at + 2] == "(" and words[at - 1] == "operator":
                    at += 2 if words[at] == "(" else 1
                head.append("operator")
                continue
            if word == "(" and not function and "=" not in head and head and NAME.match(head[-1]) and head[-1] not in NO_FUNCTION and words[at + 1] != "*":
                function = head[-1]
                yield function, self.lines[at], self.count(at)
            if word == "{":
                is_class = CLASSES & set(head) and not function and not {"=", "enum"} & set(head)
                if "namespace" in head or head in (["extern"], ["extern", "_"]):
                    yield from self.scope(at + 1, self.closes[at], None)
                    return self.closes[at] + 1
                if is_class:
                    name = next((w for w in head[max(map(head.index, CLASSES & set(head))) + 1:] if NAME.match(w) and w != "alignas" and not w.startswith("PIPE_")), "")
                    found = []
                    yield from self.scope(at + 1, self.closes[at], found)
                    yield f"class {name}", self.lines[begin], len(found)
                elif "enum" not in head:
                    yield from self.lambdas(at, self.closes[at])
                at = self.closes[at] + 1
                if not is_class and function and words[at:at + 1] not in ([","], ["{"], [";"]):
                    return at
                head.append("{}")
                continue
            if word in "([<" and at in self.closes:
                yield from self.lambdas(at, self.closes[at])
                at = self.closes[at]
                head += [")"] if word == "(" else []
            else:
                head.append(word)
            at += 1
        if fields is not None and head and not function and not NO_FIELD & set(head) - (CLASSES if head[-1] != "{}" and "{}" in head else set()):
            fields += [self.lines[begin]] * (1 + head.count(","))
        return at + 1


def signatures(text):
    """(name, line, number) of a text's functions and lambdas with their parameters, and of its classes, as `class name`, with their fields."""
    read = code(text)
    yield from read.scope(0, len(read.words), None)
