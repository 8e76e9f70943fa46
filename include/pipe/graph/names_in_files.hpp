// SPDX-License-Identifier: BSL-1.0
//
// The check that no two parameters of a model have the same name in weight files. The check reads
// the composed names, as a description gives them to its observer, so it covers every way in which
// a name is composed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include <pipe/base/hash.hpp>
#include <pipe/graph/handle.hpp>

namespace pp::detail {

/// An observer of a description that stores the hash of each parameter's name, and the full name of
/// parameter `wanted`.
template <int Parameters>
struct names_in_files {
  static constexpr int most_letters = 1024, most_parts = 256;
  char way[most_letters]{};    // the names of the parts around the present place, with dots
  int ends[most_parts + 1]{};  // the length of `way` after each number of parts
  int depth = 0, deeper = 0;   // parts around it; how many are beyond most_parts
  std::uint64_t hashes[Parameters + 1]{};  // 0: no name of its own
  int wanted = -1, length = 0;             // once `length` is set, `way` holds the wanted name

  /// Called by a builder: part(i) where numbered part i begins, end_part() where it ends, name() if
  /// it has a name, parameter() for each parameter in it.
  constexpr void part(int i) {
    char digits[12]{};
    int n = 0;
    for (; i > 9; i /= 10) digits[n++] = char('0' + i % 10);
    digits[n++] = char('0' + i);
    for (int k = 0; k < n / 2; ++k) std::swap(digits[k], digits[n - 1 - k]);
    ++(depth < most_parts ? depth : deeper);
    name({digits, std::size_t(n)});
  }
  constexpr void end_part() { --(deeper > 0 ? deeper : depth); }
  /// Sets the last name of `way`: a number, or the name that Named gives.
  constexpr void name(std::string_view given) {
    ends[depth] = ends[depth - 1];
    for (char const c : given) put(ends[depth], c);
    put(ends[depth], '.');
  }
  /// Hashes the full name of a parameter: the names of the parts around it, then its own name. Does
  /// nothing once the wanted name is found.
  constexpr void parameter(int index, file_name const& file) {
    if (length > 0) return;
    int end = ends[depth];
    for (char const c : std::string_view(file.name)) put(end, c);
    fnv_hash hash;
    for (int i = 0; i < end; ++i) hash.add(static_cast<unsigned char>(way[i]));
    hashes[index] = hash.value;
    if (index == wanted) length = end;
  }

  /// The first parameter whose hash an earlier parameter has, or -1. Names with equal hashes count
  /// as equal.
  ///
  /// cost: linear: a hash table with open addressing, at most a quarter full
  constexpr int repeated() const {
    constexpr unsigned size = 4u * (Parameters + 1);
    std::uint64_t seen[size]{};
    for (int i = 0; i < Parameters; ++i) {
      if (hashes[i] == 0) continue;
      unsigned at = unsigned(hashes[i] % size);
      for (; seen[at] != 0; at = at + 1 == size ? 0 : at + 1)
        if (seen[at] == hashes[i]) return i;
      seen[at] = hashes[i];
    }
    return -1;
  }

 private:
  /// Appends a letter. Letters beyond most_letters are dropped, so names that differ only beyond
  /// there count as equal. Once the wanted name is found, `way` stays as it is.
  constexpr void put(int& end, char c) {
    if (length == 0 && end < most_letters) way[end++] = c;
  }
};

}  // namespace pp::detail
