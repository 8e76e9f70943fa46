// SPDX-License-Identifier: BSL-1.0
//
// The division of a kernel's work among the threads of a rank (HostThreads<N>). Each part computes
// some rows of the result, or columns of a sum over rows, exactly as the whole kernel would, so the
// bits of a result do not depend on the number of parts.
#pragma once

#include <limits>

#include <pipe/backend/host/isa.hpp>
#include <pipe/base/config.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::host {

/// The half-open range [begin, end) of n rows, columns or heads.
struct part_range {
  extent begin = 0, end = 0;
  constexpr extent size() const { return end - begin; }
};
/// A range that has all elements of any part; see within().
inline constexpr part_range everything{0, std::numeric_limits<extent>::max()};
/// The elements of a range that lie in [0, n).
constexpr part_range within(part_range p, extent n) {
  return part_range{p.begin, p.end < n ? p.end : n};
}

/// The part-th of `parts` parts of [0, n).
///
/// law: the parts follow each other, cover [0, n) and begin at multiples of `alignment`;
///      their numbers of these differ by at most one
constexpr part_range part_of(extent n, extent alignment, int part, int parts) {
  extent const count = (n + alignment - 1) / alignment,
               end = count * (part + 1) / parts * alignment;
  return part_range{count * part / parts * alignment, end < n ? end : n};
}

/// part_of as a function that is not inlined, for calls at run time in many kernels.
PIPE_ONE_COPY inline part_range own_part(extent n, extent alignment, int part, int parts) {
  return part_of(n, alignment, part, parts);
}

/// The largest size that a part can have.
constexpr extent largest_part(extent n, extent alignment, int parts) {
  extent const most = ((n + alignment - 1) / alignment + parts - 1) / parts * alignment;
  return most < n ? most : n;
}

/// The alignment of parts of a contraction's rows: whole register tiles of every instruction set.
inline constexpr extent row_alignment = 8;
/// The alignment of parts of columns: whole cache lines, so that no two threads write to one line.
template <class T>
inline constexpr extent column_alignment = extent(widest_vector_bytes / sizeof(T));

}  // namespace pp::host
PIPE_OPTIMIZED_END
