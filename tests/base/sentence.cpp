// SPDX-License-Identifier: BSL-1.0
#include <catch2/catch.hpp>

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>

#include <pipe/base/sentence.hpp>

TEST_CASE("words and numbers make a sentence", "[base]") {
  std::string const owned = "words";
  std::string_view const seen = std::string_view("numbers, more").substr(0, 7);
  CHECK(pp::sentence({owned, " and ", seen, " ", 3, ", ", -7L, ", ", std::size_t(5)}) == "words and numbers 3, -7, 5");
  CHECK(pp::sentence({std::numeric_limits<long>::min()}) == std::to_string(std::numeric_limits<long>::min()));
  CHECK(pp::sentence({}).empty());
}
