// SPDX-License-Identifier: BSL-1.0
//
// Exchange of parameters and their averages, for evaluation with averaged parameters.
#pragma once

#include <utility>

#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/train/parts/parameter_memory.hpp>

namespace pp::detail {

/// Tracks whether averages and parameters are exchanged.
class averages {
 public:
  /// Exchanges trained parameters and their averages in memory.
  ///
  /// law: two calls restore the original state
  template <class Engine>
  void swap(parameter_memory<Engine> const& parameters) {
    parameters.for_each_chunk([](char* memory, chunk_description const& chunk) {
      for (long i = 0; i < chunk.sizes.trained; ++i)
        std::swap(memory[chunk.values + i], memory[chunk.average + i]);
    });
    are_in_ = !are_in_;
  }
  /// Throws pp::error while parameters and averages are exchanged: a step would train the averages.
  void require_out(long step) const {
    if (are_in_)
      throw_error<error>(
          {"step ", step, ": averages stand in for the parameters: call swap_averages() first"});
  }

 private:
  bool are_in_ = false;
};

}  // namespace pp::detail
