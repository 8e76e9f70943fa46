// SPDX-License-Identifier: BSL-1.0
//
// A run that is read from a checkpoint: all that may fail is read and compared with the run here
// before the first state changes. No process has room for all states, so each is read once to be
// checked, and again when it is taken over.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <pipe/base/config.hpp>
#include <pipe/base/joined_text.hpp>
#include <pipe/base/owner.hpp>
#include <pipe/checkpoint/checkpoint_match.hpp>
#include <pipe/checkpoint/open_checkpoint.hpp>
#include <pipe/checkpoint/resumed_run.hpp>
#include <pipe/checkpoint/run_numbers.hpp>
#include <pipe/checkpoint/run_states.hpp>
#include <pipe/io/row_list.hpp>
#include <pipe/weights/file_blocks.hpp>
#include <pipe/weights/named_parameter.hpp>

namespace pp::detail {

/// The numbers of a run beside its states, by their places in the list.
struct of_run {
  static constexpr std::size_t steps = 0, seed = 1, accumulated = 2, loss_scale = 3;
};

/// The run here, which a checkpoint must fit.
struct expected_run {
  row_list<run_numbers> numbers;  ///< as they are now: the file has as many
  std::string optimizer, arithmetic;
  std::string_view older_kind;  ///< what the names of older versions of weights begin with
  bool accumulates;             ///< it adds to accumulated gradients of a file
  long step;                    ///< the number of steps that the run must have made; -1: any
};

/// A state that was read once, and is read again when it is taken over: no process has room for
/// all states.
template <class T>
struct loaded_state {
  std::size_t row = 0, tensor = 0;  // of the table, of the file
  named_parameter<T> of;            // as it is in the file
  static constexpr bool moves_by_bytes = true;
};
/// A run that a checkpoint has.
template <class T>
struct loaded_run {
  row_list<run_numbers> numbers;
  owner<open_checkpoint> file;
  row_list<loaded_state<T>> states;
  row_list<std::byte> bytes;  // for the largest block
  row_list<T> block;
  data_position position;
  std::string other_bits;     // see resumed_run
  bool has_versions = false;  // older versions of the weights: see PipeDream
};

/// Whether mini-batches were accumulated.
///
/// throws: data_error for numbers that no run has, or if this trainer does not accumulate
[[gnu::cold]] bool require_numbers(expected_run const& here, open_checkpoint const& file,
                                   row_list<run_numbers> const& of);

/// Whether this process has a part of a state.
template <class T>
bool is_here(run_state<T> const& s) {
  for (state_piece<T> const& p : s.pieces)
    if (p.here != nullptr) return true;
  return false;
}
/// Reads everything that this process needs, and compares it with the run here.
///
/// throws: see load
template <class T>
[[gnu::cold]] loaded_run<T> read_run(expected_run const& here, std::string const& path,
                                     row_list<run_state<T>> const& all) {
  loaded_run<T> run;
  run.file = owner<open_checkpoint>(new open_checkpoint(path));
  open_checkpoint const& file = *run.file;
  if (kept_text const* const text = file.metadata("position")) run.position.text = *text;
  if (kept_text const* const there = file.metadata("arithmetic");
      there != nullptr && there->view() != here.arithmetic)
    run.other_bits = joined_text({quotation(path), " is of a run on ", there->view(),
                                  ", this one is on ", here.arithmetic,
                                  ": from here on its bits are not those of a run that was never "
                                  "stopped"});
  run.numbers = here.numbers;
  checkpoint_match match(file, here.optimizer);
  for (run_numbers& n : run.numbers)
    if (long const tensor = match.find(n.place()); tensor >= 0) {
      n.set(file.bytes_of(std::size_t(tensor)).get());
    }
  match.require();
  bool const has_accumulated = require_numbers(here, file, run.numbers);
  if (long const made = long(run.numbers[of_run::steps].bits[0]);
      here.step >= 0 && here.step != made)
    file.refuse({"it is of a run of ", made, " steps, and its name says ", here.step});
  row_list<long> tensors;
  // A trainer without older versions of its weights ignores those of the file; where the file has
  // none, all versions are the newest.
  run.has_versions = match.ignore_all(here.older_kind);
  for (run_state<T> const& s : all) {
    bool const is_read =
        (has_accumulated || !s.is_accumulated) && (run.has_versions || !s.is_older);
    safetensors_place const place{s.of.name, stored_type_of<T>(), s.of.shape};
    tensors.push_back(is_read ? match.find(place) : -1);
  }
  match.require_all();
  std::size_t most = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (tensors[i] < 0 || !is_here(all[i])) continue;
    auto const tensor = std::size_t(tensors[i]);
    run.states.push_back({i, tensor, all[i].of});
    if (file.is_divided(tensor)) run.states.back().of.transposed = false;
    most = std::max(most, most_of_block(run.states.back().of));
  }
  run.block.resize(most);
  run.bytes.resize(most * sizeof(T));
  for (loaded_state<T> const& state : run.states)
    file.read(state.tensor, {run.bytes.data(), run.bytes.size()},
              [](std::span<std::byte const>) {});
  return run;
}
/// Copies a state from the file to the memory of this process.
/// It allocates nothing: earlier states are overwritten by then, so a failure could not be
/// undone.
template <class T>
[[gnu::cold]] void take_state(loaded_state<T> const& state, row_list<state_piece<T>> const& pieces,
                              loaded_run<T>& from) {
  long at = 0;
  std::size_t const most = most_of_block(state.of) * sizeof(T);
  from.file->read(state.tensor, {from.bytes.data(), most}, [&](std::span<std::byte const> bytes) {
    std::span<T> const numbers(from.block.data(), bytes.size() / sizeof(T));
    decode(stored_type_of<T>(), bytes.data(), numbers);
    put_block<T>(state.of, pieces, at, numbers);
    at += long(numbers.size());
  });
}

}  // namespace pp::detail
#ifdef PIPE_DEFINED
#include <pipe/checkpoint/loaded_run.inl>
#endif
#if defined(PIPE_COMPILED) && !defined(__CUDACC__)
namespace pp::detail {

PIPE_COMPILED template decltype(read_run<float>) read_run<float>;
PIPE_COMPILED template decltype(take_state<float>) take_state<float>;

}  // namespace pp::detail
#endif
