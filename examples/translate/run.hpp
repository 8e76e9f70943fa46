// SPDX-License-Identifier: BSL-1.0
//
// The program: read, learn words, train, translate what was kept back. A template over the trainer,
// so that both depths share it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pipe/checkpoint/checkpoints.hpp>
#include <pipe/data.hpp>
#include <pipe/metrics/bleu.hpp>
#include <pipe/report/explain.hpp>
#include <pipe/report/progress_line.hpp>
#include <pipe/train/stop_request.hpp>

#include "../outputs.hpp"
#include "translate.hpp"

/// Words for BLEU: letters, numbers, and all else by single characters, as those of scripts without
/// spaces.
inline std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  bool continues = false;
  while (!text.empty()) {
    auto const [c, bytes] = pp::detail::first_character(text);
    bool const is_word = (pp::detail::is_letter(c) || pp::detail::is_number(c)) && c < 0x2E80;
    if (is_word && continues)
      words.back() += text.substr(0, bytes);
    else if (!pp::detail::is_space(c))
      words.emplace_back(text.substr(0, bytes));
    continues = is_word;
    text.remove_prefix(bytes);
  }
  return words;
}

/// Tokens of the model: a special one for each language, which asks for a translation into it and
/// begins it, and the end.
class translation_words {
 public:
  /// The tokenizer of an earlier run, or one that is learned from the corpus and kept.
  translation_words(corpus const& c, std::uint64_t seed, std::string const& path)
      : tokenizer_(std::filesystem::exists(path) ? pp::read_tokenizer(path)
                                                 : learned(c, seed, path)) {
    for (std::string const& language : c.languages()) {
      languages_.push_back(tokenizer_.id_of(name_of(language)));
      if (languages_.back() < 0)
        throw pp::error("'" + path + "' is of other languages: there is no " + name_of(language));
    }
    if (tokenizer_.vocabulary() > vocabulary)
      throw pp::error("'" + path + "' has more words than the model");
  }

  pp::byte_pair_tokenizer const& tokenizer() const { return tokenizer_; }
  int language(int number) const { return languages_[std::size_t(number)]; }
  static constexpr int end = 0;

  std::vector<int> encode(std::string const& text) const {
    std::vector<int> ids;
    tokenizer_.encode_ordinary(text, ids);
    return ids;
  }

 private:
  static std::string name_of(std::string const& language) { return "<2" + language + ">"; }
  static pp::byte_pair_tokenizer learned(corpus const& c, std::uint64_t seed,
                                         std::string const& path) {
    pp::byte_pair_learner learner;
    for (std::uint64_t i = 0; i < 100'000; ++i) {
      sentence_pair const p = c.draw(seed, std::uint64_t(1) << 57, i);
      learner.add(*p.from);
      learner.add(*p.to);
    }
    std::vector<std::string> special{"<end>"};
    for (std::string const& language : c.languages()) special.push_back(name_of(language));
    pp::byte_pair_tokenizer t = learner.learned(vocabulary, special);
    pp::write_tokenizer(t, path);
    return t;
  }

  pp::byte_pair_tokenizer tokenizer_;
  std::vector<int> languages_;
};

// [lesson]
/// Sentences as the model reads them: the token of the language to translate into, the source; the
/// decoder begins with the same token and learns what comes next.
struct lesson {
  std::vector<int> source, target, next;

  /// Whether a pair fits the context. One that does is added.
  bool add(translation_words const& words, sentence_pair const& p) {
    std::vector<int> from = words.encode(*p.from), to = words.encode(*p.to);
    if (from.size() + 1 > context || to.size() + 1 > context) return false;
    int const begin = words.language(p.to_language);
    from.insert(from.begin(), begin);
    for (std::size_t i = 0; i < context; ++i) {
      source.push_back(i < from.size() ? from[i] : -1);
      target.push_back(i == 0 ? begin : i <= to.size() ? to[i - 1] : -1);
      next.push_back(i < to.size() ? to[i] : i == to.size() ? translation_words::end : -1);
    }
    return true;
  }
  std::size_t size() const { return source.size() / context; }
};
// [/lesson]

/// The pairs of a training step.
///
/// throws: pp::error if fewer than that of a thousand times as many fit the context
inline lesson lesson_of(std::size_t pairs, options const& o, corpus const& c,
                        translation_words const& words, long step) {
  lesson l;
  for (std::uint64_t drawn = 0; l.size() < pairs; ++drawn) {
    if (drawn == 1000 * pairs)
      throw pp::error("'" + o.catalogues + "': expected " + std::to_string(pairs) +
                      " messages of at most " + std::to_string(context - 1) + " tokens, found " +
                      std::to_string(l.size()) + " among " + std::to_string(drawn));
    l.add(words, c.draw(o.seed, std::uint64_t(step), drawn));
  }
  return l;
}

/// The most likely token after the tokens so far, again and again, for all sentences of a
/// mini-batch.
template <class Trainer>
std::vector<std::string> translate(Trainer& trainer, translation_words const& words,
                                   lesson const& of) {
  std::vector<int> heard(of.target.size(), -1);
  std::vector<float> scores(of.target.size() * vocabulary);
  std::vector<std::vector<int>> said(of.size());
  for (std::size_t n = 0; n < of.size(); ++n) heard[n * context] = of.target[n * context];
  for (std::size_t i = 0; i < context; ++i) {
    trainer.forward(typename Trainer::batch{of.source, {}}.template set<"target">(heard), scores);
    bool goes_on = false;
    for (std::size_t n = 0; n < of.size(); ++n) {
      std::size_t const at = n * context + i;
      if (heard[at] < 0) continue;  // it has ended
      int const best = pp::argmax(std::span(scores).subspan(at * vocabulary, vocabulary));
      if (best == translation_words::end || best >= words.tokenizer().vocabulary()) continue;
      said[n].push_back(best);
      if (i + 1 < context) heard[at + 1] = best, goes_on = true;
    }
    if (!goes_on) break;
  }
  std::vector<std::string> texts;
  for (auto const& ids : said) texts.push_back(words.tokenizer().decode(ids));
  return texts;
}

