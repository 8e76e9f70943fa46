// SPDX-License-Identifier: BSL-1.0
//
// The model that all learn, what is asked for, and what a run of training accumulations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <pipe/data/text.hpp>
#include <pipe/pipe.hpp>

// [model]
using SmallBlock =
    pp::Seq<pp::Residual<pp::LayerNorm, pp::Attention<4>>,
            pp::Residual<pp::LayerNorm, pp::Linear<256>, pp::GELUTanh, pp::Linear<64>>>;

struct SmallGPT : pp::Model<pp::Tokens<256, 64>,  // every byte is a token; a window of 64
                            pp::Embedding<64>, pp::Positions, pp::Repeat<6, SmallBlock>,
                            pp::LayerNorm, pp::Linear<256>, pp::CrossEntropy> {};
// [/model]

inline constexpr int stages = 4, context = 64, windows = 8;  // windows: of an update
inline constexpr long tokens_per_step = long(context) * windows;

/// What all runs have in common.
struct experiment {
  pp::text_data const& text;
  long steps;  ///< of a run
};

/// The results of a run. Losses are in nats per byte.
struct outcome {
  std::vector<double> curve;  ///< training loss: means over equal parts of the run
  double evaluation = 0;      ///< loss on held-out text after the last step
  long steps = 0;             ///< that were made
  bool diverged = false;      ///< a loss or a gradient was not finite
};

/// At most this many points of a curve.
inline constexpr long most_points = 100;

/// Called after each step; returns whether to go on.
using see_step = std::function<bool(long step, double loss)>;

/// A schedule with an optimizer: one type of trainer.
struct arm {
  std::string schedule, optimizer;
  std::string staleness;  ///< how old the weights are that gradients are of
  double learning_rate;   ///< the highest, where the factor is 1
  long parameters;        ///< of the model
  int versions;           ///< of the weights of the first stage
  /// Trains a new model. factor: of the learning rate
  outcome (*train)(experiment const&, double factor, std::uint64_t seed, see_step const&);
};

/// All that are compiled in. A source file for each optimizer adds its own.
inline std::vector<arm>& arms() {
  static std::vector<arm> all;
  return all;
}
