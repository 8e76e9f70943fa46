// SPDX-License-Identifier: BSL-1.0
//
// The plain values that the compiler inside is made of: shape, static_vector, list, amounts of
// memory, element types.
#include "catch.hpp"

#include <pipe/base/bytes.hpp>
#include <pipe/base/dtype.hpp>
#include <pipe/base/list.hpp>
#include <pipe/base/shape.hpp>
#include <pipe/base/static_vector.hpp>

using namespace pp;
using namespace pp::detail;

TEST_CASE("a shape is rows of columns", "[base]") {
  constexpr sample_shape image(4, 5, 3);
  static_assert(image.rank == 3);
  static_assert(image.rows() == 20);
  static_assert(image.columns() == 3);
  static_assert(image.elements() == 60);
  static_assert(image.with_columns(7) == sample_shape(4, 5, 7));
  static_assert(!(image == sample_shape(4, 5)));
  static_assert(!(sample_shape(2, 1) == sample_shape(1, 2)));
  static_assert(sample_shape{}.elements() == 0);
  static_assert(sample_shape{}.columns() == 0);
  static_assert(sample_shape(6).rows() == 1);
  static_assert(sample_shape(1 << 20, 1 << 20).elements() == 1L << 40);  // beyond int
  static_assert(sample_shape(1, 2, 3, 4).elements() == 24);
}

TEST_CASE("a static_vector grows up to its capacity", "[base]") {
  detail::static_vector<int, 3> v;
  CHECK(v.empty());
  v.push_back(4);
  v.push_back(5);
  v.push_back(6);
  CHECK(v.size() == 3);
  CHECK(v.back() == 6);
  int sum = 0;
  for (int const x : v) sum += x;
  CHECK(sum == 15);
  detail::static_vector<int, 3> w = v;
  CHECK(w == v);
  w[1] = 9;
  CHECK_FALSE(w == v);
}

TEST_CASE("only the items of a static_vector count, not its room", "[base]") {
  constexpr auto equal = [] {
    detail::static_vector<int, 4> a, b;
    a.push_back(1);
    b.push_back(1);
    b.push_back(2);
    b.count = 1;
    return a == b;
  }();
  static_assert(equal);
  static_assert(detail::static_vector<int, 0>{}.empty());
}

TEST_CASE("a list may be empty", "[base]") {
  static_assert(list<int, 0>::size() == 0);
  constexpr list<int, 2> two{{3, 4}};
  static_assert(two[1] == 4 && two.size() == 2);
}

TEST_CASE("amounts of memory", "[base]") {
  static_assert(3_KiB == 3072 && 2_MiB == 2 << 20 && 8_GiB == 8L << 30);
  static_assert(detail::align_up(0) == 0 && detail::align_up(1) == 64 &&
                detail::align_up(64) == 64 && detail::align_up(65) == 128);
  STATIC_REQUIRE(size_of(detail::dtype_of<float>::value) == 4);
  STATIC_REQUIRE(size_of(detail::dtype_of<double>::value) == 8);
  STATIC_REQUIRE(size_of(detail::dtype_of<bf16>::value) == 2);
  STATIC_REQUIRE(size_of(detail::dtype_of<fp16>::value) == 2);
  STATIC_REQUIRE(size_of(dtype::tf32) == 4);
}