/// Translates messages that were kept back and prints some. Returns BLEU of all, and their number.
template <class Trainer>
std::pair<double, long> examine(Trainer& trainer, options const& o, corpus const& c,
                                translation_words const& words) {
  pp::bleu_score bleu;
  std::uint64_t drawn = 0;
  long done = 0;
  while (done < o.judged) {
    lesson l;
    std::vector<sentence_pair> pairs;
    // A corpus of long messages has few that fit.
    while (l.size() < std::min<std::size_t>(Trainer::samples, std::size_t(o.judged - done)) &&
           drawn < 100 * std::uint64_t(o.judged))
      if (sentence_pair const p = c.draw_kept_back(o.seed, drawn++); l.add(words, p))
        pairs.push_back(p);
    if (pairs.empty()) break;
    std::vector<std::string> const texts = translate(trainer, words, l);
    for (std::size_t i = 0; i < texts.size(); ++i, ++done) {
      bleu.add(words_of(texts[i]), words_of(*pairs[i].to));
      if (done < o.shown)
        std::printf("%-6s %s\n       %s\n       %s\n",
                    c.languages()[std::size_t(pairs[i].to_language)].c_str(),
                    pairs[i].from->c_str(), texts[i].c_str(), pairs[i].to->c_str());
    }
  }
  return {bleu.value(), done};
}

template <class Trainer>
int run(options const& o) {
  if (o.plan) {
    std::printf("%s", pp::explain<Trainer>().c_str());
    return 0;
  }
  corpus const c(o.catalogues, o.languages, o.most_languages);
  std::printf(
      "%zu languages, %zu messages for training, %zu kept back, in %ld catalogues (%ld "
      "left out: other charsets)\n",
      c.languages().size(), c.training().size(), c.kept_back().size(), c.files(), c.left_out());
  char rate[32];
  std::snprintf(rate, sizeof rate, "%.9g", o.learning_rate);
  std::string const text = "--steps " + std::to_string(o.steps) + " --seed " +
                           std::to_string(o.seed) + " --lr " + rate + (o.deep ? " --deep" : "") +
                           (o.plain ? " --plain-init" : "") + ", " +
                           std::to_string(c.training().size()) + " messages in " +
                           std::to_string(c.languages().size()) + " languages";
  if (pp::found_checkpoint const found = pp::newest_checkpoint(o.checkpoints);
      !found.path.empty() && found.position.text != text)
    throw pp::error("'" + o.checkpoints + "' has another run, " + found.position.text +
                    ": --checkpoints FOLDER begins this one");
  make_folder(o.checkpoints);
  translation_words const words(c, o.seed, o.checkpoints + "/tokenizer.json");

  // [train]
  Trainer trainer(
      {.seed = o.seed,
       .optimizer = {.learning_rate = o.learning_rate, .beta2 = 0.98},
       .learning_rate_factor = pp::learning_rate_schedule{.warm_up = std::min(200L, o.steps / 5),
                                                          .steps = std::max(1L, o.steps)},
       .clip_norm = 1});
  pp::checkpoints<Trainer> saved(o.checkpoints, {.every = std::chrono::minutes(1)});
  pp::resumed_checkpoint const resumed = saved.resume(trainer);
  if (!resumed.path.empty())
    std::printf("resumed: after step %ld of %ld, from '%s'\n", trainer.steps(), o.steps,
                resumed.path.c_str());
  pp::progress_line line(o.steps);
  std::optional<pp::stop_request> stop(std::in_place);
  double loss = 0;
  while (trainer.steps() < o.steps && !stop->is_requested(trainer)) {
    lesson const now = lesson_of(Trainer::samples, o, c, words, trainer.steps());
    double const rate_now = trainer.learning_rate();
    pp::step_result const r = trainer.step(
        typename Trainer::batch{now.source, now.next}.template set<"target">(now.target));
    loss = r.loss;
    line.write({.step = trainer.steps(),
                .loss = r.loss,
                .learning_rate = rate_now,
                .gradient_norm = r.gradient_norm,
                .samples_per_second = Trainer::samples / r.seconds,
                .seconds = r.seconds,
                .bubble = r.bubble});
    saved.after_step(trainer, pp::data_position(text), r.loss);
  }
  saved.finish(trainer, pp::data_position(text), loss);
  line.end();
  if (trainer.steps() < o.steps) {
    std::fflush(stdout);
    std::fprintf(stderr,
                 "translate: stopped by %s after step %ld of %ld; the same command goes on\n",
                 stop->name(), trainer.steps(), o.steps);
    return stop->exit_code();
  }
  stop.reset();  // what follows may be interrupted
  // [/train]

  auto const [bleu, judged] = examine(trainer, o, c, words);
  std::printf(
      "translate_bleu %.2f (%ld messages that were kept back, from English to %zu "
      "languages)\n",
      bleu, judged, c.languages().size() - 1);
  return 0;
}
