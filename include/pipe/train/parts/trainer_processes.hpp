// SPDX-License-Identifier: BSL-1.0
//
// Exchanges between the processes of a trainer between runs. All of them make the same calls.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <pipe/train/parameter_view.hpp>
#include <pipe/train/parts/parameter_memory.hpp>

namespace pp::detail {

/// The least of a number in all processes of an engine, which all call it.
template <class Engine>
long least(Engine& engine, long here) {
  if constexpr (requires { engine.least(here); }) return engine.least(here);
  return here;
}
/// What decides the bits of an engine's kernels: their arithmetic, or the device.
template <class Engine>
std::string arithmetic_of(Engine const& engine) {
  if constexpr (requires { engine.arithmetic(); })
    return engine.arithmetic();
  else
    return engine.runs_on();
}
/// The values of a viewed parameter, of one of another process received into `room`.
template <class T, class Engine>
std::span<T> fetch_values(parameter_memory<Engine> const& parameters, parameter_view<T> const& view,
                          std::vector<T>& room) {
  if constexpr (requires { parameters.engine->broadcast(0, nullptr, 0L); }) {
    room.assign(view.values.begin(), view.values.end());
    room.resize(std::size_t(view.rows) * std::size_t(view.columns));
    for (int c = 0; c < parameters.count; ++c)
      parameters.for_each_in(parameters.chunks[c], [&](parameter_place const& p) {
        if (p.index == view.index)
          parameters.engine->broadcast(parameters.engine->process_of(c),
                                       reinterpret_cast<char*>(room.data()),
                                       long(room.size() * sizeof(T)));
      });
    return room;
  } else {
    return view.values;
  }
}

/// A trainer as one of the processes that run it, which may be the only one. It is in a call until
/// `access` is gone.
template <class Access, class Engine>
struct trainer_processes {
  Access access;
  parameter_memory<Engine> parameters;

  /// The values of a parameter, received into `room` unless they are here.
  template <class T>
  std::span<T> values_of(parameter_view<T> const& view, std::vector<T>& room) const {
    return fetch_values(parameters, view, room);
  }
  /// Whether something is so in all processes.
  bool agree(bool here) const { return least(*parameters.engine, here ? 1 : 0) == 1; }
  bool writes_files() const { return Engine::writes_files(); }
  /// What decides the bits of the steps, beside the program: of all processes alike.
  std::string arithmetic() const { return arithmetic_of(*parameters.engine); }
};

/// What the process that writes files says; all processes of the trainer call this.
template <class Trainer>
long first_process_says(Trainer const& trainer, long here) {
  auto const all = trainer.processes();
  return least(*all.parameters.engine,
               all.writes_files() ? here : std::numeric_limits<long>::max());
}

}  // namespace pp::detail
