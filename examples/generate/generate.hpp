// SPDX-License-Identifier: BSL-1.0
//
// What the command line decides, and the models that are compiled in.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <pipe/infer/decoder.hpp>
#include <pipe/weights/weight_files.hpp>

struct options {
  std::string model;      ///< empty: the one that the weights fit
  std::string weights;    ///< a folder or a file; empty: a small model that is trained here
  std::string tokenizer;  ///< a folder or a tokenizer.json; empty: beside the weights
  std::string prompt = "You may";
  std::vector<int> ids;  ///< the prompt as tokens, in place of a text
  long tokens = 100;
  int threads = 1;
  std::string numbers = "fp32";  ///< of the weights: a name in numbers_of_weights
  bool keys_in_bf16 = false;     ///< keys and values of earlier tokens
  std::string measured;      ///< a file: its perplexity is printed, in place of a continued text
  double temperature = 0.8;  ///< 0: the most likely token, always
  int top_k = 40;
  double top_p = 0.95;
  std::uint64_t seed = 1;
  std::string text = "/usr/share/common-licenses";  ///< what the small model learns
  std::string learned = "generate-model";           ///< the folder where it is kept
  long steps = 300;                                 ///< of its training
};

/// What weights are rounded to, by name.
struct named_numbers {
  char const* name;
  pp::decoder_weights weights;
};
inline constexpr named_numbers numbers_of_weights[]{{"fp32", pp::decoder_weights::as_trained},
                                                    {"bf16", pp::decoder_weights::bf16},
                                                    {"int8", pp::decoder_weights::int8}};

/// A model that is compiled in.
struct program {
  std::string name;
  /// Whether weights are of this model: by the names and shapes of all.
  bool (*fits)(pp::weight_files const&);
  void (*run)(options const&);
};

/// All of them. In files of their own, since each compiles its kernels.
std::vector<program> gpt2_programs();
std::vector<program> llama_programs();
/// The model that learns a text of this machine. learn() trains it, and keeps it as a hub would.
program small_program();
void learn(options const&);
