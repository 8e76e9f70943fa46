// SPDX-License-Identifier: BSL-1.0
//
// BLEU, the usual measure of translations: the share of n-grams of one to four words that the
// reference has as well.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <pipe/base/config.hpp>

namespace pp {

/// BLEU of a corpus, sentence by sentence, with one reference for each sentence.
///
/// law:    the order of sentences does not matter
/// source: Papineni et al., "BLEU", ACL 2002; lengths without a match count as half a match, then a
///         quarter, and so on, as in sacrebleu (Post, 2018) and mteval
class bleu_score {
 public:
  /// Adds a translation and its reference, as words.
  void add(std::span<std::string const> translation, std::span<std::string const> reference) {
    words_ += long(translation.size());
    reference_words_ += long(reference.size());
    for (std::size_t n = 1; n <= longest; ++n) {
      auto const expected = ngrams(reference, n);
      for (auto const& [ngram, count] : ngrams(translation, n)) {
        total_[n - 1] += count;
        auto const found = expected.find(ngram);
        if (found != expected.end()) matching_[n - 1] += std::min(count, found->second);
      }
    }
  }

  /// The score, from 0 to 100; 0 if no word matches.
  double value() const {
    if (matching_[0] == 0) return 0;
    double logs = 0, missing = 1;
    for (std::size_t n = 0; n < longest; ++n) {
      if (total_[n] == 0) return 0;
      double const matching = matching_[n] > 0 ? double(matching_[n]) : 1 / (missing *= 2);
      logs += std::log(matching / double(total_[n]));
    }
    // A short translation is penalised, as it has few words that can be wrong.
    double const ratio = double(reference_words_) / double(words_);
    return 100 * std::exp(logs / double(longest) + std::min(0.0, 1 - ratio));
  }

 private:
  static constexpr std::size_t longest = 4;
  using ngram_counts = std::map<std::vector<std::string>, long>;

  static ngram_counts ngrams(std::span<std::string const> words, std::size_t n) {
    ngram_counts all;
    for (std::size_t i = 0; i + n <= words.size(); ++i)
      ++all[{words.begin() + std::ptrdiff_t(i), words.begin() + std::ptrdiff_t(i + n)}];
    return all;
  }

  long words_ = 0, reference_words_ = 0;
  std::array<long, longest> matching_{}, total_{};
};

}  // namespace pp
