// SPDX-License-Identifier: BSL-1.0
//
// Rows, texts, shapes and maps of files: what they keep when lists grow, are copied and are moved.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <pipe/io/kept_text.hpp>
#include <pipe/io/row_list.hpp>
#include <pipe/io/sorted.hpp>
#include <pipe/weights/extents.hpp>
#include <pipe/weights/text_map.hpp>

#include "catch.hpp"

using namespace pp::detail;

namespace {

struct row {
  static constexpr bool moves_by_bytes = true;
  kept_text name;
  row_list<kept_text> parts;
};
std::string name_of_number(int i) { return "a name of " + std::to_string(i) + " that is long"; }

}  // namespace

TEST_CASE("rows keep what they have when a list grows, is copied, moved and cut", "[train]") {
  static_assert(movable_by_bytes<row> && !movable_by_bytes<std::string>);
  row_list<row> rows;
  for (int i = 0; i < 100; ++i)
    rows.push_back({name_of_number(i), {"a", name_of_number(i)}}).parts.push_back("");
  row_list<row> const copy = rows;
  row_list<row> moved = std::move(rows);
  CHECK(rows.empty());
  moved.resize(50), moved.resize(60);
  rows = moved;
  rows.push_back(rows[7]);
  for (row_list<row> const* list : {&copy, &std::as_const(rows)})
    for (int i = 0; i < 50; ++i) {
      row const& r = (*list)[std::size_t(i)];
      CHECK(r.name == name_of_number(i));
      CHECK(r.parts == row_list<kept_text>{"a", name_of_number(i), ""});
    }
  CHECK(rows.size() == 61);
  CHECK((rows[55].name.empty() && rows[55].parts.empty()));
  CHECK(rows.back().name == name_of_number(7));
}

TEST_CASE("texts have any bytes, and a zero at the end", "[train]") {
  std::string const with_zero("a\0b", 3);
  kept_text text = with_zero;
  CHECK((text.size() == 3 && text == with_zero && text.c_str()[3] == 0));
  kept_text const copy = text;
  text = "other";
  CHECK((copy == with_zero && text == "other" && !(text == copy)));
  CHECK((kept_text().c_str()[0] == 0 && kept_text("") == kept_text()));
}

TEST_CASE("names are found by their first number, whatever their order", "[train]") {
  std::vector<std::string> names;
  for (int i = 0; i < 200; ++i) names.push_back(name_of_number(i * 37 % 150));
  name_index index;
  for (std::string const& name : names) index.add(name);
  index.sort();
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::size_t first = 0;
    while (names[first] != names[i]) ++first;
    CHECK(index.find(names[i]) == long(first));
    CHECK(index.repeats(i) == (first != i));
  }
  CHECK(index.find("a name") == -1);
  CHECK(name_index().find("") == -1);
}

TEST_CASE("a map of texts is that of the standard library", "[train]") {
  std::map<std::string, std::string> const known{{"b", "2"}, {"a", ""}, {"\xC3\xA9", "3"}};
  text_map map(known);
  CHECK(map == text_map{{"\xC3\xA9", "3"}, {"a", ""}, {"b", "2"}});
  auto of_known = known.begin();
  for (auto const& [name, text] : map) {
    CHECK((name == of_known->first && text == of_known->second));
    ++of_known;
  }
  map.set("b", "other"), map.set("c", "new");
  CHECK((map.size() == 4 && map.at("b") == "other" && map.at("c") == "new"));
  CHECK((map.contains("a") && map.find("d") == map.end()));
  CHECK_THROWS_AS(map.at("d"), pp::data_error);
  row_list<text_map::entry> twice{{"x", "1"}, {"y", "2"}, {"x", "3"}};
  kept_text const* const name = map.take(twice);
  REQUIRE(name != nullptr);
  CHECK((*name == "x" && map == text_map{{"x", "1"}, {"y", "2"}}));
}

TEST_CASE("shapes of more extents than a file may have are counted", "[train]") {
  std::vector<long> const many(40, 1);
  extents shape = many;
  CHECK((shape.size() == 40 && !(shape == extents(std::vector<long>(32, 1)))));
  shape = {2, 3};
  shape.push_front(1), shape.push_back(4);
  CHECK(shape == extents{1, 2, 3, 4});
}
