// SPDX-License-Identifier: BSL-1.0
//
// The members of a trainer that save a run and resume it. What they do is in train/checkpoint.hpp,
// which a program that calls them includes; other programs do not compile it.
#pragma once

#include <concepts>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>

namespace pp {

/// A place in a program's data, kept in a checkpoint: a number or a short text, which only the
/// program understands.
struct data_position {
  std::string text;

  data_position() = default;
  data_position(std::string of) : text(std::move(of)) {}
  data_position(char const* of) : text(of) {}
  data_position(std::integral auto n) : text(std::to_string(n)) {}

  /// The number; 0 if there is no position.
  ///
  /// throws: data_error if the text is another one
  long number() const {
    char* end = nullptr;
    long const n = std::strtol(text.c_str(), &end, 10);
    if (text != std::to_string(n) && !text.empty())
      detail::throw_error<data_error>(
          {"data position: expected a number, got '", std::string_view(text), "'"});
    return n;
  }
  friend bool operator==(data_position const&, data_position const&) = default;
};

/// What a program needs to go on after load().
struct resumed_run {
  long steps = 0;          ///< training steps done: as trainer.steps()
  int accumulated = 0;     ///< mini-batches that wait for the next step: as trainer.accumulated()
  data_position position;  ///< as it was given to save()
};

namespace detail {

/// Saving and loading, defined in train/checkpoint.hpp.
template <class Trainer>
struct checkpoint_of;

/// A trainer whose runs are saved and resumed.
template <class Trainer>
struct with_checkpoints {
  /// Saves everything that the run needs to go on bit for bit: parameters and buffers, optimizer
  /// state, averages, accumulated gradients, the number of steps, the seed, and `position`. The
  /// file is replaced atomically: see atomic_file. If ranks are in several processes, all of them
  /// call it, and one writes the file. Include <pipe/train/checkpoint.hpp>.
  ///
  /// law:    equal trainers give equal bytes, whatever their stages, schedule and threads
  /// throws: file_error, in all processes, and the previous file is unchanged; error while averages
  ///         stand in for the parameters
  void save(std::string const& path, data_position const& position = {}) {
    checkpoint_of<Trainer>::save(static_cast<Trainer&>(*this), path, position);
  }
  /// Resumes the run of a checkpoint, which a trainer of the same model, optimizer and Averaging
  /// has saved. Its other options may have been different ones; settings but the seed are this
  /// trainer's. If ranks are in several processes, all of them call it.
  ///
  /// law:    n steps are k steps, save, load in another trainer, and n - k steps, bit for bit, as
  ///         far as the two trainers have the same bits in the same run
  /// cost:   memory for all states of this process, until it returns
  /// throws: in all processes, and the trainer is as it was: file_error if the file cannot be read;
  ///         data_error if it is damaged, no checkpoint, or does not fit; error while averages
  ///         stand in for the parameters
  resumed_run load(std::string const& path) {
    return checkpoint_of<Trainer>::load(static_cast<Trainer&>(*this), path);
  }
};

}  // namespace detail

}  // namespace pp
