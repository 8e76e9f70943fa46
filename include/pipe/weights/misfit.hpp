// SPDX-License-Identifier: BSL-1.0
//
// Differences between the tensors of a file and those that are expected, as text.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <pipe/base/config.hpp>
#include <pipe/base/function_ref.hpp>
#include <pipe/base/joined_text.hpp>
#include <pipe/base/utf8.hpp>
#include <pipe/io/kept_text.hpp>
#include <pipe/io/row_list.hpp>
#include <pipe/weights/stored_type.hpp>

namespace pp::detail {

/// The first eight problems, and the number of the others.
[[gnu::cold]] std::string text_of_problems(row_list<kept_text> const& problems);
/// Names as text: "'a', 'b', 'c' and 9 more", or "none".
[[gnu::cold]] std::string text_of_names(std::size_t count,
                                        function_ref<std::string_view(std::size_t)> name);
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
[[gnu::cold]] std::span<long const> without_leading_ones(std::span<long const> shape);
/// Whether two shapes have the same extents.
[[gnu::cold]] bool equal_extents(std::span<long const> a, std::span<long const> b);
/// Description of a mismatch of shapes; empty if the shapes are equal but for leading extents of 1.
[[gnu::cold]] std::string misfit_of_shape(std::span<long const> expected,
                                          std::span<long const> found);

}  // namespace pp::detail
#ifdef PIPE_DEFINED
#include <pipe/weights/misfit.inl>
#endif
