// SPDX-License-Identifier: BSL-1.0
//
// The perplexity of a text by a language model: how well it predicts the text, and how much less
// well with rounded weights.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/base/libm.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/infer/decoder.hpp>

namespace pp {

namespace detail {

/// -log of the probability of a token.
template <class T>
double surprise(std::span<T const> logits, int token) {
  T const largest = *std::ranges::max_element(logits);
  double sum = 0;
  for (T const x : logits) sum += libm::exp(double(x) - double(largest));
  return libm::log(sum) - (double(logits[std::size_t(token)]) - double(largest));
}

}  // namespace detail

/// e to the mean of -log(probability) over all tokens of a text but the first. The text is cut into
/// windows of a context, which share one token, and of which as many as the decoder has texts are
/// read at once. The decoder's texts are dropped.
///
/// law:    the same number for any number of texts and threads
/// throws: data_error if there are fewer than two tokens, or one is not in the vocabulary
template <class Trainer>
double perplexity(decoder<Trainer>& read, std::span<int const> tokens) {
  using T = typename decoder<Trainer>::element;
  constexpr std::size_t context = decoder<Trainer>::context,
                        vocabulary = decoder<Trainer>::vocabulary;
  if (tokens.size() < 2)
    detail::throw_error<data_error>(
        {"perplexity: expected at least 2 tokens, got ", tokens.size()});
  detail::check_tokens(tokens, int(vocabulary));
  std::size_t const predicted = tokens.size() - 1, windows = (predicted + context - 1) / context,
                    texts = std::size_t(read.texts());
  double sum = 0;
  for (std::size_t first = 0; first < windows; first += texts) {
    std::vector<double> of_window(std::min(texts, windows - first));
    for (int k = 0; k < read.texts(); ++k) read.rewind(k, 0);
    for (std::size_t i = 0; i < context; ++i) {
      std::vector<int> next(texts, -1);
      std::size_t count = 0;  // only the last window may be shorter
      for (; count < of_window.size(); ++count) {
        std::size_t const at = (first + count) * context + i;
        if (at >= predicted) break;
        next[count] = tokens[at];
      }
      if (count == 0) break;
      auto const logits = read.read_each(next);
      for (std::size_t k = 0; k < count; ++k)
        of_window[k] += detail::surprise<T>(logits.subspan(k * vocabulary, vocabulary),
                                            tokens[(first + k) * context + i + 1]);
    }
    for (double const part : of_window) sum += part;
  }
  return libm::exp(sum / double(predicted));
}

}  // namespace pp
