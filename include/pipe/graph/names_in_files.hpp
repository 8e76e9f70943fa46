// SPDX-License-Identifier: BSL-1.0
//
// The check that no two parameters of a model have the same name in weight files. It works on the
// names themselves, as a description gives them to its observer, so it holds for every way in which
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
  int depth = 0, deeper = 0;   // the parts around it, and those beyond most_parts
  std::uint64_t hashes[Parameters + 1]{};  // 0: no name of its own
  int wanted = -1, length = 0;             // once `length` is set, `way` holds the wanted name

  /// The calls of a builder: a numbered part begins, ends; a name is given to it; it has a
  /// parameter.
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
  /// The last part of the way gets this name: a number, or what Named gives.
  constexpr void name(std::string_view given) {
    ends[depth] = ends[depth - 1];
    for (char const c : given) put(ends[depth], c);
    put(ends[depth], '.');
  }
  /// Hashes the full name of a parameter: the way from the model to it, then its own name.
  /// Does nothing once the wanted name is found.
  constexpr void parameter(int index, file_name const& file) {
    if (length > 0) return;
    int end = ends[depth];
    for (char const c : std::string_view(file.name)) put(end, c);
    fnv_hash hash;
    for (int i = 0; i < end; ++i) hash.add(static_cast<unsigned char>(way[i]));
    hashes[index] = hash.value;
    if (index == wanted) length = end;
  }

  /// The first parameter whose hash an earlier one has, or -1. Names with equal hashes count as
  /// equal.
  ///
  /// cost: linear: a hash table with open addressing, at most a quarter full
  constexpr int repeated() const {
    constexpr unsigned slots = 4u * (Parameters + 1);
    std::uint64_t seen[slots]{};
    for (int i = 0; i < Parameters; ++i) {
      if (hashes[i] == 0) continue;
      unsigned at = unsigned(hashes[i] % slots);
      for (; seen[at] != 0; at = at + 1 == slots ? 0 : at + 1)
        if (seen[at] == hashes[i]) return i;
      seen[at] = hashes[i];
    }
    return -1;
  }

 private:
  /// Appends a letter. One beyond most_letters is dropped, so longer names that differ only after
  /// that count as equal. Once the wanted name is found, `way` stays as it is.
  constexpr void put(int& end, char c) {
    if (length == 0 && end < most_letters) way[end++] = c;
  }
};

}  // namespace pp::detail
