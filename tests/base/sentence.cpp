// SPDX-License-Identifier: BSL-1.0
#include "catch.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/base/joined_text.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/base/utf8.hpp>
#include <pipe/io/sorted.hpp>

namespace {
std::string text_of(std::initializer_list<pp::detail::piece> pieces) {
  return pp::detail::sentence(pieces).begin();
}
}  // namespace

TEST_CASE("words and numbers make a sentence", "[base]") {
  std::string_view const seen = std::string_view("numbers, more").substr(0, 7), empty;
  CHECK(text_of({"words and ", seen, empty, " ", 3, ", ", -7L, ", ", std::size_t(5)}) ==
        "words and numbers 3, -7, 5");
  CHECK(text_of({std::numeric_limits<long>::min()}) ==
        std::to_string(std::numeric_limits<long>::min()));
  CHECK(text_of({std::numeric_limits<std::uint64_t>::max()}) == "18446744073709551615");
  CHECK(text_of({}).empty());
  CHECK(text_of({0.1, " ", -2.0, " ", 1e300, " ", std::numeric_limits<double>::infinity(), " ",
                 std::numeric_limits<double>::quiet_NaN()}) == "0.1 -2 1e+300 inf nan");
}

TEST_CASE("a complaint is thrown as what it is", "[base]") {
  CHECK_THROWS_AS(pp::detail::throw_error<pp::data_error>({"token ", 7}), pp::data_error);
  CHECK_THROWS_WITH(pp::detail::throw_error<pp::error>({"token ", 7}), "token 7");
}

TEST_CASE("parts are joined to a string, names in quotes", "[base]") {
  using namespace pp::detail;
  std::string const name = "a\n", long_name(200, 'x');
  CHECK(joined_text({name, 1, quotation(name), ", ", quotation(long_name)}) ==
        name + "1" + in_quotes(name) + ", " + in_quotes(long_name));
  std::string text = "rank ";
  append_text(text, {3, std::string_view(" of "), 4u});
  append_text(text, {});
  CHECK(text == "rank 3 of 4");
  CHECK_THROWS_WITH((throw_joined<pp::data_error>({"'", name, "': "}, {"byte ", 7})),
                    "'a\n': byte 7");
}

TEST_CASE("indices are sorted, equal items in their order", "[base]") {
  std::vector<std::pair<int, std::size_t>> items;
  for (std::size_t n : {0, 1, 2, 3, 7, 8, 100, 1000}) {
    items.clear();
    for (std::size_t i = 0; i < n; ++i) items.emplace_back(int(i * i * 7 % 31), i);
    auto const before = [&](std::size_t i, std::size_t k) {
      return items[i].first < items[k].first;
    };
    pp::detail::row_list<std::size_t> const order = pp::detail::sorted(n, before);
    REQUIRE(order.size() == n);
    std::vector<std::pair<int, std::size_t>> in_order;
    for (std::size_t const i : order) in_order.push_back(items[i]);
    for (std::size_t i = 1; i < n; ++i) CHECK(in_order[i - 1] < in_order[i]);
  }
}
