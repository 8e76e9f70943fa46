// SPDX-License-Identifier: BSL-1.0
//
// A vocabulary of byte pairs learned from texts: the most frequent pair becomes a token, again and
// again.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <queue>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/train/data/byte_alphabet.hpp>
#include <pipe/train/data/byte_pairs.hpp>

namespace pp {

/// Counts pieces of texts, and learns tokens from them.
///
///     byte_pair_learner learner;
///     for (std::string const& text : texts) learner.add(text);
///     byte_pair_tokenizer const tokenizer = learner.learned(8000, {"<end>"});
class byte_pair_learner {
 public:
  /// Counts the pieces of a text. Texts are not kept.
  void add(std::string_view text) {
    while (!text.empty()) {
      std::size_t const size = detail::first_piece(text);
      ++counts_[std::string(text.substr(0, size))];
      text.remove_prefix(size);
    }
  }

  /// A tokenizer of at most that many tokens: the special ones, the bytes, and pairs that occur at
  /// least twice in the texts; the most frequent first, of equally frequent ones that of the lowest
  /// ids.
  ///
  /// law:    a function of the texts, whatever their order
  /// throws: data_error for fewer tokens than special ones and bytes are
  byte_pair_tokenizer learned(int vocabulary, std::vector<std::string> const& special = {}) const {
    std::size_t const all = special.size() + 256;
    if (vocabulary < 0 || std::size_t(vocabulary) < all)
      throw data_error("byte_pair_learner: expected a vocabulary of at least " +
                       std::to_string(all) + " tokens, got " + std::to_string(vocabulary));
    byte_pair_vocabulary v;
    v.tokens = special;
    for (std::size_t i = 0; i < special.size(); ++i) v.special.push_back(int(i));
    int ids[256];
    // In the order of the characters that bytes are in files, as others number them.
    for (std::uint32_t c = 0; c < detail::byte_alphabet_end; ++c)
      if (int const byte = detail::byte_of_character(c); byte >= 0) {
        ids[byte] = int(v.tokens.size());
        v.tokens.emplace_back(1, char(byte));
      }
    state s(counts_, ids);
    std::unordered_map<std::string, int> known;
    for (std::size_t i = 0; i < v.tokens.size(); ++i) known.emplace(v.tokens[i], int(i));
    pair best;
    while (v.tokens.size() < std::size_t(vocabulary) && s.find_best(best)) {
      std::string token = v.tokens[best.first] + v.tokens[best.second];
      auto const [at, is_new] = known.emplace(token, int(v.tokens.size()));
      if (is_new) v.tokens.push_back(std::move(token));
      v.merges.emplace_back(int(best.first), int(best.second));
      s.merge(best, at->second);
    }
    return byte_pair_tokenizer(std::move(v));
  }

 private:
  using pair = std::pair<std::uint32_t, std::uint32_t>;
  static std::uint64_t key(pair p) { return std::uint64_t(p.first) << 32 | p.second; }

  /// The pieces as tokens so far, and the number of each pair.
  struct state {
    struct piece {
      std::vector<int> ids;
      long count;
    };
    struct found_pair {
      long count = 0;
      std::vector<std::uint32_t> where;  // pieces that had it when they were counted
    };
    /// A pair that may be the most frequent one. Of equal counts the lower ids are better.
    struct candidate {
      long count;  // when it was entered
      pair of;
      bool operator<(candidate const& other) const {
        return count != other.count ? count < other.count : of > other.of;
      }
    };
    std::vector<piece> pieces;
    std::unordered_map<std::uint64_t, found_pair> pairs;
    std::priority_queue<candidate> candidates;

    state(std::unordered_map<std::string, long> const& counts, int const (&ids)[256]) {
      for (auto const& [text, count] : counts) {
        piece p{{}, count};
        for (char const c : text) p.ids.push_back(ids[static_cast<unsigned char>(c)]);
        pieces.push_back(std::move(p));
      }
      for (std::size_t i = 0; i < pieces.size(); ++i) {
        count_pairs(i, 1);
        for_each_pair(pieces[i], [&](pair p) { enter(i, p); });
      }
      for (auto const& [k, found] : pairs)
        candidates.push({found.count, {std::uint32_t(k >> 32), std::uint32_t(k)}});
    }

    template <class Use>
    static void for_each_pair(piece const& p, Use const& use) {
      for (std::size_t i = 1; i < p.ids.size(); ++i)
        use(pair{std::uint32_t(p.ids[i - 1]), std::uint32_t(p.ids[i])});
    }
    /// Adds the pairs of piece i to the counts, or takes them out.
    void count_pairs(std::size_t i, long sign) {
      for_each_pair(pieces[i], [&](pair p) { pairs[key(p)].count += sign * pieces[i].count; });
    }
    /// Notes that piece i has a pair. Noted twice it is only in a row: see merge().
    void enter(std::size_t i, pair p) {
      found_pair& found = pairs[key(p)];
      if (found.where.empty() || found.where.back() != i) found.where.push_back(std::uint32_t(i));
    }
    /// The most frequent pair; false if none is there twice.
    bool find_best(pair& best) {
      while (!candidates.empty()) {
        candidate const top = candidates.top();
        candidates.pop();
        long const now = pairs[key(top.of)].count;
        if (now < 2) continue;
        best = top.of;
        if (now == top.count) return true;
        candidates.push({now, top.of});
      }
      return false;
    }
    /// Makes one token of a pair wherever it is.
    ///
    /// cost: linear in the pieces that have it
    void merge(pair const& of, int made) {
      std::vector<std::uint32_t> const where = std::move(pairs[key(of)].where);
      std::vector<pair> made_pairs;
      for (std::uint32_t const i : where) {
        std::vector<int>& ids = pieces[i].ids;
        count_pairs(i, -1);
        std::size_t to = 0;
        for (std::size_t from = 0; from < ids.size(); ++from) {
          bool const is_pair = from + 1 < ids.size() && std::uint32_t(ids[from]) == of.first &&
                               std::uint32_t(ids[from + 1]) == of.second;
          ids[to++] = is_pair ? made : ids[from];
          from += is_pair;
        }
        ids.resize(to);
        count_pairs(i, 1);
        // Only pairs with the new token are new; others become rarer, which is noticed when they
        // are the best.
        for_each_pair(pieces[i], [&](pair p) {
          if (int(p.first) != made && int(p.second) != made) return;
          enter(i, p);
          made_pairs.push_back(p);
        });
      }
      std::sort(made_pairs.begin(), made_pairs.end());
      made_pairs.erase(std::unique(made_pairs.begin(), made_pairs.end()), made_pairs.end());
      for (pair const& p : made_pairs) candidates.push({pairs[key(p)].count, p});
    }
  };

  std::unordered_map<std::string, long> counts_;
};

}  // namespace pp
