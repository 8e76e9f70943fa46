// SPDX-License-Identifier: BSL-1.0
//
// Differences between the tensors of a file and those that are expected, as text.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <pipe/base/function_ref.hpp>
#include <pipe/base/joined_text.hpp>
#include <pipe/weights/safetensors_header.hpp>

namespace pp::detail {

/// The first eight problems, and the number of the others.
[[gnu::cold]] inline std::string text_of_problems(row_list<kept_text> const& problems) {
  constexpr std::size_t shown = 8;
  std::string text;
  for (std::size_t i = 0; i < problems.size() && i < shown; ++i)
    append_text(text, {i > 0 ? "; " : "", problems[i]});
  if (problems.size() > shown) append_text(text, {"; and ", problems.size() - shown, " more"});
  return text;
}
/// Names as text: "'a', 'b', 'c' and 9 more", or "none".
[[gnu::cold]] inline std::string text_of_names(std::size_t count,
                                               function_ref<std::string_view(std::size_t)> name) {
  constexpr std::size_t shown = 3;
  std::string text;
  for (std::size_t i = 0; i < count && i < shown; ++i)
    append_text(text, {i > 0 ? ", " : "", quotation(name(i))});
  if (count > shown) append_text(text, {" and ", count - shown, " more"});
  if (count == 0) append_text(text, {"none"});
  return text;
}
template <class Names>
std::string text_of_names(Names const& names) {
  return text_of_names(names.size(), [&](std::size_t i) { return std::string_view(names[i]); });
}

/// Type of a tensor, or of its entry in a header, as text.
template <class Tensor>
[[gnu::cold]] std::string text_of_type(Tensor const& tensor) {
  return tensor.type == stored_type::other ? in_quotes(tensor.other_type)
                                           : std::string(name_of(tensor.type));
}
/// A shape without leading extents of 1: (1, 197, 768) becomes (197, 768).
[[gnu::cold]] inline std::span<long const> without_leading_ones(std::span<long const> shape) {
  std::size_t ones = 0;
  while (ones + 1 < shape.size() && shape[ones] == 1) ++ones;
  return {shape.data() + ones, shape.size() - ones};
}
/// Whether two shapes have the same extents.
[[gnu::cold]] inline bool equal_extents(std::span<long const> a, std::span<long const> b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i]) return false;
  return true;
}
/// Description of a mismatch of shapes; empty if the shapes are equal but for leading extents of 1.
[[gnu::cold]] inline std::string misfit_of_shape(std::span<long const> expected,
                                                 std::span<long const> found) {
  return equal_extents(without_leading_ones(expected), without_leading_ones(found))
             ? ""
             : joined_text(
                   {"expected shape ", text_of_shape(expected), ", found ", text_of_shape(found)});
}

}  // namespace pp::detail
