// SPDX-License-Identifier: BSL-1.0
//
// Loading of a checkpoint or else an older one: a checkpoint that is damaged, or does not fit, is
// skipped. Want of memory is no reason to skip a checkpoint.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/base/together.hpp>
#include <pipe/checkpoint/kept_checkpoints.hpp>
#include <pipe/checkpoint/resumed_run.hpp>
#include <pipe/io/file_descriptor.hpp>
#include <pipe/train/parts/trainer_processes.hpp>
#include <pipe/weights/named_parameter.hpp>

namespace pp::detail {

/// The next checkpoint that was found by the process that writes files; step -1: there is no more.
template <class Trainer>
kept_checkpoint found_by_first(Trainer const& trainer, std::vector<kept_checkpoint> const& all,
                               std::size_t next) {
  kept_checkpoint which{{-1}};
  if (next < all.size()) which = all[next];
  which.step = first_process_says(trainer, which.step);
  which.folder = int(first_process_says(trainer, which.folder));
  return which;
}
/// Loads a checkpoint by `load`, or adds to `skipped` why it cannot be loaded: in all processes
/// alike, which all call this.
///
/// law:    when it throws, the trainer is as before
/// throws: rank_error; without memory std::bad_alloc or file_error
template <class Trainer, class Load>
std::optional<resumed_run> load_or_skip(Trainer& trainer, std::string const& path, Load const& load,
                                        std::vector<std::string>& skipped) {
  std::optional<resumed_run> loaded;
  together<file_error>(agreement_of(trainer), "another process has no memory to load", path, [&] {
    try {
      loaded = load();
    } catch (rank_error const&) {
      throw;
    } catch (no_memory_for_file const&) {
      throw;
    } catch (error const& e) {
      skipped.push_back(e.what());
    }
  });
  return loaded;
}

}  // namespace pp::detail
