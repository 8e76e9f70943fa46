#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Tests of names.py: what it takes for a name, and which faults it sees."""
import tempfile
import unittest
import unittest.mock
from pathlib import Path

import names

HEADER = """namespace pp {

/// A layer of width N. More about it.
///
/// law: none
template <int N>
struct Layer {};

namespace inner {
/// Not for users.
struct Hidden {};
}  // namespace inner

/// Trains, and says so.
inline void train(int steps) { run(steps); }
inline void helper() {}

/// law: it has no sentence
struct Mute {};

}  // namespace pp
"""


class Names(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        for path in ("include/pipe/train", "include/pipe/nn", "docs/reference/layers", "docs/howto"):
            (self.root / path).mkdir(parents=True)

    def make(self, header, page):
        (self.root / "include/pipe/train/x.hpp").write_text(header)
        (self.root / "docs/howto/use.md").write_text(page)
        return names.make(self.root)

    def test_names_that_pages_mention_are_listed_with_their_sentence(self):
        text, faults = self.make(HEADER, "`Layer<3>`, `train(2)`, `Mute`, and helper without code; `Hidden`")
        self.assertIn("| `Layer` | A layer of width N | `pipe/train/x.hpp` | [use](../docs/howto/use.md) |", text)
        self.assertIn("| `train` | Trains, and says so |", text)
        self.assertNotIn("helper", text)
        self.assertNotIn("Hidden", text)
        self.assertIn("pipe/train/x.hpp: no sentence says what Mute is", faults)

    def test_links_lead_from_the_place_of_the_index(self):
        self.make(HEADER, "`Layer<3>`")
        self.assertIn("| [use](use.md) |", names.make(self.root, self.root / "docs/howto/names.md")[0])

    def test_a_sentence_ends_outside_parentheses(self):
        for doc, sentence in (("At most N (default: none). More.", "At most N (default: none)"),
                              ("In [0, N), all: more.", "In [0, N), all"),
                              ("Halves (see a.b: and c; d): more.", "Halves (see a.b: and c; d)"),
                              ("Open (never: closed.", "Open (never: closed")):
            self.assertEqual(sentence, names.first_sentence([doc]))

    def test_a_name_of_pp_that_no_page_mentions_is_a_fault(self):
        fault = "pipe/train/x.hpp: {} is in namespace pp, and no page mentions it: what is not for users belongs to pp::detail"
        _, faults = self.make(HEADER, "`train(2)`")
        self.assertEqual([fault.format(name) for name in ("helper", "Layer", "Mute")], faults)

    def test_names_of_an_inner_namespace_are_for_the_library_itself(self):
        header = "namespace {} {{\n\ninline void helper() {{}}\n\n}}  // namespace {}\n"
        self.assertEqual(1, len(self.make(header.format("pp", "pp"), "")[1]))
        self.assertEqual([], self.make(header.format("pp::detail", "pp::detail"), "")[1])

    def test_a_name_of_an_inner_namespace_for_programs_has_a_page_and_a_sentence(self):
        header = "namespace pp {\n\nnamespace files {\n\n/// A file.\nstruct record {};\n\n}  // namespace files\n\n}  // namespace pp\n"
        fault = "pipe/train/x.hpp: files::record is in namespace pp::files, and no page mentions it: what is not for users belongs to pp::detail"
        self.assertEqual([fault], self.make(header, "`record`")[1])
        with unittest.mock.patch.object(names, "MOST_NAMES", 0):  # which are those of pp itself
            text, faults = self.make(header, "`pp::files::record`")
        self.assertEqual([], faults)
        self.assertIn("| `files::record` | A file | `pipe/train/x.hpp` | [use](../docs/howto/use.md) |", text)
        self.assertEqual(["pipe/train/x.hpp: no sentence says what files::record is"], self.make(header.replace("/// A file.", ""), "`files::record`")[1])

    def test_pages_of_schedules_open_their_namespace(self):
        (self.root / "docs/schedules").mkdir()
        (self.root / "docs/schedules/own.md").write_text("`validate` proves it.")
        header = "namespace pp {\n\nnamespace schedules {\n\n/// A proof.\nvoid validate();\n\n}  // namespace schedules\n\n}  // namespace pp\n"
        self.assertEqual([], self.make(header, "")[1])

    def test_a_namespace_of_one_declaration_ends_without_a_comment(self):
        header = "namespace pp {\n\nnamespace inner {\nstruct later;\n}\n\n/// A layer.\nstruct Wide {};\n\n}  // namespace pp\n"
        text, faults = self.make(header, "`Wide`")
        self.assertEqual([], faults)
        self.assertIn("| `Wide` | A layer |", text)
        self.assertNotIn("later", text)

    def test_more_names_than_are_meant_are_a_fault(self):
        with unittest.mock.patch.object(names, "MOST_NAMES", 3):
            _, faults = self.make(HEADER, "`Layer<3>`, `train(2)`, `helper()`, `Mute`")
        self.assertIn("namespace pp has 4 names, and at most 3 are meant: give a new one an inner namespace, or drop another", faults)
        self.assertEqual(380, names.MOST_NAMES)  # may only fall, but for what the CHANGELOG lists

    def test_names_that_the_changelog_lists_with_their_page_raise_the_bound(self):
        row = "| names | page |\n|---|---|\n| `Layer`, `{}` | [use](docs/howto/use.md) |\n"
        page = "`Layer<3>`, `train(2)`, `helper()`, `Mute`"
        with unittest.mock.patch.object(names, "MOST_NAMES", 2):
            (self.root / "CHANGELOG.md").write_text(row.format("Mute"))
            self.assertNotIn("namespace pp has", "\n".join(self.make(HEADER, page)[1]))
            (self.root / "CHANGELOG.md").write_text(row.format("Gone"))
            self.assertIn("CHANGELOG.md: Gone is said to be a new name of docs/howto/use.md, and is not in namespace pp", self.make(HEADER, page)[1])
            (self.root / "CHANGELOG.md").write_text(row.format("Mute"))
            self.assertIn("CHANGELOG.md: Mute is said to be a new name of docs/howto/use.md, and is not on docs/howto/use.md",
                          self.make(HEADER, "`Layer<3>`, `train(2)`, `helper()`")[1])

    def test_what_an_example_takes_is_for_users(self):
        (self.root / "examples").mkdir()
        (self.root / "examples/a.cpp").write_text("int main() { pp::helper(); }")
        text, _ = self.make(HEADER, "`Layer<3>`, `train(2)`, `Mute`")
        self.assertIn("| [a.cpp](../examples/a.cpp) |", text)

    def test_a_layer_is_in_the_tables_of_one_page_of_layers(self):
        (self.root / "include/pipe/nn/x.hpp").write_text("namespace pp {\n\n/// A layer.\nstruct Wide {};\n\n}  // namespace pp\n")
        layers = self.root / "docs/reference/layers"
        fault = "pipe/nn/x.hpp: Wide is in the tables of {} pages of layers: {}"
        (layers / "a.md").write_text("`Wide`\n\n| [`Wide`](b.md) | x |\n| x | `Wide` |\n")
        self.assertEqual([fault.format(0, "none")], self.make("", "")[1])
        (layers / "b.md").write_text("| `Narrow`, `Wide<3>` | x |\n| `Wide` | y |\n")
        text, faults = self.make("", "`Wide`")
        self.assertEqual([], faults)
        self.assertIn("| `Wide` | A layer | `pipe/nn/x.hpp` | [layers/b](../docs/reference/layers/b.md), [use](../docs/howto/use.md) |", text)
        (self.root / "docs/reference/language.md").write_text("| `Wide` | x |\n")
        self.assertEqual([fault.format(2, "language.md, b.md")], self.make("", "")[1])

    def test_other_names_count_only_as_code_of_their_own(self):
        self.assertNotIn("`train`", self.make(HEADER, "`Layer Mute x.train(3)`")[0])
        self.assertIn("`train`", self.make(HEADER, "```\nLayer Mute pp::train(3)\n```")[0])

    def calls(self, text, page="docs/howto/use.md", program=""):
        for folder in ("examples", "docs/explanation"):
            (self.root / folder).mkdir(exist_ok=True)
        (self.root / "examples/a.cpp").write_text(program)
        header = HEADER.replace("struct Mute {};", "struct Mute {\n  void listen(int a) {}\n  static constexpr int size_of_it = 2;\n};")
        header += "namespace pp::detail {\nconstexpr int warm_up(int steps) { return steps; }\n}\nnamespace pp {\nnamespace wrong {\ntemplate <int> struct Found;\n}\n}  // namespace pp\n"
        (self.root / "include/pipe/train/x.hpp").write_text(header)
        (self.root / page).write_text(text)
        return list(names.check_calls(self.root))

    def test_a_page_calls_only_what_a_program_reaches(self):
        for text in ("`warm_up(100)`", "`rate = warm_up(100);`", "text:\n\n    rate = warm_up(100) ...\n"):
            found = self.calls(text)
            self.assertEqual(1, len(found), text)
            self.assertIn("warm_up is neither a public name nor a member, but detail::warm_up", found[0])
        self.assertIn("use.md:1: `no_such_call(3)`: no_such_call is neither a public name nor a member", self.calls("`no_such_call(3)`")[0])
        self.assertIn("warm_up is in pp::detail", self.calls("`pp::detail::warm_up(3)`")[0])

    def test_what_a_page_may_call(self):
        for text in ("`train(2)`, `Layer<3>`, `pp::train(2)`", "`mute.listen(3)`, `Mute::size_of_it<3>`", "`wrong::Found<3>`, `Found<3>`", "`find_package(pipe)`",
                     "`mu(t) = 1 - P(t)`", "`std::make_unique<int>(3)`", "`a.hpp: error: pp::detail::warm_up<3>`",
                     "```cpp\nint no_such_call(int);\n```\n`no_such_call(3)`", "```cpp\nwarm_up(100);\n```\n"):
            self.assertEqual([], self.calls(text), text)
        self.assertEqual([], self.calls("`no_such_call(3)`", program="int no_such_call(int) { return 1; }\n"))
        (self.root / "docs/howto/use.md").write_text("")
        self.assertEqual([], self.calls("`warm_up(100)`", page="docs/explanation/inside.md"))

    def test_a_page_says_which_header_has_which_name(self):
        (self.root / "include/pipe/train/x.hpp").write_text(HEADER)
        (self.root / "include/pipe/train/y.hpp").write_text("namespace pp {\n/// It.\nvoid save();\n}  // namespace pp\n")
        (self.root / "include/pipe/pipe.hpp").write_text("#include <pipe/train/x.hpp>\n")
        self.assertEqual(1, len(list(names.check_headers_page(self.root))))
        text = names.headers_page(self.root)
        self.assertIn("| `train/` | `helper`, `Layer`, `Mute`, `train` |\n", text)
        self.assertIn("| `<pipe/train/y.hpp>` | `save` |\n", text)
        (self.root / names.HEADERS).write_text(text)
        self.assertEqual([], list(names.check_headers_page(self.root)))
        (self.root / "include/pipe/train/y.hpp").write_text("")
        self.assertEqual(1, len(list(names.check_headers_page(self.root))))


FILLED = """namespace pp {

/// Images.
struct image_set {
  int height = 0, width = 0;  ///< pixels
  std::vector<std::uint8_t> pixels;
  /// Names, where
  /// there are some.
  std::map<std::string, int> const* names[max]{};
  void (*report)(std::string_view text) = print_report;
  enum class way { read, written } how = way::read;
  enum class other { none };

  static constexpr int most = 3;
  using number = int;
  std::size_t size() const { return pixels.size(); }
  template <class T>
  std::vector<T> numbers(std::span<T const> mean = {}) const {
    int not_a_member = 0;
    return {};
  }
  friend bool operator==(image_set const&, image_set const&) = default;

 private:
  int hidden_ = 0;
};
/// Rows of any type.
struct fp16 {
  unsigned bits;
};

namespace detail {

struct loop_settings {
  double least_gain = 0;
};
struct scratch {
  int of_no_program = 0;
};

}  // namespace detail

}  // namespace pp
"""


class Structs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        (self.root / "docs/reference").mkdir(parents=True)
        self.write(FILLED)

    def write(self, header, path="train"):
        (self.root / "include/pipe" / path).mkdir(parents=True, exist_ok=True)
        (self.root / "include/pipe" / path / "x.hpp").write_text(header)

    def check(self, page, update=False):
        (self.root / names.STRUCTS).write_text(page)
        return [fault.removeprefix(f"{names.STRUCTS}: ") for fault in names.check_structs(self.root, update)]

    def updated(self, page):
        faults = self.check(page, True)
        return (self.root / names.STRUCTS).read_text(), faults

    def test_members_are_read_with_type_initial_value_and_comment(self):
        self.assertEqual([("height", "int", "0", "pixels"), ("width", "int", "0", "pixels"), ("pixels", "std::vector<std::uint8_t>", "", ""),
                          ("names", "std::map<std::string, int> const*[max]", "", "Names, where there are some."),
                          ("report", "void (*)(std::string_view text)", "print_report", ""), ("how", "way", "way::read", "")],
                         names.filled_structs(self.root)["image_set"])

    def test_each_struct_has_a_section(self):
        self.assertEqual(["struct image_set has no section, ### `image_set`", "struct loop_settings has no section, ### `loop_settings`"], self.check(""))

    def test_settings_of_rooms_that_no_program_calls_need_none(self):
        self.write(FILLED.replace("image_set", "picture"), "passes")
        self.write("", "train")
        self.assertEqual({"picture"}, set(names.filled_structs(self.root)))

    def test_update_writes_all_but_the_texts(self):
        page = "### `image_set`\n\nImages.\n\n| member | type | initially | |\n|---|---|---|---|\n| `pixels` | `x` | | a byte for each |\n\n### `loop_settings`\n"
        text, faults = self.updated(page)
        self.assertIn("| `width` | `int` | `0` | pixels |\n| `pixels` | `std::vector<std::uint8_t>` |  | a byte for each |\n", text)
        self.assertIn("Images.\n\n| member |", text)
        self.assertEqual(["no text says what member how of image_set is", "no text says what member least_gain of loop_settings is",
                          "no text says what member report of image_set is"], faults)

    def test_rows_are_those_of_the_header(self):
        page = self.updated("### `image_set`\n\n### `loop_settings`\n")[0].replace("|  |\n", "| x |\n")
        self.assertEqual([], self.check(page))
        self.assertEqual(["member width of image_set has no row"], self.check(page.replace("| `width` | `int` | `0` | pixels |\n", "")))
        self.assertEqual(["image_set has no member depth", "member width of image_set has no row"], self.check(page.replace("`width`", "`depth`")))
        self.assertEqual(["member least_gain of loop_settings is declared in another way: names.py --update"], self.check(page.replace("`double`", "`float`")))
        self.assertEqual(["scratch is no struct that a program fills or reads"], self.check(page + "\n### `scratch`\n"))


if __name__ == "__main__":
    unittest.main()
