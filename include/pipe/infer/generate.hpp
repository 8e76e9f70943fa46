// SPDX-License-Identifier: BSL-1.0
//
// Text generation by a language model: a loop of decoding and sampling.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <pipe/infer/decoder.hpp>
#include <pipe/infer/sampling.hpp>

namespace pp {

namespace detail {

/// The settings of a generation.
struct generation_settings {
  long tokens = 0;  ///< the maximum number of new tokens
  sampling_settings sampling{};
  int end = -1;         ///< a token that ends the text; -1: none
  int keep_at_end = 0;  ///< the tokens of a full context that are kept; 0: half of it
};

/// The number of tokens that a full context keeps.
///
/// throws: data_error if the prompt is empty or a setting is out of range, but for those of
///         sampling
inline int checked_generation(std::span<int const> prompt, generation_settings const& s,
                              int context, int vocabulary) {
  int const kept = s.keep_at_end == 0 ? (context + 1) / 2 : s.keep_at_end;
  if (prompt.empty())
    throw_error<data_error>({"generate: expected a prompt of at least one token, got none"});
  if (s.tokens < 0)
    throw_error<data_error>({"generate: tokens: expected 0 or more, got ", s.tokens});
  if (kept < 1 || kept > context)
    throw_error<data_error>({"generate: keep_at_end: ", kept, " is not in [1, ", context, "]"});
  if (s.end < -1 || s.end >= vocabulary)
    throw_error<data_error>({"generate: end: token ", s.end, " is not in [-1, ", vocabulary, ")"});
  return kept;
}

/// A text and the number of its first tokens that another one begins with.
struct common_beginning {
  std::size_t text = 0, tokens = 0;
};
/// The text before k that has the longest beginning in common with it, short of its last token,
/// whose logits are wanted.
inline common_beginning longest_beginning(std::vector<std::vector<int>> const& texts,
                                          std::size_t k) {
  common_beginning most;
  for (std::size_t i = 0; i < k; ++i) {
    auto const ends = std::ranges::mismatch(texts[i], texts[k]);
    auto const same = std::min(std::size_t(ends.in2 - texts[k].begin()), texts[k].size() - 1);
    if (same > most.tokens) most = {i, same};
  }
  return most;
}

}  // namespace detail

/// Continues a text. Calls each(token) for every new token as soon as it is drawn; if each returns
/// a bool, false ends the text. An end token is passed on, too, as the last one.
///
/// When the context is full, decoding restarts with its last `keep_at_end` tokens. So a token costs
/// the work of its own position, plus, with half of the context kept, about one more for the
/// restarts. Of a prompt longer than the context the last tokens are used.
/// With the whole context kept, every further token costs a run of the whole context.
///
/// law:    the tokens are a function of the trainer's parameters, the prompt and the settings only
/// throws: data_error if the prompt is empty or a token or a setting is out of range, before the
///         first token
template <class Trainer, std::invocable<int> Each>
void generate(decoder<Trainer>& read, std::span<int const> prompt,
              detail::generation_settings const& s, Each each) {
  constexpr int context = decoder<Trainer>::context;
  int const kept = detail::checked_generation(prompt, s, context, decoder<Trainer>::vocabulary);
  if (prompt.size() > std::size_t(context)) prompt = prompt.last(std::size_t(context));
  std::vector<int> text(prompt.begin(), prompt.end());
  read.rewind(0);
  auto logits = read.read(prompt);
  for (long i = 0; i < s.tokens; ++i) {
    // The place is the number of the new token, so draws do not depend on the prompt's length.
    int const token = sampling::sample(logits, s.sampling, std::uint64_t(i));
    if constexpr (std::same_as<std::invoke_result_t<Each&, int>, bool>) {
      if (!each(token)) return;
    } else {
      each(token);
    }
    if (token == s.end || i + 1 == s.tokens) return;
    text.push_back(token);
    if (read.position() < context) {
      logits = read.read(token);
    } else {
      read.rewind(0);
      logits = read.read(std::span(text).last(std::size_t(kept)));
    }
  }
}
/// The same with a new decoder.
///
/// cost: allocates the keys and values of a whole context
template <class Trainer, std::invocable<int> Each>
void generate(Trainer& trainer, std::span<int const> prompt, detail::generation_settings const& s,
              Each each) {
  decoder<Trainer> read(trainer);
  generate(read, prompt, s, std::move(each));
}
/// The same; returns the new tokens.
template <class TrainerOrDecoder>
std::vector<int> generate(TrainerOrDecoder& from, std::span<int const> prompt,
                          detail::generation_settings const& s) {
  std::vector<int> tokens;
  generate(from, prompt, s, [&](int token) { tokens.push_back(token); });
  return tokens;
}

/// Continues several texts at once; calls each(text, token) for every new token. Texts that begin
/// alike share the work, the keys and the values of their common beginning, and every further token
/// of all texts takes one pass over the weights. If each returns a bool, false ends that text; the
/// others go on.
///
/// law:    text k has the tokens of a text alone with the seed s.sampling.seed + k
/// throws: data_error also if there are no prompts, or more than read.texts()
template <class Trainer, std::invocable<int, int> Each>
void generate(decoder<Trainer>& read, std::span<std::vector<int> const> prompts,
              detail::generation_settings const& s, Each each) {
  constexpr int context = decoder<Trainer>::context, vocabulary = decoder<Trainer>::vocabulary;
  if (prompts.empty() || prompts.size() > std::size_t(read.texts()))
    detail::throw_error<data_error>(
        {"generate: expected 1 to ", read.texts(), " prompts, got ", prompts.size()});
  detail::check_sampling(s.sampling);
  int kept = 0;
  for (auto const& prompt : prompts) {
    kept = detail::checked_generation(prompt, s, context, vocabulary);
    detail::check_tokens(prompt, vocabulary);
  }
  std::vector<std::vector<int>> texts;
  std::vector<int> next(std::size_t(read.texts()), -1);  // the tokens to be read; -1: none
  // Draws the i-th new token of a text.
  auto const draw = [&](std::size_t k, std::span<typename decoder<Trainer>::element const> logits,
                        long i) {
    detail::sampling_settings how = s.sampling;
    how.seed += k;
    int const token = sampling::sample(logits, how, std::uint64_t(i));
    bool goes_on = token != s.end && i + 1 < s.tokens;
    if constexpr (std::same_as<std::invoke_result_t<Each&, int, int>, bool>)
      goes_on = each(int(k), token) && goes_on;
    else
      each(int(k), token);
    texts[k].push_back(token);
    next[k] = goes_on ? token : -1;
  };
  for (std::size_t k = 0; k < prompts.size(); ++k) {
    std::span<int const> prompt = prompts[k];
    if (prompt.size() > std::size_t(context)) prompt = prompt.last(std::size_t(context));
    texts.emplace_back(prompt.begin(), prompt.end());
  }
  for (int k = 0; k < read.texts(); ++k) read.rewind(k, 0);
  std::vector<std::vector<int>> const given = texts;
  // Prompts are read together, but one that begins as another does waits for that one.
  std::vector<std::vector<typename decoder<Trainer>::element>> first(given.size());
  for (std::size_t left = given.size(); left > 0;) {
    std::vector<std::vector<int>> now(std::size_t(read.texts()));
    for (std::size_t k = 0; k < given.size(); ++k) {
      auto const [from, common] = detail::longest_beginning(given, k);
      if (!first[k].empty() || (common > 0 && first[from].empty())) continue;
      if (common > 0) {
        read.copy_text(int(from), int(k));
        read.rewind(int(k), int(common));
      }
      now[k].assign(given[k].begin() + std::ptrdiff_t(common), given[k].end());
    }
    auto logits = read.read_each(now);
    for (std::size_t k = 0; k < given.size(); ++k) {
      if (now[k].empty()) continue;
      first[k].assign(logits.begin(), logits.begin() + vocabulary);
      logits = logits.subspan(std::size_t(vocabulary));
      --left;
    }
  }
  for (std::size_t k = 0; k < given.size() && s.tokens > 0; ++k) draw(k, first[k], 0);
  for (long i = 1; i < s.tokens; ++i) {
    std::vector<int> tokens = next;
    for (std::size_t k = 0; k < texts.size(); ++k)
      if (tokens[k] >= 0 && read.position(int(k)) == context) {
        read.rewind(int(k), 0);
        draw(k, read.read(int(k), std::span(texts[k]).last(std::size_t(kept))), i);
        tokens[k] = -1;
      }
    if (std::ranges::count(tokens, -1) == std::ssize(tokens)) continue;
    auto logits = read.read_each(tokens);
    for (std::size_t k = 0; k < texts.size(); ++k)
      if (tokens[k] >= 0) {
        draw(k, logits.first(std::size_t(vocabulary)), i);
        logits = logits.subspan(std::size_t(vocabulary));
      }
  }
}
/// The same; returns the new tokens of each text.
template <class Trainer>
std::vector<std::vector<int>> generate(decoder<Trainer>& read,
                                       std::span<std::vector<int> const> prompts,
                                       detail::generation_settings const& s) {
  std::vector<std::vector<int>> tokens(prompts.size());
  generate(read, prompts, s,
           [&](int text, int token) { tokens[std::size_t(text)].push_back(token); });
  return tokens;
}

}  // namespace pp
