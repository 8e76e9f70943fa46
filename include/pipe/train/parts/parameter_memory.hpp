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
  /// Calls use(memory, chunk, place) for each local parameter in model order, for a shared one only
  /// at its first place.
  template <class Use>
  void for_each(Use const& use) const {
    for_each_chunk([&](char* memory, chunk_description const& chunk) {
      for_each_in(chunk, [&](parameter_place const& p) { use(memory, chunk, p); });
    });
  }
  /// The same for all parameters; memory is null for one of another process.
  template <class Use>
  void for_each_anywhere(Use const& use) const {
    for (int c = 0; c < count; ++c) {
      char* const memory = Engine::is_local(c) ? engine->memory(c) : nullptr;
      for_each_in(chunks[c], [&](parameter_place const& p) { use(memory, chunks[c], p); });
    }
  }
  /// Calls use(place) for the parameters that have their first place in a chunk.
  template <class Use>
  static void for_each_in(chunk_description const& chunk, Use const& use) {
    for (int i = 0; i < chunk.parameter_count; ++i)
      if (!chunk.parameters[i].shared) use(chunk.parameters[i]);
  }
};

}  // namespace pp::detail
