// SPDX-License-Identifier: BSL-1.0
//
// The comparison of a checkpoint with the trainer that is to go on from it, by optimizer and
// tensors.
#pragma once

#include <charconv>
#include <cstddef>
#include <string>

#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/joined_text.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/checkpoint/open_checkpoint.hpp>
#include <pipe/weights/safetensors_header.hpp>

namespace pp::detail {

/// The optimizer in the words of metadata: "AdamW, beta1 = 0.9, beta2 = 0.999", with the settings
/// on which the optimizer's state depends.
template <class O>
[[gnu::cold]] std::string text_of_optimizer(O const& o) {
  std::string text = O::name;
  if constexpr (requires { o.for_each_state_setting([](char const*, double) {}); })
    o.for_each_state_setting([&](char const* name, double value) {
      char digits[32];
      char* const end = std::to_chars(digits, digits + sizeof digits, value).ptr;
      append_text(text, {", ", name, " = ", std::string_view(digits, std::size_t(end - digits))});
    });
  return text;
}

/// The library's version in the words of metadata: "0.2.0".
[[gnu::cold]] std::string text_of_version();

/// The tensors of a checkpoint that a trainer expects, and what does not fit.
class checkpoint_match {
 public:
  /// throws: data_error if the checkpoint is of another optimizer
  [[gnu::cold]] checkpoint_match(open_checkpoint const& file, std::string const& optimizer);
  [[gnu::cold]] ~checkpoint_match();
  /// The number of the tensor with the expected name, type and shape, or -1 if there is none.
  [[gnu::cold]] long find(safetensors_place const& expected);
  /// Whether there are tensors whose names begin with `prefix`. Trainers need not have these
  /// tensors.
  [[gnu::cold]] bool ignore_all(std::string_view prefix);
  /// Throws data_error if a tensor that was looked for does not fit.
  [[gnu::cold]] void require() const;
  /// Throws data_error if a tensor that was looked for does not fit, or if there are tensors that
  /// were not looked for.
  [[gnu::cold]] void require_all();

 private:
  open_checkpoint const& file_;
  row_list<bool> known_;  // by tensor
  row_list<kept_text> problems_;
};

}  // namespace pp::detail
#ifdef PIPE_DEFINED
#include <pipe/checkpoint/checkpoint_match.inl>
#endif
