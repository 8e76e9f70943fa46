// SPDX-License-Identifier: BSL-1.0
//
// Text in the memory of a GPU, from which mini-batches are gathered there. Its source is for nvcc;
// programs without it do not name the class.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <pipe/base/device_span.hpp>
#include <pipe/data/text.hpp>

class device_text {
 public:
  /// Uploads the text for training. tokens: of a mini-batch, in windows of `context`.
  device_text(pp::text_data const& text, int context, std::size_t tokens);
  ~device_text();
  device_text(device_text const&) = delete;
  device_text& operator=(device_text const&) = delete;

  /// Gathers a mini-batch, behind the work of the default stream.
  ///
  /// law: the tokens and labels of text_data::draw
  void draw(std::uint64_t seed, std::uint64_t step);
  pp::device_span<int const> tokens() const;
  pp::device_span<int const> labels() const;

 private:
  struct vectors;
  std::unique_ptr<vectors> of_;
};
