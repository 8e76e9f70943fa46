// SPDX-License-Identifier: BSL-1.0
//
// The states of a run by parameter: one table for saving and loading. A row has a state's name, its
// shape, and the pieces of memory that have its numbers, each with its process. A state has the
// shape of its parameter, without padding, so that any cut and any division among replicas can read
// it.
//
//     NAME                          parameters and buffers
//     optimizer/ARRAY/NAME          optimizer state: see optim/named_states.hpp
//     average/NAME                  averages of trained parameters
//     accumulated/NAME              gradients, and sums of buffers; of the n-th later place of a
//                                   shared parameter accumulated/NAME/n
//     before-N/NAME                 trained parameters N updates before the newest: see PipeDream
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include <pipe/graph/model_tables.hpp>
#include <pipe/graph/position_tables.hpp>
#include <pipe/io/kept_text.hpp>
#include <pipe/io/row_list.hpp>
#include <pipe/optim/named_states.hpp>
#include <pipe/optim/optimizer.hpp>
#include <pipe/runtime/description.hpp>
#include <pipe/runtime/shards.hpp>
#include <pipe/train/parts/parameter_memory.hpp>
#include <pipe/train/parts/view_parameters.hpp>
#include <pipe/transport/transport.hpp>
#include <pipe/weights/file_blocks.hpp>
#include <pipe/weights/named_parameter.hpp>
#include <pipe/weights/names.hpp>

namespace pp::detail {

/// A row of the table. The pieces cover the state.
template <class T>
struct run_state {
  static constexpr bool moves_by_bytes = true;

  named_parameter<T> of;  ///< name, shape and layout; no values
  bool is_accumulated = false, is_older = false;
  row_list<state_piece<T>> pieces;
};

/// An array of optimizer state in the memory of an update: of a whole tensor, or of a range of
/// elements. `begin` counts from the start of the update's state.
struct placed_state {
  static constexpr bool moves_by_bytes = true;

  kept_text name;
  custom::state_extent extent = custom::state_extent::elements;
  long begin = 0, count = 0;
};

/// The arrays that optimizer O keeps for a parameter of kind `of.kind`. of: the shape of a
/// parameter that is updated as a whole, otherwise all elements of the range.
///
/// law: an optimizer by tensor that has no list of states and is no two_pass_optimizer has one
///      array of all its numbers
template <class O>
[[gnu::cold]] row_list<placed_state> placed_states(bool whole, custom::tensor_shape const& of) {
  row_list<placed_state> placed;
  long end = 0;
  auto const add = [&](std::string_view name, custom::state_extent extent) {
    long const count = extent == custom::state_extent::elements ? of.elements()
                       : extent == custom::state_extent::rows   ? of.rows
                                                                : of.columns;
    placed.push_back({name, extent, end, count});
    end += whole && extent == custom::state_extent::elements ? moment_stride(count) : count;
  };
  if constexpr (requires { O::states_of(of.kind); }) {
    custom::named_states const all = O::states_of(of.kind);
    for (int i = 0; i < all.count; ++i) add(all.items[i].name, all.items[i].extent);
  } else {
    int numbered = 0;
    if constexpr (custom::element_optimizer<O>)
      if (!whole) numbered = O::states;
    if constexpr (custom::two_pass_optimizer<O>)
      if (whole) numbered = O::moments;
    for (int i = 0; i < numbered; ++i) add(joined_text({i}), custom::state_extent::elements);
    long const all = state_elements<O>(whole, of);
    if (numbered == 0 && all > 0) placed.push_back({"0", custom::state_extent::rows, 0, all});
  }
  return placed;
}

/// The table of states of an engine of compiled pipeline P, under construction.
template <class P, class Engine>
class run_state_table {
  using T = typename P::element;
  using O = typename P::optimizer;
  using M = typename P::model;

