// SPDX-License-Identifier: BSL-1.0
//
// Definitions of weights/misfit.hpp.

#include <pipe/weights/safetensors_header.hpp>

namespace pp::detail {

PIPE_DEFINED std::string text_of_problems(row_list<kept_text> const& problems) {
  constexpr std::size_t shown = 8;
  std::string text;
  for (std::size_t i = 0; i < problems.size() && i < shown; ++i)
    append_text(text, {i > 0 ? "; " : "", problems[i]});
  if (problems.size() > shown) append_text(text, {"; and ", problems.size() - shown, " more"});
  return text;
}
PIPE_DEFINED std::string text_of_names(std::size_t count,
                                       function_ref<std::string_view(std::size_t)> name) {
  constexpr std::size_t shown = 3;
  std::string text;
  for (std::size_t i = 0; i < count && i < shown; ++i)
    append_text(text, {i > 0 ? ", " : "", quotation(name(i))});
  if (count > shown) append_text(text, {" and ", count - shown, " more"});
  if (count == 0) append_text(text, {"none"});
  return text;
}
PIPE_DEFINED std::span<long const> without_leading_ones(std::span<long const> shape) {
  std::size_t ones = 0;
  while (ones + 1 < shape.size() && shape[ones] == 1) ++ones;
  return {shape.data() + ones, shape.size() - ones};
}
PIPE_DEFINED bool equal_extents(std::span<long const> a, std::span<long const> b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i]) return false;
  return true;
}
PIPE_DEFINED std::string misfit_of_shape(std::span<long const> expected,
                                         std::span<long const> found) {
  return equal_extents(without_leading_ones(expected), without_leading_ones(found))
             ? ""
             : joined_text(
                   {"expected shape ", text_of_shape(expected), ", found ", text_of_shape(found)});
}

}  // namespace pp::detail
