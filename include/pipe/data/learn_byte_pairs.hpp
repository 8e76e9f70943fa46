// SPDX-License-Identifier: BSL-1.0
//
// A vocabulary of byte pairs learned from texts: the most frequent pair becomes a token, again and
// again.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/data/byte_alphabet.hpp>
#include <pipe/data/byte_pairs.hpp>
#include <pipe/data/merge_pairs.hpp>

namespace pp {

/// Counts pieces of texts, and learns tokens from them.
///
///     byte_pair_learner learner;
///     for (std::string const& text : texts) learner.add(text);
///     byte_pair_tokenizer const tokenizer = learner.learned(8000, {"<end>"});
class byte_pair_learner {
 public:
  /// Counts the pieces of a text. Texts are not kept.
  ///
  /// law: a text is counted whole, or not at all if memory is exhausted
  void add(std::string_view text) {
    std::size_t done = 0;
    try {
      detail::for_each_piece(text_split::gpt2, text, [&](std::string_view piece) {
        auto const at = counts_.find(piece);
        if (at != counts_.end())
          ++at->second;
        else
          counts_.emplace(piece, 1);
        ++done;
      });
    } catch (...) {
      detail::for_each_piece(text_split::gpt2, text, [&](std::string_view piece) {
        if (done == 0) return;
        --done;
        auto const at = counts_.find(piece);
        if (--at->second == 0) counts_.erase(at);
      });
      throw;
    }
  }

  /// A tokenizer of at most `vocabulary` tokens: the special tokens, the bytes, and pairs that
  /// occur at least twice in the texts; the most frequent pair first, of equally frequent pairs
  /// that of the lowest ids.
  ///
  /// law:    a function of the texts, whatever their order
  /// cost:   n log n for pieces of n bytes, whatever the number of tokens
  /// throws: data_error if `vocabulary` is less than the number of special tokens and bytes
  byte_pair_tokenizer learned(int vocabulary, std::vector<std::string> const& special = {}) const {
    std::size_t const all = special.size() + 256;
    if (vocabulary < 0 || std::size_t(vocabulary) < all)
      throw data_error("byte_pair_learner: expected a vocabulary of at least " +
                       std::to_string(all) + " tokens, got " + std::to_string(vocabulary));
    byte_pair_vocabulary v;
    v.tokens = special;
    for (std::size_t i = 0; i < special.size(); ++i) v.special.push_back(int(i));
    int ids[256];
    // In the order of the characters that stand for bytes in files, as other programs number bytes.
    for (std::uint32_t c = 0; c < detail::byte_alphabet_end; ++c)
      if (int const byte = detail::byte_of_character(c); byte >= 0) {
        ids[byte] = int(v.tokens.size());
        v.tokens.emplace_back(1, char(byte));
      }
    detail::pair_merger words(counts_, ids);
    std::unordered_map<std::string, int> known;
    for (std::size_t i = 0; i < v.tokens.size(); ++i) known.emplace(v.tokens[i], int(i));
    detail::token_pair best;
    while (v.tokens.size() < std::size_t(vocabulary) && words.find_best(best)) {
      std::string token = v.tokens[best.first] + v.tokens[best.second];
      auto const [at, is_new] = known.emplace(token, int(v.tokens.size()));
      if (is_new) v.tokens.push_back(std::move(token));
      v.merges.emplace_back(int(best.first), int(best.second));
      words.merge(best, std::uint32_t(at->second));
    }
    return byte_pair_tokenizer(std::move(v));
  }

 private:
  /// A hash of views, so that a piece is looked up without a copy.
  struct hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::unordered_map<std::string, long, hash, std::equal_to<>> counts_;
};

}  // namespace pp