 public:
  /// All states, in the order of files.
  [[gnu::cold]] static row_list<run_state<T>> of(parameter_memory<Engine> const& parameters) {
    run_state_table table(parameters);
    table.for_each_place([&](chunk const& c, parameter_place const& p) {
      if (p.shared || is_table(record_of(p).initial.kind)) return;
      if constexpr (divides_values<Engine>)
        if (is_divided(c.of, p)) return table.add_divided(c, p);
      table.add("", c, p, c.of.values_of(p));
    });
    table.for_each_place([&](chunk const& c, parameter_place const& p) {
      if (p.trained && !p.shared) table.add_optimizer(c, p);
    });
    table.for_each_place([&](chunk const& c, parameter_place const& p) {
      if (P::averaging::averages && p.trained && !p.shared)
        table.add("average/", c, p, c.of.average + p.offset);
    });
    table.for_each_place([&](chunk const& c, parameter_place const& p) {
      // Where replicas divide gradients, none are accumulated.
      bool const is_added_to = p.trained && !(P::divides_gradients && is_divided(c.of, p));
      if (!p.is_committed() && !is_added_to) return;
      table.add("accumulated/", c, p, (p.is_buffer ? c.of.sums : c.of.gradients) + p.offset);
      table.rows_.back().is_accumulated = true;
    });
    if constexpr (P::is_free && !P::predicts_weights)
      table.for_each_place([&](chunk const& c, parameter_place const& p) {
        for (int n = 1; n < c.of.versions.slots && (p.trained || p.is_committed()); ++n) {
          long const shift = c.of.shift_of(c.of.versions.slots - n);
          table.add(joined_text({older_kind, n, "/"}), c, p, c.of.values_of(p) + shift);
          table.rows_.back().is_older = true;
        }
      });
    return std::move(table.rows_);
  }
  static constexpr char older_kind[] = "before-";

 private:
  static constexpr long width = sizeof(T);
  /// A part of an update range that one replica updates, with its state.
  struct owned {
    update_range of;
    int process = 0;
    T* state = nullptr;  ///< null if this process does not have it
  };
  /// A chunk and its updates, of this process and of others.
  struct chunk {
    static constexpr bool moves_by_bytes = true;

    chunk_description const& of;
    char* memory = nullptr;  ///< null if this process does not have it
    int process = 0;         ///< the process of the first replica
    row_list<owned> updates{};
  };

  [[gnu::cold]] explicit run_state_table(parameter_memory<Engine> const& parameters)
      : parameters_(parameters) {
    for (int c = 0; c < parameters.count; ++c) {
      chunk& mine = chunks_.push_back({parameters.chunks[c]});
      if (Engine::is_local(c)) mine.memory = parameters.engine->memory(c);
      if constexpr (requires { parameters.engine->process_of(c); })
        mine.process = parameters.engine->process_of(c);
      list_updates(*parameters.engine, c, mine);
    }
  }
  /// The updates of a chunk: its ranges, in every replica; with ZeRO the parts of all replicas.
  [[gnu::cold]] static void list_updates(Engine& engine, int number, chunk& c) {
    T* const state = c.memory == nullptr ? nullptr : reinterpret_cast<T*>(engine.state(number));
    if constexpr (P::zero::level > 0) {
      process_place const place = P::transport::place(P::ranks);
      int const processes = engine.processes() / place.replicas;
      for (int replica = 0; replica < place.replicas; ++replica) {
        bool const is_here = state != nullptr && replica == place.replica;
        for_each_owned({c.of, width, place.replicas}, replica, 0, [&](update_range const& u) {
          c.updates.push_back(
              {u, c.process + replica * processes, is_here ? state + u.state : nullptr});
        });
      }
    } else {
      for (update_range const& u : c.of.updates)
        c.updates.push_back({u, c.process, state == nullptr ? nullptr : state + u.state});
    }
  }
  /// An address in a chunk's memory; null if this process does not have the chunk.
  [[gnu::cold]] static T* in(chunk const& c, long offset) {
    return c.memory == nullptr ? nullptr : reinterpret_cast<T*>(c.memory + offset);
  }

