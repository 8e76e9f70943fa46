#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Each rule finds the one line that breaks it."""
import tempfile
import unittest
from pathlib import Path

from rules import COMMENTS, FEW_LINES, LONGEST, MOST_FIELDS, MOST_FILES, MOST_MACROS, MOST_PARAMETERS, QUIET, WIDTH, check

LICENCE = "// SPDX-License-Identifier: BSL-1.0\n"


class Rules(unittest.TestCase):
    def problems(self, files):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return check(Path(folder))

    def headers(self, headers):
        """The problems of headers, except that those which no other one includes should be quiet."""
        problems = self.problems({f"include/pipe/{name}": f"{LICENCE}#pragma once\n{text}" for name, text in headers.items()})
        return [problem for problem in problems if "keeps it quiet" not in problem]

    def test_a_good_tree_passes(self):
        self.assertEqual([], self.headers({
            "base/a.hpp": "#include <vector>\n",
            "graph/b.hpp": "#include <pipe/base/a.hpp>\n",
            "report/c.hpp": "#include <pipe/graph/b.hpp>\n#include <pipe/base/a.hpp>\n",
            "pipe.hpp": "#include <pipe/report/c.hpp>\n",
        }))

    def test_numbers_do_not_depend_on_the_locale(self):
        for text in ['std::snprintf(text, sizeof text, "%.9g", x);', 'std::printf("rate %5.2f", x);', "x = std::strtod(text, &end);", "x = std::stod(text);",
                     "std::ostringstream text;", "std::ifstream file(path);", "if (std::isspace(c))"]:
            with self.subTest(text=text):
                self.assertEqual(1, len(self.headers({"base/a.hpp": text + "\n"})))
                self.assertEqual([], self.headers({"base/real_text.hpp": text + "\n"}))
        for text in ['std::snprintf(text, sizeof text, "%ld, %016llx: 50 %%", n);', "// by strtod(text)", "#include <fstream>", "bool isdigits = true;",
                     "std::ifstream file(path);  file.imbue(std::locale::classic());"]:
            with self.subTest(text=text):
                self.assertEqual([], self.headers({"base/a.hpp": text + "\n"}))

    def test_folders_include_downwards_only(self):
        for user, used in [("base", "graph"), ("graph", "schedule"), ("schedule", "graph"), ("optim", "backend"),
                           ("optim", "transport"), ("backend/host", "backend/cuda"), ("backend/cuda", "backend/host"),
                           ("train", "report"), ("passes", "backend/host"), ("nope", "base")]:
            with self.subTest(user=user, used=used):
                problems = self.headers({f"{user}/a.hpp": f"#include <pipe/{used}/b.hpp>\n", f"{used}/b.hpp": ""})
                self.assertEqual(1, len(problems), problems)
                self.assertIn(f"include/pipe/{user}/a.hpp:{1 if user == 'nope' else 3}:", problems[0])

    def test_backend_may_share(self):
        self.assertEqual([], self.headers({"backend/host/a.hpp": "#include <pipe/backend/b.hpp>\n", "backend/b.hpp": ""}))

    def test_headers_for_programs_are_quiet(self):
        quiet, loud = (f"{LICENCE}{text}#include <pipe/base/b.hpp>\n" for text in (QUIET, "#pragma once\n"))
        inner = {"include/pipe/base/b.hpp": f"{LICENCE}#pragma once\n", "include/pipe/backend/c.hpp": loud}
        self.assertEqual([], self.problems({"include/pipe/base/a.hpp": quiet, **inner}))
        self.assertEqual(["include/pipe/base/a.hpp:1: a header for programs is without the pragma that keeps it quiet"],
                         self.problems({"include/pipe/base/a.hpp": loud, **inner}))

    def test_no_cycles(self):
        problems = self.headers({"base/a.hpp": "#include <pipe/base/b.hpp>\n", "base/b.hpp": "#include <pipe/base/a.hpp>\n"})
        self.assertEqual(["include/pipe/base/a.hpp:1: includes itself: base/a.hpp -> base/b.hpp -> base/a.hpp"], problems)

    def test_no_cycles_of_folders(self):
        problems = self.headers({"plan/a.hpp": "#include <pipe/plan/parts/b.hpp>\n", "plan/parts/b.hpp": "#include <pipe/plan/c.hpp>\n", "plan/c.hpp": ""})
        self.assertEqual(["include/pipe/plan/parts: folders include each other: plan -> plan/parts -> plan: "
                          "plan/a.hpp:3 -> plan/parts/b.hpp, plan/parts/b.hpp:3 -> plan/c.hpp"], problems)
        self.assertEqual([], self.headers({"plan/a.hpp": "#include <pipe/plan/parts/b.hpp>\n", "plan/parts/b.hpp": "#include <pipe/base/c.hpp>\n", "base/c.hpp": ""}))

    def test_a_folder_fits_a_screen(self):
        self.assertEqual([], self.headers({f"base/a{i}.hpp": "" for i in range(MOST_FILES)}))
        self.assertEqual([f"include/pipe/base: {MOST_FILES + 1} files; a folder has at most {MOST_FILES}"],
                         self.headers({f"base/a{i}.hpp": "" for i in range(MOST_FILES + 1)}))

    def test_definitions_stand_beside_their_header(self):
        header, ending = "int f();\n}  // namespace pp\n", "#ifdef PIPE_DEFINED\n#include <pipe/base/a.inl>\n#endif\n"
        body = "namespace pp {\nPIPE_DEFINED int f() { return 1; }\n}  // namespace pp\n"

        def found(header, body, compiled="#include <pipe/base/a.hpp>\n"):
            return self.problems({"include/pipe/base/a.hpp": f"{LICENCE}#pragma once\nnamespace pp {{\n{header}", "include/pipe/base/a.inl": LICENCE + body,
                                  "include/pipe/base/b.hpp": f"{LICENCE}#pragma once\n#include <pipe/base/a.hpp>\n",
                                  "include/pipe/backend/b.hpp": f"{LICENCE}#pragma once\n#include <pipe/base/b.hpp>\n",
                                  "include/pipe/compiled.inl": LICENCE + compiled})
        self.assertEqual([], found(header + ending, body))
        at = "include/pipe/base/a.inl"
        beside = f"{at}:1: its header does not include it under #ifdef PIPE_DEFINED, behind its declarations"
        absent = "include/pipe/compiled.inl leads to no header that includes it"
        self.assertEqual([beside], found(header + "#include <pipe/base/a.inl>\n", body))
        self.assertEqual([beside], found(ending + header, body))
        self.assertEqual([f"{at}:1: pipe::compiled does not compile it: {absent}"], found(header + ending, body, ""))
        self.assertEqual([f"{at}:3: write PIPE_DEFINED for inline: inline int f() {{ return 1; }}"],
                         found(header + ending, body.replace("PIPE_DEFINED", "inline")))
        self.assertEqual([f"{at}:2: base/ comes before backend/: #include <pipe/backend/b.hpp>"],
                         found(header + ending, "#include <pipe/backend/b.hpp>\n" + body))
        template = "PIPE_COMPILED template void g<float>();\n"
        self.assertEqual([], found(header + ending + template, body))
        self.assertIn(f"include/pipe/base/a.hpp:1: pipe::compiled does not have its templates: {absent}", found(header + ending + template, body, ""))

    def test_definitions_are_counted_with_their_header(self):
        files = {f"base/a{i}.hpp": "" for i in range(MOST_FILES)}
        self.assertNotIn("files", " ".join(self.headers(files | {"base/a0.inl": ""})).replace(".inl", ""))
        self.assertIn(f"include/pipe/base: {MOST_FILES + 1} files; a folder has at most {MOST_FILES}", self.headers(files | {"base/b.inl": ""}))

    def test_what_every_program_reads_is_light(self):
        heavy = "#include <memory>\n"
        headers = {"pipe.hpp": "#include <pipe/base/a.hpp>\n", "base/a.hpp": heavy, "base/b.hpp": heavy}
        self.assertEqual(["include/pipe/base/a.hpp:3: <memory> costs every program "
                          "that includes <pipe/pipe.hpp>"], self.headers(headers))

    def test_includes_exist_and_are_spelled_in_full(self):
        self.assertIn("no such header", self.headers({"base/a.hpp": "#include <pipe/base/b.hpp>\n"})[0])
        self.assertIn("write <pipe/...>", self.headers({"base/a.hpp": '#include "b.hpp"\n', "base/b.hpp": ""})[0])

    def test_lines_of_headers_have_a_width(self):
        text = "int " + "x" * WIDTH + ";\n"
        self.assertEqual([f"include/pipe/base/a.hpp:3: {len(text) - 1} columns; there are at most {WIDTH}"],
                         self.headers({"base/a.hpp": text}))
        self.assertEqual([], self.headers({"base/a.hpp": "x" * WIDTH + "\n"}))

    def test_headers_open_with_a_noun(self):
        for opening in ["What a rank keeps.", "How a model is cut.", "Whether it fits.", "From rows to one.", "Lays out memory."]:
            with self.subTest(opening=opening):
                self.assertEqual([f"include/pipe/base/a.hpp:4: a header opens with what it is, a noun phrase: {opening}"],
                                 self.headers({"base/a.hpp": f"//\n// {opening}\n"}))
        self.assertEqual([], self.headers({"base/a.hpp": "//\n// The layout of memory.\n// What else?\n"}))

    def test_prose_has_the_words_of_the_field(self):
        for text, better in [("Mend the first", "fix"), ("so many ranks", "the number"), ("whoever waits", "the caller"),
                             ("for nobody", "no thread"), ("a layer of one's own", "user-defined"), ("row_order", "radix_sort_rows")]:
            with self.subTest(text=text):
                files = {"include/pipe/base/a.hpp": f"{LICENCE}#pragma once\n//\n// A list. {text}.\n",
                         "examples/a.cpp": f"{LICENCE}int x;  ///< {text}\n", "docs/a.md": f"# A page\n\n{text}\n"}
                found = [p for p in self.problems(files) if "keeps it quiet" not in p]
                self.assertEqual(["docs/a.md:3", "include/pipe/base/a.hpp:4", "examples/a.cpp:2"], [p.split(": ")[0] for p in found])
                self.assertTrue(all(f"write {better}" in p for p in found), found)
        self.assertEqual([], self.problems({"docs/a.md": "```\nwhoever\n```\nRecommend the least amends.\n"}))
        self.assertIn("opens with the noun: What is cut", self.headers({"base/a.hpp": "//\n// A cut.\nint x;  ///< What is cut\n"})[0])

    def test_headers_have_a_share_of_comments(self):
        def tree(comments):  # FEW_LINES lines, of which the licence is a comment too
            code = FEW_LINES - comments - 1
            lines = "  // A reason.\n" * comments + "int x;  // trailing\n" * (code - 9) + "\n" * 9
            return {"include/pipe/backend/a.inl": LICENCE + lines}
        enough = COMMENTS * FEW_LINES // 100 - 1
        self.assertEqual([], self.problems(tree(enough)))
        self.assertEqual([f"include/pipe:1: {COMMENTS - 0.1:.2f} % of {FEW_LINES} lines are comments; there are at least {COMMENTS} %"],
                         self.problems(tree(enough - 1)))

    def test_kernels_have_a_shape(self):
        shape = "/// A sum.\n///\n/// shape: x (n) -> y (1)\n"
        host = "template <>\nstruct kernel_of<op_kind::sum> : facts {};\n"
        body = "template <class P,\n          int G>\nstruct sum {\n  int n;\n  PIPE_HD static void run(Block& block, arguments const& a) {\n  }\n};\n"
        entry = "template <class Body>\nstatic __global__ void __launch_bounds__(256)\n    run_body(arguments const a) {\n}\n"
        for name, kernel, line in [("host/a.inl", host, 2), ("cuda/a.hpp", body, 3), ("cuda/a.cuh", entry, 2)]:
            with self.subTest(name=name):
                path, top = f"include/pipe/backend/{name}", f"{LICENCE}#pragma once\nint y;\n"
                self.assertEqual([], self.problems({path: top + shape + kernel}))
                for above in ("", shape.replace("shape", "law"), shape + "int z;\n", shape + "\n"):
                    found = self.problems({path: top + above + kernel})
                    self.assertEqual(1, len(found), found)
                    self.assertIn(f"{path}:{3 + above.count(chr(10)) + line}: a kernel without a shape: ", found[0])
        listed = "template <>\nstruct kernel_of<op_kind::sum> : one_kernel<sum> {};\n// __global__ functions\n"
        self.assertEqual([], self.problems({"include/pipe/backend/cuda/a.hpp": f"{LICENCE}#pragma once\n{listed}"}))

    def test_long_headers(self):
        problems = self.headers({"base/a.hpp": "int x;\n" * (LONGEST - 1)})
        self.assertEqual([f"include/pipe/base/a.hpp:{LONGEST + 1}: {LONGEST + 1} lines; a header has at most {LONGEST}"], problems)

    def test_boost_is_optional(self):
        boost = "#include <boost/hana/type.hpp>\n"
        self.assertEqual(["include/pipe/base/a.hpp:3: only pipe/hana.hpp needs Boost: " + boost.strip()],
                         self.headers({"base/a.hpp": boost, "hana.hpp": boost}))

    def test_catch_is_included_by_one_header(self):
        catch = "#include <catch2/catch.hpp>\n"
        self.assertEqual(["tests/base/a.cpp:2: include \"catch.hpp\", which knows Catch2's versions: " + catch.strip()],
                         self.problems({"tests/base/a.cpp": LICENCE + catch, "tests/catch.hpp": LICENCE + catch}))

    def test_declarations_go_downwards(self):
        scope = "namespace pp {{\n{}\n}}  // namespace pp\n"
        engine = "template <class P>\nclass engine{}"
        self.assertEqual([], self.headers({"runtime/a.hpp": scope.format(engine.format(";")),
                                           "runtime/b.hpp": scope.format(engine.format(" {\n};"))}))
        self.assertEqual(["include/pipe/backend/a.hpp:5: engine is defined above, in include/pipe/runtime/b.hpp"],
                         self.headers({"backend/a.hpp": scope.format(engine.format(";")),
                                       "runtime/b.hpp": scope.format(engine.format(" {\n};"))}))
        other = "namespace wrong {\nclass engine;\n}  // namespace wrong"
        self.assertEqual([], self.headers({"backend/a.hpp": scope.format(other),
                                           "runtime/b.hpp": scope.format(engine.format(" {\n};"))}))

    def test_members_are_defined_beside_their_class(self):
        scope = "namespace pp {{\n{}\n}}  // namespace pp\n"
        member = "template <class P>\nconstexpr long Cuda::bytes() {\n  return 0;\n}"
        struct = "struct Cuda {\n  template <class P>\n  static constexpr long bytes();\n};\n"
        self.assertEqual([], self.headers({"backend/a.hpp": scope.format(struct + member)}))
        self.assertEqual(["include/pipe/backend/b.hpp:5: a member of Cuda, which is of include/pipe/backend/a.hpp"],
                         self.headers({"backend/a.hpp": scope.format(struct), "backend/b.hpp": scope.format(member)}))

    def test_few_macros(self):
        defined = [f"#define PIPE_M{i} {i}\n" for i in range(MOST_MACROS + 1)]
        again = {"base/a.hpp": "".join(defined[:MOST_MACROS]), "base/b.hpp": "#ifdef X\n#undef PIPE_M0\n#define PIPE_M0\n#endif\n"}
        self.assertEqual([], self.headers(again))
        self.assertEqual([f"include/pipe/base/a.hpp:{MOST_MACROS + 3}: PIPE_M{MOST_MACROS} is macro number {MOST_MACROS + 1}; "
                          f"there are at most {MOST_MACROS}"], self.headers({"base/a.hpp": "".join(defined)}))
        self.assertEqual(["include/pipe/base/a.hpp:3: a macro that a program may have: HD"],
                         self.headers({"base/a.hpp": "#define HD\n"}))

    def test_functions_have_few_parameters(self):
        def listed(count, one="int a{i}"):
            return ",\n".join(one.format(i=i) for i in range(count))
        forms = ["void f({});", "template <class A, class B>\nstatic constexpr long f({}) const noexcept {{ return 0; }}", "f({}) : a{{1}}, b(2) {{}}",
                 "void operator()({}) const;", "bool operator<({});", "auto x = []({}) {{}};", "auto g() {{ return [&, a = 1]<class T>({}) {{}}; }}",
                 "inline auto const x = sorted(a, [=]({}) {{}});", "T f({}) requires(A<B> && C);", "[[nodiscard]] explicit(B) f({});",
                 "/// shape: x\n__global__ void __launch_bounds__(256) f({}) {{}}", "auto h() -> t<void> {{ g(1, 2); }} int f({});"]
        for form in forms:
            for scope in ("namespace pp {{\n{}\n}}  // namespace pp\n", "namespace pp {{\nstruct s : t<a, b> {{\n int a, b;\n{}\n}};\n}}  // namespace pp\n"):
                for one in ("int a{i}", "t<x, 1> const& a{i} = t<x, (2 > 1)>{{}}", "void (*a{i})(int, int)", "T (&a{i})[2]"):
                    with self.subTest(form=form, one=one):
                        self.assertEqual([], self.headers({"base/a.hpp": scope.format(form.format(listed(MOST_PARAMETERS, one)))}))
                        found = self.headers({"base/a.hpp": scope.format(form.format(listed(MOST_PARAMETERS + 1, one)))})
                        self.assertEqual(1, len(found), found)
                        self.assertIn(f"has {MOST_PARAMETERS + 1} parameters, make a struct of some", found[0])
        calls = "namespace pp {\ninline auto x = f(" + listed(9, "{i}") + ");\nint y = z[1](" + listed(9, "{i}") + ");\nvoid g() { f(" + listed(9, "{i}") + "); }\n}  // namespace pp\n"
        pointers = "namespace pp {\nstruct s {\n  int (*theirs)(" + listed(9, "int a{i}") + ");\n};\n}  // namespace pp\n"
        self.assertEqual([], self.headers({"base/a.hpp": calls + pointers}))

    def test_classes_have_few_fields(self):
        rest = ("  static constexpr int s[2]{1, 2};\n  using t = int;\n  enum class k : char { x, y };\n  template <class T>\n  constexpr int f(int a, int b) const {\n"
                "    int c = 1, d = 2;\n    return c + d;\n  }\n  friend constexpr bool operator==(s const&, s const&) = default;\n  struct inner {\n    int a, b;\n  };\n"
                " private:\n  constexpr explicit s(int n) : a{n}, b{n} {}\n  void g();\n")
        for fields, count in [("int a = 1, b{2};", 2), ("t<int, 2> c;", 1), ("long const d[max + 1]{-1, -1};", 1), ("void (*e)(int, int) = nullptr;", 1), ("std::function<void(int, int)> h;", 1)]:
            for form in ("struct s {{\n{}\n}};\n", "template <class A, class B>\nclass s : a<b, 1> {{\n{}\n}};\n"):
                with self.subTest(fields=fields, form=form):
                    filled = "".join(f"  int x{i};\n" for i in range(MOST_FIELDS - count)) + f"  {fields}\n{rest}"
                    self.assertEqual([], self.headers({"base/a.hpp": "namespace pp {\n" + form.format(filled) + "}  // namespace pp\n"}))
                    found = self.headers({"base/a.hpp": "namespace pp {\n" + form.format(filled + "  int more;\n") + "}  // namespace pp\n"})
                    self.assertEqual([f"include/pipe/base/a.hpp:4: class s has {MOST_FIELDS + 1} fields, make a struct of some; there are at most {MOST_FIELDS}"], found)

    def test_no_consteval(self):
        problems = self.headers({"base/a.hpp": "// consteval\nconsteval int f() { return 1; }\n"})
        self.assertEqual(["include/pipe/base/a.hpp:4: write constexpr, clang++ 14 cannot always call it: "
                          "consteval int f() { return 1; }"], problems)

    def test_no_directory_iterator(self):
        for line in ["for (std::filesystem::directory_iterator at(x);;)", "fs::recursive_directory_iterator at;"]:
            problems = self.headers({"base/a.hpp": line + "\n// directory_iterator\n"})
            self.assertEqual(1, len(problems), problems)

    def test_no_constant_of_a_concept(self):
        good = "static constexpr bool a = std::is_same_v<T, int>;\nstatic constexpr bool b = requires(T x) { { x } -> std::same_as<T>; };\n"
        bad = "static constexpr int c = std::integral<T> ? 1 : 0;"
        self.assertEqual([f"include/pipe/base/a.hpp:5: write a type trait, g++ 14 may lose the constant: {bad}"],
                         self.headers({"base/a.hpp": f"{good}{bad}\n"}))

    def test_torn_template_arguments(self):
        for line in ("auto a = f < x && y >= 0, g < P, G, 1 >> (b);", "auto a = f < T, rest == 0 > (n);", "(f < int(I), int(I) == N > (a, b), ...);",
                     "setting < O, requires(O o) { o.beta; } > (n);", "auto a = f < P,\n     G > (x);", "auto a = n + f < T > (x);",
                     "using t = choose < a && b, c<d> >;", "choose < a && b > ::type x;", "bool b = is < T && U > {};", "std::vector < int > v;",
                     "auto b = f<G>(i);\nauto a = f < a && b > (x);", "auto b = f<G>(i);\nif (f < B >> least) x();"):
            found = self.problems({"tests/base/a.cpp": f"{LICENCE}{line}\n"})
            self.assertEqual(1, len(found), line)
            self.assertIn(f"a.cpp:{3 if line.startswith('auto b = f<G>') else 2}: a torn template argument list", found[0])
        whole = ("bool a = x < y && z > w;\nauto b = f<P, G>(i < n);  // row < R, C > (x)\nfor (int i = 0; i < n; ++i) j > (i);\n"
                 "template <class A, class B = t<A>>\nbool c = a < b && c > (d);\nint d = a < b ? c : d > (e);\nint d = a ? b < c : d > e;\nauto e = f(a < b, c > d);\n"
                 "bool f = a < b || f<b, c>(d) > (e);\nbool g = 1 < x >> (y);\nauto h = \"a < b > (c)\";\nif (a < b) c = d > (e);\nbool i = a < b >> c;\n")
        self.assertEqual([], self.problems({"tests/base/a.cpp": LICENCE + whole}))

    def test_licence_and_paths(self):
        self.assertIn("no licence line", self.problems({"tests/base/a.cpp": "int x;\n"})[0])
        path = "/" + "home/somebody/data"
        self.assertIn("a.cpp:2: an absolute path", self.problems({"tests/base/a.cpp": f'{LICENCE}f("{path}");\n'})[0])
        self.assertEqual([], self.problems({"README.md": "see https://example.org/home/page and examples/work/x\n"}))


if __name__ == "__main__":
    unittest.main()
