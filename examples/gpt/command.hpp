// SPDX-License-Identifier: BSL-1.0
//
// What the command line decides, and what the files of the program share. It includes no model, so
// that files which need none compile in a few seconds.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include <pipe/report/page_address.hpp>

/// The number of this process.
int process();

/// Whether steps begin before those before them have ended, and whether that goes on without a
/// flush: then a micro-batch meets several versions of the weights.
template <class Trainer>
constexpr bool steps_overlap = Trainer::compiled::plan().period.value() > 0;
template <class Trainer>
constexpr bool has_no_flush = Trainer::compiled::is_free;

/// As many steps as two cores do in two or three minutes.
inline constexpr long default_steps = 3000;

struct options {
  std::string data;  ///< a file or a directory; empty: the C++ standard library's headers
  long steps = default_steps;
  double learning_rate = 3e-3;  ///< the highest
  std::uint64_t seed = 1;
  std::string schedule = "1f1b";
  std::string device = "cpu";
  bool on_device = false;  ///< the text for training is in the memory of the GPU
  long generate = 400;     ///< bytes
  bool generates_on_device = false;
  std::string prompt;
  std::string load, save;                       ///< files of weights; empty: none
  std::string checkpoints = "gpt-checkpoints";  ///< a folder
  long checkpoint_every = 0;                    ///< steps; 0: every minute
  bool resume = false;                          ///< go on with what is there, or stop
  long replay = 0;  ///< the last step to make again and compare; 0: none
  std::string metrics = "metrics.csv";
  std::string tensorboard;                ///< a folder; empty: none
  std::optional<pp::page_address> watch;  ///< where the run is shown
  std::string watch_file;                 ///< the same as a file; empty: none
  std::string profile;                    ///< write the layers' times to this header and stop
  double profile_spread = 0.5;            ///< the most of the times, see measure_layers
  bool plan = false;                      ///< print the plan and stop
  bool timeline = false;                  ///< draw the last step or steps, predicted and measured
  std::string page;                       ///< the same as a page; empty: none
};

/// The program for every schedule, by name. Those of the device "cpu" are in schedules.cpp and
/// overlapping.cpp, those of "cuda" in cuda.cu.
using program = void (*)(options const&);
std::map<std::string, program>& programs(std::string const& device = "cpu");

/// Prints what went wrong though the run goes on. code: what the program ends with, unless another
/// warning has a larger one: 0 if the run loses nothing by it, 1 if something that was asked for is
/// not there or not complete.
void warn(std::string const& what, int code);

/// Measures the layers for the next build.
void measure(options const&);
