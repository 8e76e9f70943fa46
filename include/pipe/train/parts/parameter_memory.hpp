// SPDX-License-Identifier: BSL-1.0
//
// Iteration over a trainer's parameters in the ranks' memory.
#pragma once

#include <pipe/runtime/description.hpp>

namespace pp::detail {

/// The chunks of a pipeline and their memory. Engine has `char* memory(int chunk)` and a static
/// `is_local(chunk)`: whether the chunk's rank is in this process.
template <class Engine>
struct parameter_memory {
  chunk_description const* chunks = nullptr;
  int count = 0;
  Engine* engine = nullptr;

  /// Calls use(memory, chunk) for each local chunk.
  template <class Use>
  void for_each_chunk(Use const& use) const {
    for (int c = 0; c < count; ++c)
      if (Engine::is_local(c)) use(engine->memory(c), chunks[c]);
  }
  /// Calls use(memory, chunk, place) for each parameter in model order, for a shared one only at
  /// its first place.
  template <class Use>
  void for_each(Use const& use) const {
    for_each_chunk([&](char* memory, chunk_description const& chunk) {
      for (int i = 0; i < chunk.parameter_count; ++i)
        if (!chunk.parameters[i].shared) use(memory, chunk, chunk.parameters[i]);
    });
  }
};

}  // namespace pp::detail
