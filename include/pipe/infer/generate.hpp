// SPDX-License-Identifier: BSL-1.0
//
// Text generation by a language model: a loop of decoding and sampling.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <concepts>
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

}  // namespace pp
