// SPDX-License-Identifier: BSL-1.0
//
// Continues a text with GPT-2 or LLaMA, or with a small model that is trained here.
//
//     generate                                 trains a small GPT-2 on the licences of this machine
//     generate --weights gpt2                  a folder as hubs have it, of any size of GPT-2
//     generate --weights gpt2 --greedy         takes the most likely token, always
//     generate --weights tinyllama --ids 1,450 gives tokens in place of a text
//     generate --weights gpt2 --numbers int8   keeps the weights in a quarter of the memory
//     generate --weights gpt2 --perplexity a   prints how well rounded weights predict a text
//
// Text is written as it comes, to the output; what else there is to say, to the error output.
//
// Exit codes: 0 done; 1 an error; 2 wrong options.
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <pipe/base/error.hpp>

#include "../options.hpp"
#include "generate.hpp"

namespace {

/// The program with a name or, without one, that of the model whose weights are given.
program const& chosen(std::vector<program> const& all, options const& o) {
  for (program const& p : all)
    if (p.name == o.model) return p;
  pp::weight_files const files(o.weights);
  for (program const& p : all)
    if (p.fits(files)) return p;
  std::string names;
  for (program const& p : all) names += (names.empty() ? "" : ", ") + p.name;
  throw pp::data_error("'" + o.weights + "' is none of the models " + names);
}

void run(std::vector<program> const& all, options o, CLI::App const& app) {
  if (o.weights.empty()) {
    if (!o.model.empty())
      throw pp::error("--model " + o.model + " needs --weights FOLDER, with its model.safetensors");
    o.weights = o.learned;
    o.model = small_program().name;
    bool const is_there = std::filesystem::exists(o.learned + "/model.safetensors");
    if (!is_there || app.count("--text") + app.count("--steps") > 0) learn(o);
  }
  chosen(all, o).run(o);
}

}  // namespace

int main(int count, char** arguments) {
  options o;
  std::vector<program> all = gpt2_programs();
  for (program const& p : llama_programs()) all.push_back(p);
  all.push_back(small_program());
  std::vector<std::string> names;
  for (program const& p : all) names.push_back(p.name);

  CLI::App app("Continues a text with GPT-2, LLaMA, or a small model that is trained here",
               "generate");
  app.add_option("--weights", o.weights,
                 "a folder with model.safetensors, or with its parts and their index, or such a "
                 "file (default: a small GPT-2 learns a text)");
  app.add_option("--model", o.model, "what the weights are of (default: what they fit)")
      ->check(CLI::IsMember(names));
  app.add_option("--tokenizer", o.tokenizer,
                 "tokenizer.json, or a folder with it, or with vocab.json and merges.txt (default: "
                 "that of the weights)");
  auto* const prompt =
      app.add_option("--prompt", o.prompt, "the text to continue")->capture_default_str();
  app.add_option("--ids", o.ids, "its tokens, as 1,450: the output is tokens, too")
      ->delimiter(',')
      ->excludes(prompt);
  app.add_option("--tokens", o.tokens, "how many to write, at most")
      ->check(whole<long, 1>)
      ->capture_default_str();
  app.add_option("--threads", o.threads, "that share the work of a token")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  std::vector<std::string> kinds;
  for (named_numbers const& n : numbers_of_weights) kinds.emplace_back(n.name);
  app.add_option("--numbers", o.numbers, "of the weights: fp32, or rounded")
      ->check(CLI::IsMember(kinds))
      ->capture_default_str();
  app.add_flag("--keys-in-bf16", o.keys_in_bf16, "keeps keys and values of earlier tokens in bf16");
  app.add_option("--perplexity", o.measured,
                 "a text: prints its perplexity for weights in fp32, bf16 and int8, with keys in "
                 "fp32 and bf16, and no text")
      ->check(CLI::ExistingFile);
  auto* const temperature = app.add_option("--temperature", o.temperature,
                                           "divides the scores; 0: the most likely token, always")
                                ->check(at_least_0)
                                ->capture_default_str();
  app.add_option("--top-k", o.top_k, "only the k most likely tokens; 0: all")
      ->check(whole<int>)
      ->capture_default_str();
  app.add_option("--top-p", o.top_p, "then only the fewest of this probability together")
      ->check(CLI::Range(1e-9, 1.0))
      ->capture_default_str();
  app.add_option("--seed", o.seed, "of all random numbers")
      ->check(whole<std::uint64_t>)
      ->capture_default_str();
  bool greedy = false;
  app.add_flag("--greedy", greedy, "--temperature 0")->excludes(temperature);
  app.add_option("--text", o.text, "a file, or a folder of files, for the small model to learn")
      ->capture_default_str();
  app.add_option("--steps", o.steps, "training steps of the small model")
      ->check(whole<long, 1>)
      ->capture_default_str();
  app.add_option("--learned", o.learned, "the folder where the small model is kept")
      ->capture_default_str();
  try {
    app.parse(count, arguments);
    if (greedy) o.temperature = 0;
    run(all, o, app);
    return 0;
  } catch (CLI::Success const& e) {
    return app.exit(e);
  } catch (CLI::ParseError const& e) {
    std::fprintf(stderr, "generate: %s (generate --help lists the options)\n", e.what());
    return 2;
  } catch (std::bad_alloc const&) {
    std::fprintf(stderr, "generate: there is too little memory for the model\n");
    return 1;
  } catch (std::exception const& e) {
    std::fflush(stdout);
    std::fprintf(stderr, "generate: %s\n", e.what());
    return 1;
  }
}
