// SPDX-License-Identifier: BSL-1.0
//
// A small GPT-2 that learns the licences on this machine, for those who have no weights at hand. It
// is kept as a hub keeps its own, and loaded like them.
#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <system_error>

#include <pipe/data.hpp>
#include <pipe/data/text.hpp>
#include <pipe/report/progress_line.hpp>
#include <pipe/train/stop_request.hpp>

#include "../models/hub/gpt2.hpp"
#include "../models/transformers.hpp"
#include "../outputs.hpp"
#include "run.hpp"

namespace {

constexpr int vocabulary = 512, context = 96;
struct SmallGpt2 : models::Gpt2<3, 96, 4, vocabulary, context> {};
using Trainer = pp::Pipeline<SmallGpt2, pp::Stages<2>, pp::MicroBatches<4>, pp::MicroBatchSize<4>,
                             pp::OneFOneB, pp::AdamW>;

/// A file, or those of a folder in the order of their names. Links are other names of files.
///
/// throws: pp::file_error if there is neither, or it cannot be read
std::vector<std::string> texts_at(std::filesystem::path const& path) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    for (auto const& entry : std::filesystem::directory_iterator(path, error))
      if (entry.is_regular_file() && !entry.is_symlink()) files.push_back(entry.path());
  } else if (std::filesystem::exists(path, error)) {
    files = {path};
  } else if (!error) {
    error = std::make_error_code(std::errc::no_such_file_or_directory);
  }
  if (error) throw pp::file_error("cannot read '" + path.string() + "': " + error.message());
  std::sort(files.begin(), files.end());
  std::vector<std::string> texts;
  for (auto const& file : files) texts.push_back(pp::detail::file_bytes(file.string()));
  return texts;
}

}  // namespace

program small_program() {
  return program_of<SmallGpt2, models::hub::huggingface_gpt2<SmallGpt2>>("small");
}

void learn(options const& o) {
  auto const texts = texts_at(o.text);
  pp::byte_pair_learner learner;
  for (std::string const& text : texts) learner.add(text);
  pp::byte_pair_tokenizer const tokenizer = learner.learned(vocabulary, {"<|endoftext|>"});
  std::vector<int> all;
  for (std::string const& text : texts) {
    all.push_back(tokenizer.id_of("<|endoftext|>"));
    tokenizer.encode_ordinary(text, all);
  }
  if (all.size() < 10 * context)
    throw pp::error("'" + o.text + "' has too little to learn from: --text FILE gives a text, " +
                    "--weights FOLDER the weights of a model");
  std::string const tokens_path = o.learned + "/tokenizer.json",
                    weights_path = o.learned + "/model.safetensors";
  make_folder(o.learned);
  require_writable({tokens_path, weights_path});
  std::fprintf(stderr,
               "no --weights: a small GPT-2 learns %zu tokens of '%s', and is kept in '%s'\n",
               all.size(), o.text.c_str(), o.learned.c_str());

  Trainer trainer(
      {.seed = o.seed,
       .optimizer = {.learning_rate = 3e-3, .beta2 = 0.99},
       .learning_rate_factor =
           pp::learning_rate_schedule{
               .warm_up = std::min(30L, o.steps / 5), .steps = std::max(1L, o.steps), .floor = 0.1},
       .clip_norm = 1});
  pp::progress_line line(o.steps, pp::console::step_words, stderr);
  pp::stop_request stop;
  std::vector<int> tokens, next;
  while (trainer.steps() < o.steps && !stop.is_requested(trainer)) {
    tokens.clear(), next.clear();
    for (int i = 0; i < Trainer::samples; ++i) {
      auto const at =
          all.begin() + long(pp::text_data::place(o.seed, std::uint64_t(trainer.steps()),
                                                  std::uint64_t(i), all.size() - context));
      tokens.insert(tokens.end(), at, at + context);
      next.insert(next.end(), at + 1, at + context + 1);
    }
    double const rate = trainer.learning_rate();
    pp::step_result const r = trainer.step(Trainer::batch{tokens, next});
    line.write({.step = trainer.steps(),
                .loss = r.loss,
                .learning_rate = rate,
                .gradient_norm = r.gradient_norm,
                .samples_per_second = Trainer::samples / r.seconds,
                .seconds = r.seconds,
                .bubble = r.bubble});
  }
  if (stop) throw pp::error("training was stopped, and nothing is kept");
  pp::write_tokenizer(tokenizer, tokens_path);
  // [save]
  pp::save_weights(trainer, weights_path, models::hub::huggingface_gpt2<SmallGpt2>());
  // [/save]
}
