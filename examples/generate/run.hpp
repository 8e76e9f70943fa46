// SPDX-License-Identifier: BSL-1.0
//
// The program: load, read the prompt, write. A template over the model.
#pragma once

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <pipe/infer/generate.hpp>
#include <pipe/infer/model_weights.hpp>
#include <pipe/infer/perplexity.hpp>
#include <pipe/weights/weights.hpp>

#include "../gpt/printer.hpp"
#include "../models/hub/compare.hpp"
#include "../models/parts.hpp"
#include "generate.hpp"
#include "text.hpp"

/// Prints tokens as text, or as numbers if there is no tokenizer.
class token_printer {
 public:
  explicit token_printer(pp::byte_pair_tokenizer const* tokenizer) : tokenizer_(tokenizer) {}
  ~token_printer() {
    text_.end();
    std::printf("\n");
  }
  token_printer(token_printer const&) = delete;
  token_printer& operator=(token_printer const&) = delete;

  void put(int token) {
    if (tokenizer_ == nullptr) {
      std::printf("%s%d", is_first_ ? "" : " ", token);
      std::fflush(stdout);
    } else if (token <
               tokenizer_->vocabulary()) {  // tables may have more rows than there are tokens
      for (char const c : tokenizer_->decode({&token, 1})) text_.put(static_cast<unsigned char>(c));
    }
    is_first_ = false;
  }

 private:
  pp::byte_pair_tokenizer const* tokenizer_;
  printer text_;
  bool is_first_ = true;
};

/// A prompt in tokens, after the one that begins a text where a model has one.
inline std::vector<int> prompt_of(options const& o, pp::byte_pair_tokenizer const& tokenizer) {
  std::vector<int> prompt = tokenizer.encode(o.prompt);
  if (int const begin = token_of(tokenizer, {"<|begin_of_text|>"}); begin >= 0)
    prompt.insert(prompt.begin(), begin);
  if (prompt.empty())
    if (int const end = token_of(tokenizer, {"<|endoftext|>"}); end >= 0) prompt.push_back(end);
  return prompt;
}

/// Prints the perplexity of a text for all numbers of weights, and of keys and values.
template <class Model>
void measure(options const& o, pp::model_weights<Model>& weights,
             pp::byte_pair_tokenizer const& tokenizer) {
  std::ifstream file(o.measured, std::ios::binary);
  std::string const text(std::istreambuf_iterator<char>(file), {});
  std::vector<int> const tokens = tokenizer.encode(text);
  for (named_numbers const& n : numbers_of_weights)
    for (bool const narrow : {false, true}) {
      // [perplexity]
      pp::decoder read(
          weights,
          {.threads = o.threads, .weights = n.weights, .texts = 16, .keys_in_bf16 = narrow});
      double const found = pp::perplexity(read, tokens);
      // [/perplexity]
      std::printf("%s%s: perplexity %.4f of %zu tokens\n", n.name, narrow ? ", keys in bf16" : "",
                  found, tokens.size());
      std::fflush(stdout);
    }
}

/// The map of a model's names to those in files.
using names_in = pp::name_map(pp::weight_files const&);

template <class Model>
void run(options const& o, names_in* names) {
  using clock = std::chrono::steady_clock;
  auto const seconds = [](clock::duration d) { return std::chrono::duration<double>(d).count(); };
  std::optional<pp::byte_pair_tokenizer> tokenizer;
  std::vector<int> prompt = o.ids;
  if (prompt.empty() || !o.measured.empty()) {
    tokenizer = tokenizer_at(o.tokenizer.empty() ? o.weights : o.tokenizer);
    prompt = prompt_of(o, *tokenizer);
  }
  constexpr int vocabulary = Model::graph.inputs[0].vocabulary;
  for (int const token : prompt)
    if (token < 0 || token >= vocabulary)
      throw pp::data_error("token " + std::to_string(token) + " of the prompt is not in [0, " +
                           std::to_string(vocabulary) + "), the vocabulary of the model");

  auto const begin = clock::now();
  // [load]
  auto weights = std::make_unique<pp::model_weights<Model>>();
  pp::weight_files const files(o.weights);
  pp::load_weights(*weights, files, pp::load_policy::strict, names(files));
  // [/load]
  std::fprintf(stderr, "loaded '%s': %.1f million parameters in %.1f s\n", o.weights.c_str(),
               double(models::parameters_of<Model>()) / 1e6, seconds(clock::now() - begin));

  if (!o.measured.empty()) return measure(o, *weights, *tokenizer);
  auto const* numbers = std::begin(numbers_of_weights);
  while (o.numbers != numbers->name) ++numbers;
  // [rounded]
  pp::decoder read(
      *weights,
      {.threads = o.threads, .weights = numbers->weights, .keys_in_bf16 = o.keys_in_bf16});
  if (numbers->weights != pp::decoder_weights::as_trained) weights.reset();
  // [/rounded]
  int const end = tokenizer ? token_of(*tokenizer, {"<|endoftext|>", "<|end_of_text|>"}) : -1;
  long written = 0;
  clock::time_point first{};
  {
    token_printer out(tokenizer ? &*tokenizer : nullptr);
    for (int const token : prompt) out.put(token);
    // [generate]
    pp::generate(read, prompt,
                 {.tokens = o.tokens,
                  .sampling = {.temperature = o.temperature,
                               .top_k = o.top_k,
                               .top_p = o.top_p,
                               .seed = o.seed},
                  .end = end},
                 [&](int token) {
                   if (written++ == 0) first = clock::now();
                   if (token != end) out.put(token);
                 });
    // [/generate]
  }
  if (written > 1)
    std::fprintf(stderr, "%ld tokens, %.1f tokens per second\n", written,
                 double(written - 1) / seconds(clock::now() - first));
}

/// A model that is compiled in, and its names.
template <class Model, names_in* Names>
program program_of(std::string const& name) {
  auto const fits = [](pp::weight_files const& files) {
    try {
      pp::load_report const found = models::hub::compare<Model>(files, Names(files));
      return found.missing.empty() && found.unused.empty();
    } catch (pp::data_error const&) {  // other shapes
      return false;
    }
  };
  return {name, fits, [](options const& o) { run<Model>(o, Names); }};
}
