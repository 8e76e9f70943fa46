// SPDX-License-Identifier: BSL-1.0
//
// The members of a trainer that save a run and resume it. They are defined in
// checkpoint/checkpoint.hpp, which a program that calls them includes; other programs do not
// compile that header.
#pragma once

#include <string>
#include <type_traits>

#include <pipe/base/diagnosis.hpp>
#include <pipe/graph/diagnostics.hpp>

namespace pp {

struct data_position;
enum class checkpoint_files : unsigned char;

namespace detail {

/// Saving and loading, defined in checkpoint/checkpoint.hpp.
template <class Trainer>
struct checkpoint_of;
template <class Trainer>
class optimizer_states;
/// Stands for checkpoint_of after a diagnosis.
struct no_checkpoints {
  template <class... A>
  static void save(A const&...) {}
  template <class... A>
  static void load(A const&...) {}
};
template <class Trainer>
constexpr auto diagnose_checkpoints() {
  if constexpr (requires { sizeof(checkpoint_of<Trainer>); })
    return std::type_identity<nothing_wrong>{};
  else
    return diagnosis_of<wrong::checkpoints_need_their_header, typename Trainer::model>();
}

/// A trainer whose runs are saved and resumed.
template <class Trainer>
struct with_checkpoints {
  /// Saves everything that the run needs to go on bit for bit: parameters and buffers, optimizer
  /// state, averages, accumulated gradients, the number of steps, the seed, and `position`. The
  /// file is replaced atomically: see atomic_file. If ranks are in several processes, all processes
  /// call save(), and one writes the file; with checkpoint_files::by_process each writes a part
  /// beside that file, in a folder that all share. Include <pipe/checkpoint/checkpoint.hpp>.
  ///
  /// law:    equal trainers give equal bytes, whatever their stages, schedule and threads; in parts
  ///         equal tensors
  /// throws: file_error, in all processes, and the previous file is unchanged; error while averages
  ///         stand in for the parameters
  [[gnu::cold]] void save(std::string const& path) {
    files().save(static_cast<Trainer&>(*this), path);
  }
  [[gnu::cold]] void save(std::string const& path, data_position const& position) {
    files().save(static_cast<Trainer&>(*this), path, position);
  }
  [[gnu::cold]] void save(std::string const& path, data_position const& position,
                          checkpoint_files each) {
    files().save(static_cast<Trainer&>(*this), path, position, each);
  }
  /// Resumes the run of a checkpoint, which a trainer of the same model, optimizer and Averaging
  /// has saved. The saving trainer's other options may differ; all settings but the seed are this
  /// trainer's. If ranks are in several processes, all processes call load(). Returns a
  /// resumed_run.
  ///
  /// law:    n steps are k steps, save, load in another trainer, and n - k steps, bit for bit, as
  ///         far as the two trainers have the same bits in the same run
  /// cost:   memory for all states of this process, until load() returns
  /// throws: in all processes, and the trainer is as it was: file_error if the file cannot be read;
  ///         data_error if the file is damaged, is no checkpoint, or does not fit; error while
  ///         averages stand in for the parameters
  [[gnu::cold]] auto load(std::string const& path) {
    return files().load(static_cast<Trainer&>(*this), path);
  }

 private:
  /// Saving and loading, if they are included.
  static auto files() {
    using found = decltype(diagnose_checkpoints<Trainer>());
    static_assert(accepted<found>::value);
    return std::conditional_t<is_accepted<typename found::type>, checkpoint_of<Trainer>,
                              no_checkpoints>{};
  }
};

}  // namespace detail

}  // namespace pp
