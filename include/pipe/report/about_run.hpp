// SPDX-License-Identifier: BSL-1.0
//
// A run in three lines of text: the model with its options, the cut with the schedule, and the
// device. A live page shows them below its title.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <string>

#include <pipe/report/explain.hpp>

namespace pp {

namespace console {

/// The model, its parameters, number types and optimizer; stages, ranks and schedule; and what the
/// run computes on: three lines.
template <class Trainer>
std::string about_run(Trainer const& trainer) {
  return detail::explain_options<Trainer>() + "device: " + Trainer::compiled::backend::name + ", " +
         trainer.runs_on() + "\n";
}

}  // namespace console

}  // namespace pp
