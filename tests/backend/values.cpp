// SPDX-License-Identifier: BSL-1.0
//
// Values in bfloat16, on every instruction set: conversions have the bits of base/half.hpp, and
// products the bits of products of their values as numbers.
#include "catch.hpp"

#include <cstdint>
#include <cstring>
#include <vector>

#include "backend/lone_kernel.hpp"

using namespace pp;
using host::extent;

namespace {

std::uint32_t bits_of(float x) { return __builtin_bit_cast(std::uint32_t, x); }
float float_of(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }

/// Numbers that a bfloat16 holds.
struct values {
  exact<bf16> narrow;
  exact<float> wide;
  values(extent n, unsigned seed) : narrow(n), wide(n, seed) {
    for (extent i = 0; i < n; ++i) narrow[i] = bf16(wide[i]), wide[i] = float(narrow[i]);
  }
};

/// The functions of each instruction set that convert and multiply.
template <class Test>
void with_every_set(Test test) {
  test("portable", host::portable::products_of<float, bf16>, host::portable::tiles<float>,
       &host::portable::transpose<float, bf16>);
#ifdef __x86_64__
  if (host::best_isa() >= host::isa::avx2)
    test("avx2", host::avx2::products_of<float, bf16>, host::avx2::tiles<float>,
         &host::avx2::transpose<float, bf16>);
  if (host::best_isa() >= host::isa::avx512)
    test("avx512", host::avx512::products_of<float, bf16>, host::avx512::tiles<float>,
         &host::avx512::transpose<float, bf16>);
#endif
}

}  // namespace

TEST_CASE("vectors of bfloat16 are converted as single numbers", "[backend]") {
  with_every_set([](char const* name, auto const& set, auto const&, auto) {
    INFO(name);
    std::vector<bf16> all(65536);
    std::vector<float> wide(all.size()), around;
    for (std::size_t b = 0; b < all.size(); ++b) all[b].bits = std::uint16_t(b);
    set.rows.widen(all.data(), 65536, 1, 65536, 65536, wide.data(), 65536);
    bool same = true;
    for (std::size_t b = 0; b < all.size(); ++b)
      same = same && bits_of(wide[b]) == bits_of(float(all[b]));
    CHECK(same);
    // All values, and between each two neighbours: just above, the middle, and beside it.
    for (std::uint32_t b = 0; b < 65536; ++b)
      for (std::uint32_t low : {0u, 1u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu})
        around.push_back(float_of(b << 16 | low));
    around.push_back(1.5f);  // a length that is no multiple of a vector
    extent const n = extent(around.size());
    std::vector<bf16> found(around.size());
    set.rows.narrow(around.data(), n, 1, n, found.data(), n);
    for (std::size_t i = 0; i < around.size(); ++i)
      same = same && found[i].bits == bf16(around[i]).bits;
    CHECK(same);
  });
}

TEST_CASE("products of bfloat16 have the bits of their factors as numbers", "[backend]") {
  // One row; a tile and its edges; several blocks of rows, of columns and of the sum.
  extent const shapes[][3] = {{1, 5, 3}, {9, 49, 17}, {8, 96, 320}, {263, 70, 651}, {20, 803, 330}};
  with_every_set([&](char const* name, auto const& set, auto const& tiles, auto) {
    for (auto const& [m, n, k] : shapes)
      for (bool const transposed : {false, true}) {
        INFO(name << ": " << m << " x " << n << " x " << k << (transposed ? ", A'" : ""));
        values const a(m * k, 1), b(k * n, 2);
        exact<float> found(m * n, 3), expected(m * n, 3);
        host::product_shape const shape{m, n, k};
        extent const row = transposed ? 1 : k, column = transposed ? m : 1;
        host::contraction_ends<float> ends;
        ends.ldc = n;
        ends.adds = transposed;
        workspace narrow{host::value_product_workspace<float>(m, n, k)},
            wide{host::contraction_workspace<float>(m, n, k)};
        ends.c = found.data();
        host::contract_values<float, bf16>(
            set, host::product_unit::vectors,
            {shape, {a.narrow.data(), row, column}, b.narrow.data(), n}, ends, narrow.at);
        ends.c = expected.data();
        host::contract_tiles<float>(tiles, shape, {a.wide.data(), row, column}, b.wide.data(), n,
                                    ends, wide.at);
        CHECK(found == expected);
      }
  });
}

TEST_CASE("transposed copies of parameters are rounded", "[backend]") {
  with_every_set([](char const* name, auto const&, auto const&, auto transpose) {
    INFO(name);
    extent const rows = 37, columns = 50;
    exact<float> const from(rows * columns, 4);
    exact<bf16> to(rows * columns);
    transpose(from.data(), rows, columns, columns, to.data(), rows);
    bool same = true;
    for (extent r = 0; r < rows; ++r)
      for (extent c = 0; c < columns; ++c)
        same = same && to[c * rows + r].bits == bf16(from[r * columns + c]).bits;
    CHECK(same);
  });
}
