// SPDX-License-Identifier: BSL-1.0
#include "catch.hpp"

#include <cstddef>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>

#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>

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
  CHECK(text_of({}).empty());
  CHECK(text_of({0.1, " ", -2.0, " ", 1e300, " ", std::numeric_limits<double>::infinity(), " ",
                 std::numeric_limits<double>::quiet_NaN()}) == "0.1 -2 1e+300 inf nan");
}

TEST_CASE("a complaint is thrown as what it is", "[base]") {
  CHECK_THROWS_AS(pp::detail::throw_error<pp::data_error>({"token ", 7}), pp::data_error);
  CHECK_THROWS_WITH(pp::detail::throw_error<pp::error>({"token ", 7}), "token 7");
}