  /// Calls use(chunk, place) for all places of parameters and buffers, in the order of the model.
  template <class Use>
  [[gnu::cold]] void for_each_place(Use const& use) const {
    for (chunk const& c : chunks_)
      for (parameter_place const& p : c.of.parameters) use(c, p);
  }
  /// The model's record of a parameter.
  [[gnu::cold]] static parameter const& record_of(parameter_place const& p) {
    return model_tables<M>::parameters[p.index];
  }
  /// The number of a place of a shared parameter: 1 for the first place after the one with the
  /// values.
  [[gnu::cold]] static int number_of(parameter_place const& p) {
    int number = 1;
    for (int i = 0; i < p.index; ++i)
      number += model_tables<M>::parameters[i].tied_to == record_of(p).tied_to;
    return number;
  }
  /// The name and layout of a state of this kind with the shape of a parameter.
  [[gnu::cold]] static named_parameter<T> named(std::string_view kind, parameter_place const& p) {
    int const index = p.shared ? record_of(p).tied_to : p.index;
    parameter_name const& file = parameter_names<M>()[std::size_t(index)];
    std::string name = joined_text({kind, file.name});
    if (p.shared) append_text(name, {"/", number_of(p)});
    return {std::move(name), file_shape(model_tables<M>::parameters[index], file.transposed),
            file.transposed, p.rows,
            p.columns,       {}};
  }
  /// Adds a state at an offset of the chunk's memory.
  [[gnu::cold]] void add(std::string_view kind, chunk const& c, parameter_place const& p,
                         long offset) {
    rows_.push_back({named(kind, p), false, false, {{0, p.elements(), c.process, in(c, offset)}}});
  }
  /// Adds a parameter that replicas divide, with the parts of all replicas.
  [[gnu::cold]] void add_divided(chunk const& c, parameter_place const& p) {
    rows_.push_back({named("", p), false, false, {}});
    row_list<state_piece<T>>& pieces = rows_.back().pieces;
    process_place const place = P::transport::place(P::ranks);
    int const processes = parameters_.engine->processes() / place.replicas;
    long const end = p.offset + p.elements() * width;
    for (int replica = 0; replica < place.replicas; ++replica)
      shard_cuts{c.of, width, place.replicas}.for_each_divided_shard(
          replica, [&](int, long from, long to) {
            if (from < p.offset || from >= end || from >= to) return;
            to = to < end ? to : end;
            pieces.push_back({(from - p.offset) / width, (to - from) / width,
                              c.process + replica * processes, nullptr});
          });
    parameters_.for_each_part_of(int(&c - chunks_.data()), p, width,
                                 [&](char* at, long begin, long) {
                                   for (state_piece<T>& piece : pieces)
                                     if (piece.begin == begin / width)
                                       piece.here = reinterpret_cast<T*>(at);
                                 });
  }
  /// Adds the arrays of a parameter's optimizer state, with a piece for each range that is updated
  /// at once. The arrays of a range follow each other, so an element's number in one array is as
  /// far from its number in the next array as the range is long, wherever the parameter is in the
  /// range.
  [[gnu::cold]] void add_optimizer(chunk const& c, parameter_place const& p) {
    bool const whole = updates_whole<O>(record_of(p).kind);
    custom::tensor_shape const shape{record_of(p).kind, p.rows, p.columns};
    row_list<placed_state> const arrays = placed_states<O>(whole, shape);
    std::size_t const first = rows_.size();
    for (placed_state const& a : arrays) {
      named_parameter<T> of = named(joined_text({"optimizer/", a.name, "/"}), p);
      if (a.extent != custom::state_extent::elements)
        of = {of.name, {a.count}, false, 1, int(a.count), {}};
      rows_.push_back({std::move(of), false, false, {}});
    }
    long const begin = p.offset / width, end = begin + p.elements();
    for (owned const& u : c.updates) {
      long const from = u.of.begin > begin ? u.of.begin : begin,
                 to = u.of.end < end ? u.of.end : end;
      if (from >= to) continue;
      auto const placed =
          whole ? arrays : placed_states<O>(false, {shape.kind, 1, u.of.end - u.of.begin});
      for (std::size_t i = 0; i < arrays.size(); ++i) {
        long const at = placed[i].begin + (whole ? 0 : from - u.of.begin);
        rows_[first + i].pieces.push_back({whole ? 0 : from - begin,
                                           whole ? arrays[i].count : to - from, u.process,
                                           u.state == nullptr ? nullptr : u.state + at});
      }
    }
  }

  parameter_memory<Engine> const& parameters_;
  row_list<chunk> chunks_;
  row_list<run_state<T>> rows_;
};

}  // namespace pp::detail
