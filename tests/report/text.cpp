// SPDX-License-Identifier: BSL-1.0
//
// Numbers, columns, broken lines and lists with repetitions.
#include "catch.hpp"

#include <pipe/report/amounts.hpp>
#include <pipe/report/layer_list.hpp>
#include <pipe/report/text_table.hpp>

TEST_CASE("counts have commas between thousands") {
  CHECK(pp::console::readable_count(0) == "0");
  CHECK(pp::console::readable_count(999) == "999");
  CHECK(pp::console::readable_count(1000) == "1,000");
  CHECK(pp::console::readable_count(-123456) == "-123,456");
  CHECK(pp::console::readable_count(1234567890) == "1,234,567,890");
}

TEST_CASE("bytes have the unit that leaves up to four digits") {
  CHECK(pp::console::readable_bytes(0) == "-");
  CHECK(pp::console::readable_bytes(1023) == "1023 B");
  CHECK(pp::console::readable_bytes(1024) == "1.0 KiB");
  CHECK(pp::console::readable_bytes(1536) == "1.5 KiB");
  CHECK(pp::console::readable_bytes((1L << 20) - 1) == "1.0 MiB");
  CHECK(pp::console::readable_bytes(5L << 30) == "5.0 GiB");
}

TEST_CASE("shares and shapes") {
  CHECK(pp::console::readable_percent(0.2484) == "24.8 %");
  CHECK(pp::detail::readable_shape(pp::sample_shape(128, 96)) == "128 x 96");
  CHECK(pp::detail::readable_shape(pp::sample_shape(7)) == "7");
}

TEST_CASE("a table aligns its columns") {
  pp::console::text_table table({"n", "name", "size"}, {1});
  table.add({"1", "a", "10"});
  table.add({"22", "bcd", "1,000"});
  CHECK(table.str() ==
        " n  name   size\n"
        " 1  a        10\n"
        "22  bcd   1,000\n");
}

TEST_CASE("widths are counted in code points") {
  pp::console::text_table table({"layer", "times"}, {0});
  table.add({"größe", "3 µs"});
  table.add({"W", "10 µs"});
  CHECK(table.str() ==
        "layer  times\n"
        "größe   3 µs\n"
        "W      10 µs\n");
  CHECK(pp::detail::wrapped("größe, äöüäöü, b", 16, 2) == "größe, äöüäöü, b");
}

TEST_CASE("a list breaks after commas") {
  CHECK(pp::detail::wrapped("stage 0  A<1, 2>, B, C", 16, 9) ==
        "stage 0  A<1,\n         2>, B,\n         C");
  CHECK(pp::detail::wrapped("one, two", 80, 0) == "one, two");
  CHECK(pp::detail::wrapped("longer-than-the-line, b", 6, 2) == "longer-than-the-line,\n  b");
  CHECK(pp::detail::wrapped("", 80, 0).empty());
}

TEST_CASE("a list counts its repetitions") {
  CHECK(pp::detail::list_with_repetitions({}).empty());
  CHECK(pp::detail::list_with_repetitions({"A"}) == "A");
  CHECK(pp::detail::list_with_repetitions({"A", "A", "A"}) == "A x3");
  CHECK(pp::detail::list_with_repetitions({"E", "A", "B", "A", "B", "A", "B", "L"}) ==
        "E, (A, B) x3, L");
  CHECK(pp::detail::list_with_repetitions({"A", "B", "A"}) == "A, B, A");
  CHECK(pp::detail::list_with_repetitions({"A", "A", "B", "A", "A", "B"}) == "(A, A, B) x2");
}
