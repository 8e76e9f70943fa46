// SPDX-License-Identifier: BSL-1.0
//
// Exchanges between the processes of a trainer between runs. All processes make the same calls.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <pipe/io/row_list.hpp>
#include <pipe/runtime/exclusive.hpp>
#include <pipe/train/parts/parameter_memory.hpp>
#include <pipe/train/parts/view_parameters.hpp>
#include <pipe/weights/parameter_view.hpp>

namespace pp::detail {

/// The least of a number in all processes of an engine; all processes call this.
template <class Engine>
long least(Engine& engine, long here) {
  if constexpr (requires { engine.least(here); }) return engine.least(here);
  return here;
}
/// The agreement of an engine's processes: see base/together.hpp.
template <class Engine>
struct engine_agreement {
  static constexpr bool are_one = !requires(Engine& e) { e.least(0L); };
  Engine& engine;
  bool agree(bool here) const { return least(engine, here ? 1 : 0) == 1; }
};
template <class Engine>
engine_agreement<Engine> agreement_in(Engine& engine) {
  return {engine};
}
/// The text for what decides the bits of an engine's kernels: their arithmetic, or the device.
template <class Engine>
std::string arithmetic_of(Engine const& engine) {
  if constexpr (requires { engine.arithmetic(); })
    return engine.arithmetic();
  else
    return engine.runs_on();
}
/// Whether this process has all ranks of its replica.
template <class Engine>
bool has_all_ranks(parameter_memory<Engine> const& parameters) {
  for (int c = 0; c < parameters.count; ++c)
    if (!Engine::is_local(c)) return false;
  return true;
}
/// The values of a viewed parameter in all processes; all processes call this. Values that this
/// process does not have are received: where replicas divide the parameter, into memory that keeps
/// them until the next call, otherwise into `room`.
template <class T, class Engine>
std::span<T> fetch_values(parameter_memory<Engine> const& parameters, int index,
                          std::span<T> values, [[maybe_unused]] std::vector<T>& room) {
  parameters.at(index, [&](int c, parameter_place const& p) {
    std::size_t const n = std::size_t(p.elements());
    if (parameters.has_parts(c, p) && Engine::is_local(c))
      values = {reinterpret_cast<T*>(parameters.whole(c, p)), n};
    if constexpr (requires { parameters.engine->broadcast(0, nullptr, 0L); }) {
      if (has_all_ranks(parameters)) return;
      room.assign(values.begin(), values.end());
      room.resize(n);
      parameters.engine->broadcast(parameters.engine->process_of(c),
                                   reinterpret_cast<char*>(room.data()), long(n * sizeof(T)));
      values = room;
    }
  });
  return values;
}

/// A trainer of model M seen from one of its processes, which may be the only one. The trainer is
/// in a call as long as `access` lives. Parameters: a parameter_memory.
template <class M, class T, class Parameters>
struct trainer_processes {
  using engine = typename Parameters::engine_type;
  static constexpr bool are_one = engine_agreement<engine>::are_one;
  typename exclusive<engine>::access access;
  Parameters parameters;

  /// Views of all parameters; the spans of parameters that replicas divide are empty.
  std::vector<parameter_view<T>> list() const {
    return view_parameters<M, T>(parameters, &chunk_description::values, viewed::undivided);
  }
  /// Whether this process has a parameter, or its replica's parts of it.
  bool has(int index) const {
    bool is_here = false;
    parameters.at(index, [&](int c, parameter_place const&) { is_here = engine::is_local(c); });
    return is_here;
  }
  /// The same as a list of Named, a named_parameter.
  template <class Named>
  [[gnu::cold]] row_list<Named> named() const {
    row_list<Named> all;
    parameters.for_each_anywhere(
        [&](char* memory, chunk_description const& chunk, parameter_place const& p) {
          parameter const& of = model_tables<M>::parameters[p.index];
          if (is_table(of.initial.kind)) return;
          bool const in_parts = parameters.has_parts(int(&chunk - parameters.chunks), p),
                     is_whole = memory != nullptr && !in_parts;
          parameter_name const& file = parameter_names<M>()[std::size_t(p.index)];
          T* const values = is_whole ? reinterpret_cast<T*>(memory + chunk.values_of(p)) : nullptr;
          all.push_back({file.name,
                         file_shape(of, file.transposed),
                         file.transposed,
                         of.rows(),
                         of.columns(),
                         {values, is_whole ? std::size_t(p.elements()) : 0},
                         memory == nullptr,
                         memory != nullptr && in_parts,
                         p.index});
        });
    return all;
  }
  /// The values of a listed parameter: see fetch_values.
  template <class Listed>
  std::span<T> values_of(Listed const& listed, std::vector<T>& room) const {
    return fetch_values(parameters, listed.index, std::span<T>(listed.values), room);
  }
  /// Sets the values of a parameter that this process has: fill(span) writes all of them.
  template <class Fill>
  void set(int index, Fill const& fill) const {
    parameters.at(index, [&](int c, parameter_place const& p) {
      parameters.set(c, p, [&](char* at) {
        fill(std::span(reinterpret_cast<T*>(at), std::size_t(p.elements())));
      });
    });
  }
  /// Calls use(view) with the values of a listed parameter, which `use` may change.
  template <class Use>
  void visit(parameter_view<T>& view, Use& use) const {
    parameters.at(view.index, [&](int c, parameter_place const& p) {
      bool const has_parts = parameters.has_parts(c, p) && engine::is_local(c);
      char* const whole = has_parts ? parameters.whole(c, p) : nullptr;
      if (has_parts) view.values = {reinterpret_cast<T*>(whole), std::size_t(p.elements())};
      use(std::as_const(view));
      if constexpr (divides_values<engine>)
        if (has_parts) parameters.engine->take_over(c, p, whole);
    });
  }
  /// Calls use(span) for the parts of a parameter that this process has.
  template <class Use>
  void for_each_part(int index, Use const& use) const {
    parameters.at(index, [&](int c, parameter_place const& p) {
      parameters.for_each_part_of(c, p, sizeof(T), [&](char* at, long, long bytes) {
        use(std::span<T const>(reinterpret_cast<T const*>(at), std::size_t(bytes) / sizeof(T)));
      });
    });
  }
  /// The least of a number in all processes, and whether `here` is true in all.
  long least(long here) const { return detail::least(*parameters.engine, here); }
  bool agree(bool here) const { return agreement_in(*parameters.engine).agree(here); }
  bool writes_files() const { return engine::writes_files(); }
  /// What decides the bits of the steps, beside the program: of all processes alike.
  std::string arithmetic() const { return arithmetic_of(*parameters.engine); }
};

/// The number that the process which writes files has; all processes of the trainer call this.
template <class Trainer>
long first_process_says(Trainer const& trainer, long here) {
  auto const all = trainer.processes();
  return all.least(all.writes_files() ? here : std::numeric_limits<long>::max());
}

}  // namespace pp::detail
