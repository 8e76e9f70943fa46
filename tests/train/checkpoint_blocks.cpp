// SPDX-License-Identifier: BSL-1.0
//
// A checkpoint's tensors are written block by block: their bytes and checksums are those of the
// whole.
#include "catch.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include <pipe/checkpoint/checkpoint.hpp>
#include <pipe/io/crc32c.hpp>

using namespace pp;

namespace {

/// CRC-32C bit by bit, by its definition.
std::uint32_t checksum(std::span<std::byte const> bytes) {
  std::uint32_t remainder = 0xFFFFFFFF;
  for (std::byte const b : bytes) {
    remainder ^= std::uint32_t(b);
    for (int bit = 0; bit < 8; ++bit) remainder = remainder >> 1 ^ (remainder & 1 ? 0x82F63B78 : 0);
  }
  return ~remainder;
}

template <class T>
void stores_all_in_order(int rows, int columns, bool transposed) {
  std::vector<T> values(std::size_t(rows) * std::size_t(columns));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = T(i + 1);
  std::vector<long> const shape =
      transposed ? std::vector<long>{columns, rows} : std::vector<long>{rows, columns};
  detail::named_parameter<T> const of{"w", shape, transposed, rows, columns, values};
  std::vector<std::byte> bytes;
  int blocks = 0;
  detail::store(of, values.data(), [&](std::span<std::byte const> block) {
    bytes.insert(bytes.end(), block.begin(), block.end());
    ++blocks;
  });
  CAPTURE(rows, columns, transposed, blocks);
  CHECK(blocks > 1);
  std::vector<T> read(values.size());
  detail::named_parameter<T> const to{"w", shape, transposed, rows, columns, read};
  REQUIRE(bytes.size() == sizeof(T) * values.size());
  detail::copy_block_in(detail::stored_type_of<T>(), std::span<std::byte const>(bytes), 0, to);
  CHECK(read == values);
}

}  // namespace

TEST_CASE("checksums of any length, anywhere in memory, are those of the definition", "[train]") {
  std::vector<std::byte> all(3 * 3072 + 100);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = std::byte(i * i * 37 + i / 256 + 11);
  std::span<std::byte const> const bytes(all);
  auto const check = [&](std::span<std::byte const> part) {
    std::uint32_t const sum = checksum(part);
    bool is_right = detail::crc32c(part) == sum && ~detail::crc32c_by_table(~0u, part) == sum;
    for (std::size_t const cut : {std::size_t(5), part.size() / 2})
      if (cut <= part.size())
        is_right =
            is_right && detail::crc32c(part.subspan(cut), detail::crc32c(part.first(cut))) == sum;
    return is_right;
  };
  for (std::size_t begin = 0; begin < 9; ++begin)
    for (std::size_t const around : {0, 3072, 2 * 3072, 3 * 3072})
      for (std::size_t more = 0; more < 20; ++more) {
        CAPTURE(begin, around, more);
        CHECK(check(bytes.subspan(begin, around + more)));
      }
}

TEST_CASE("large tensors are stored in blocks, and none of their numbers is lost", "[train]") {
  for (bool const transposed : {false, true}) {
    stores_all_in_order<float>(48, 3001, transposed);
    stores_all_in_order<float>(3001, 48, transposed);
    stores_all_in_order<double>(37, 1999, transposed);
    // A line that is larger than a block.
    stores_all_in_order<float>(17, 70001, transposed);
    stores_all_in_order<float>(70001, 17, transposed);
  }
}
