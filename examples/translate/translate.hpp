// SPDX-License-Identifier: BSL-1.0
//
// The model, and what the command line decides.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <pipe/pipe.hpp>

#include "corpus.hpp"

// [model]
inline constexpr int width = 128, vocabulary = 2048, context = 24;

/// The initial values of what adds to the residual stream. Deep: smaller by the root of the number
/// of additions, so that many layers begin as the sum of one.
template <int Additions, bool Deep>
using Added = std::conditional_t<Deep, pp::ScaledNormal<9, 100, Additions>, pp::Normal<9, 100>>;

template <int H, class Out>
using Think = pp::Residual<pp::LayerNorm, pp::Linear<H, pp::Init<pp::Normal<9, 100>, pp::Zeros>>,
                           pp::ReLU, pp::Linear<width, pp::Init<Out, pp::Zeros>>>;
template <class Out>
using Options = pp::OutputInit<Out, pp::Zeros>;

/// T(L, H, A) of GPipe: L layers in the encoder and L in the decoder, H hidden numbers of their
/// feed-forward layers, A heads. All languages share the words, in three places: the encoder's
/// input, the decoder's, and the scores.
template <int L, int H, int A, bool Deep>
struct Translator
    : pp::Model<
          pp::Tokens<vocabulary, context>,
          pp::Named<"words", pp::Embedding<width, pp::Init<pp::Normal<9, 100>>>>, pp::Positions,
          pp::Repeat<L,
                     pp::Residual<pp::LayerNorm,
                                  pp::Attention<A, pp::NotCausal, Options<Added<2 * L, Deep>>>>,
                     Think<H, Added<2 * L, Deep>>>,
          pp::LayerNorm, pp::Stash<"source">,
          pp::Named<"target", pp::Tokens<vocabulary, context>>,  // the decoder begins
          pp::Tied<"words">, pp::Positions,
          pp::Repeat<L, pp::Residual<pp::LayerNorm, pp::Attention<A, Options<Added<3 * L, Deep>>>>,
                     pp::Residual<pp::LayerNorm,
                                  pp::CrossAttention<A, "source", Options<Added<3 * L, Deep>>>>,
                     Think<H, Added<3 * L, Deep>>>,
          pp::LayerNorm, pp::Tied<"words">, pp::With<pp::CrossEntropy, pp::LabelSmoothing<1, 10>>> {
};

struct Shallow : Translator<3, 512, 4, false> {};
struct Deep : Translator<32, 512, 4, true> {};
struct Plain : Translator<32, 512, 4, false> {};

template <class Model>
using Trainer = pp::Pipeline<Model, pp::Stages<2>, pp::MicroBatches<4>, pp::MicroBatchSize<8>,
                             pp::OneFOneB, pp::AdamW, pp::Lengths<>>;
// [/model]

struct options {
  std::string catalogues = "/usr/share/locale/*/LC_MESSAGES/*.mo";  ///< a pattern of paths
  std::vector<std::string> languages;  ///< none: those with the most messages
  int most_languages = 4;              ///< if none is named; 0: all
  bool deep = false, plain = false;    ///< plain: deep, with the initial values of the shallow one
  long steps = 1500;
  double learning_rate = 2e-3;  ///< the highest
  std::uint64_t seed = 1;
  long shown = 12;    ///< translations to print
  long judged = 256;  ///< translations of which BLEU is computed
  std::string checkpoints = "translate-checkpoints";
  bool plan = false;
};

/// Trains and translates, or prints the plan, and returns the exit code. In files of their own,
/// since each compiles its kernels.
int run_shallow(options const&);
int run_deep(options const&);
int run_plain(options const&);
