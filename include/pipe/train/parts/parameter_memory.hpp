// SPDX-License-Identifier: BSL-1.0
//
// Iteration over a trainer's parameters in the ranks' memory.
#pragma once

#include <pipe/runtime/description.hpp>
#include <pipe/runtime/shards.hpp>

namespace pp::detail {

/// Whether replicas divide parameters (ZeRO<3>). Such an engine has bring, room_of, take_over,
/// for_each_own and mirror: see host_engine.
template <class Engine>
concept divides_values = requires { requires Engine::divides_values; };
/// Whether replicas divide gradients while these are computed.
template <class Engine>
concept divides_gradients = requires { requires Engine::divides_gradients; };

/// The chunks of a pipeline and their memory. Engine has `char* memory(int chunk)` and a static
/// `is_local(chunk)`: whether the chunk's rank is in this process.
template <class Engine>
struct parameter_memory {
  using engine_type = Engine;
  chunk_description const* chunks = nullptr;
  int count = 0;
  Engine* engine = nullptr;

  /// Calls use(memory, chunk) for each local chunk.
  template <class Use>
  void for_each_chunk(Use const& use) const {
    for (int c = 0; c < count; ++c)
      if (Engine::is_local(c)) use(engine->memory(c), chunks[c]);
  }
  /// Calls use(memory, chunk, place) for all parameters in model order, a shared parameter only at
  /// its first place; memory is null for a parameter of another process.
  template <class Use>
  void for_each_anywhere(Use const& use) const {
    for (int c = 0; c < count; ++c) {
      char* const memory = Engine::is_local(c) ? engine->memory(c) : nullptr;
      for_each_in(chunks[c], [&](parameter_place const& p) { use(memory, chunks[c], p); });
    }
  }
  /// Calls use(values, place, begin, bytes) for the consecutive parts of each parameter that this
  /// process has, `begin` bytes from its start: one part, or with ZeRO<3> the parts of the
  /// process's replica.
  ///
  /// width: bytes of a number
  template <class Use>
  void for_each_part(long width, Use const& use) const {
    for (int c = 0; c < count; ++c)
      for_each_in(chunks[c], [&](parameter_place const& p) {
        for_each_part_of(c, p, width, [&](char* values, long begin, long bytes) {
          use(values, p, begin, bytes);
        });
      });
  }
  /// Calls use(values, begin, bytes) for the parts of one parameter.
  template <class Use>
  void for_each_part_of(int c, parameter_place const& p, long width, Use const& use) const {
    if (!Engine::is_local(c)) return;
    if constexpr (divides_values<Engine>)
      if (has_parts(c, p)) return engine->for_each_own(c, p, use);
    use(engine->memory(c) + chunks[c].values_of(p), 0L, p.elements() * width);
  }

  /// Whether replicas divide a parameter, so that no replica has all values.
  bool has_parts(int c, parameter_place const& p) const {
    return divides_values<Engine> && is_divided(chunks[c], p);
  }
  /// The values of a parameter of a local chunk. A parameter that replicas divide is brought
  /// together until the next call; all replicas make the call.
  char* whole(int c, parameter_place const& p) const {
    if constexpr (divides_values<Engine>)
      if (has_parts(c, p)) return engine->bring(c, p);
    return engine->memory(c) + chunks[c].values_of(p);
  }
  /// Sets the values of a parameter of a local chunk: fill(address) writes all of them.
  template <class Fill>
  void set(int c, parameter_place const& p, Fill const& fill) const {
    if constexpr (divides_values<Engine>)
      if (has_parts(c, p)) {
        char* const room = engine->room_of(c, p);
        fill(room);
        return engine->take_over(c, p, room);
      }
    fill(engine->memory(c) + chunks[c].values_of(p));
  }
  /// Calls use(chunk number, place) for the parameter with number `index` in the model's graph.
  template <class Use>
  void at(int index, Use const& use) const {
    for (int c = 0; c < count; ++c)
      for_each_in(chunks[c], [&](parameter_place const& p) {
        if (p.index == index) use(c, p);
      });
  }
  /// Calls use(place) for the parameters that have their first place in a chunk.
  template <class Use>
  static void for_each_in(chunk_description const& chunk, Use const& use) {
    for (parameter_place const& p : chunk.parameters)
      if (!p.shared) use(p);
  }
};

}  // namespace pp::detail
