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
#include <pipe/weights/misfit.hpp>
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
[[gnu::cold]] inline std::string text_of_version() {
  return joined_text(
      {PIPE_VERSION / 10000, ".", PIPE_VERSION / 100 % 100, ".", PIPE_VERSION % 100});
}

/// The tensors of a checkpoint that a trainer expects, and what does not fit.
class checkpoint_match {
 public:
  /// throws: data_error if the checkpoint is of another optimizer
  [[gnu::cold]] checkpoint_match(open_checkpoint const& file, std::string const& optimizer)
      : file_(file), known_(file.size()) {
    kept_text const* const theirs = file.metadata("optimizer");
    if (theirs == nullptr || theirs->view() != optimizer)
      file.refuse({"it is a run of ",
                   theirs == nullptr ? std::string_view("no optimizer") : theirs->view(),
                   ", this trainer has ", optimizer});
  }
  /// The number of the tensor with the expected name, type and shape, or -1 if there is none.
  [[gnu::cold]] long find(safetensors_place const& expected) {
    long const at = file_.find(expected.name);
    auto const misses = [&](text_parts why) {
      std::string text = joined_text({"tensor ", quotation(expected.name), ": "});
      append_text(text, why);
      problems_.push_back(text);
      return -1L;
    };
    if (at < 0) return misses({"not in the file"});
    known_[std::size_t(at)] = true;
    safetensors_place const& found = file_[std::size_t(at)];
    long numbers = 1;
    for (long const extent : expected.shape) numbers *= extent;
    std::string const why = misfit_of_shape(
        file_.is_divided(std::size_t(at)) ? extents{numbers} : expected.shape, found.shape);
    if (!why.empty()) return misses({why});
    if (found.type != expected.type)
      return misses({"expected ", text_of_type(expected), ", found ", text_of_type(found)});
    return at;
  }
  /// Whether there are tensors whose names begin with `prefix`. Trainers need not have these
  /// tensors.
  [[gnu::cold]] bool ignore_all(std::string_view prefix) {
    bool any = false;
    for (std::size_t i = 0; i < file_.size(); ++i)
      if (file_[i].name.starts_with(prefix)) any = known_[i] = true;
    return any;
  }
  /// Throws data_error if a tensor that was looked for does not fit.
  [[gnu::cold]] void require() const {
    if (!problems_.empty())
      file_.refuse({"it does not fit this trainer: ", text_of_problems(problems_)});
  }
  /// Throws data_error if a tensor that was looked for does not fit, or if there are tensors that
  /// were not looked for.
  [[gnu::cold]] void require_all() {
    for (std::size_t i = 0; i < file_.size(); ++i)
      if (!known_[i])
        problems_.push_back(
            joined_text({"tensor ", quotation(file_[i].name), ": not of this trainer"}));
    require();
  }

 private:
  open_checkpoint const& file_;
  row_list<bool> known_;  // by tensor
  row_list<kept_text> problems_;
};

}  // namespace pp::detail
