// SPDX-License-Identifier: BSL-1.0
//
// The model, and what the command line decides.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include <pipe/pipe.hpp>
#include <pipe/report/page_address.hpp>
#ifdef EXAMPLE_USES_MPI
#include <pipe/mpi.hpp>
#endif
#ifdef EXAMPLE_USES_TCP
#include <pipe/tcp.hpp>
#endif

// [model]
using Block = pp::Seq<pp::Residual<pp::LayerNorm, pp::Attention<3>>,
                      pp::Residual<pp::LayerNorm, pp::Linear<384>, pp::GELUTanh, pp::Linear<96>>>;

struct GPT : pp::Model<pp::Tokens<256, 128>,  // every byte is a token; a window of 128
                       pp::Embedding<96>, pp::Positions, pp::Repeat<8, Block>, pp::LayerNorm,
                       pp::Linear<256>, pp::CrossEntropy> {};
// [/model]

// [partition]
#ifndef PIPE_GPT_PROFILE
#define PIPE_GPT_PROFILE "gpt_profile.hpp"
#endif
#if __has_include(PIPE_GPT_PROFILE)  // written by `gpt --profile FILE`
#include PIPE_GPT_PROFILE
inline constexpr bool profiled = true;
using Partition = pp::ByProfile<gpt_profile>;
#else
inline constexpr bool profiled = false;
using Partition = pp::ByCost;
#endif
// [/partition]

// [transport]
#if defined EXAMPLE_USES_MPI  // gpt.mpi, which mpirun starts
using Transport = pp::Mpi;
#elif defined EXAMPLE_USES_TCP  // gpt.tcp, which pipe-run starts
using Transport = pp::Tcp;
#else
using Transport = pp::InProcess;
#endif
// [/transport]

/// The number of this process.
template <class T = Transport>
int process() {
  if constexpr (requires { T::process(); })
    return T::process();
  else
    return 0;
}

/// A whole step learns from 8 x 2 windows. The backend is what --device chooses.
template <class Schedule, class Backend = pp::Host>
using Trainer = pp::Pipeline<GPT, pp::Stages<4>, Partition, pp::MicroBatches<8>,
                             pp::MicroBatchSize<2>, Schedule, pp::AdamW, Backend, Transport>;

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
