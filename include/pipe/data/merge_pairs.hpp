// SPDX-License-Identifier: BSL-1.0
//
// Words as lists of tokens in which the most frequent pair of neighbours becomes one token, again
// and again: the counts and the places of all pairs.
//
// A merge looks at the places of its pair alone, and not at the words. A token knows the token
// before and the token after, so that a merge changes three counts at each place. A queue has the
// pairs with the counts that they had when they last became more frequent. A pair that has become
// rarer since then is entered again, with its count, when it comes first in the queue.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <queue>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>

namespace pp::detail {

/// A pair of ids.
using token_pair = std::pair<std::uint32_t, std::uint32_t>;

/// The words of some texts with the number of each, as tokens so far.
///
/// cost: n log n for all merges of words of n bytes, as each merge makes the words shorter
/// memory: 16 bytes for each byte of the words, and 4 for each place of a pair
/// source: Sennrich, Haddow and Birch, 2016, for the rule; the lists and the queue are ours
class pair_merger {
 public:
  /// ids: the id of each byte
  ///
  /// throws: data_error for 2^32 bytes or more
  template <class Words>
  pair_merger(Words const& words, int const (&ids)[256]) {
    for (auto const& [text, count] : words) {
      if (text.size() >= none - tokens_.size())
        throw data_error("byte_pair_learner: expected less than 2^32 bytes of distinct words");
      std::size_t const begin = tokens_.size();
      counts_.push_back(count);
      for (char const c : text) {
        auto const at = std::uint32_t(tokens_.size());
        tokens_.push_back({std::uint32_t(ids[static_cast<unsigned char>(c)]),
                           at == begin ? none : at - 1, at + 1, std::uint32_t(counts_.size() - 1)});
      }
      if (!text.empty()) tokens_.back().after = none;
    }
    for (std::uint32_t at = 0; at < tokens_.size(); ++at)
      if (tokens_[at].after != none) enter(at);
    for (auto const& [k, found] : pairs_)
      candidates_.push({found.count, {std::uint32_t(k >> 32), std::uint32_t(k)}});
  }

  /// Finds the most frequent pair, of equally frequent pairs that of the lowest ids. False if no
  /// pair occurs twice.
  bool find_best(token_pair& best) {
    while (!candidates_.empty()) {
      candidate const top = candidates_.top();
      candidates_.pop();
      long const now = pairs_[key(top.of)].count;
      if (now < 2) continue;
      best = top.of;
      if (now == top.count) return true;
      candidates_.push({now, top.of});
    }
    return false;
  }
  /// Makes one token of a pair at each of its places, from the left: of `aaa` the first two are
  /// merged.
  ///
  /// of: as find_best has returned it
  /// made: the id of the new token
  ///
  /// Returns the number of places that the merge has looked at.
  std::size_t merge(token_pair const& of, std::uint32_t made) {
    std::vector<std::uint32_t> where = std::move(pairs_[key(of)].where);
    std::sort(where.begin(), where.end());
    std::vector<token_pair> changed;
    for (std::uint32_t const at : where) {
      token& left = tokens_[at];
      // Since the pair was entered, it may have been merged away.
      if (left.id != of.first || left.after == none || tokens_[left.after].id != of.second)
        continue;
      token& right = tokens_[left.after];
      leave(at);
      if (left.before != none) leave(left.before);
      if (right.after != none) leave(left.after);
      left.id = made;
      left.after = right.after;
      right.id = none;
      if (left.after != none) tokens_[left.after].before = at;
      if (left.before != none) changed.push_back(enter(left.before));
      if (left.after != none) changed.push_back(enter(at));
    }
    // Only pairs with the new token are new. Other pairs become rarer, which is noticed when they
    // come first.
    std::sort(changed.begin(), changed.end());
    changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
    for (token_pair const& p : changed) candidates_.push({pairs_[key(p)].count, p});
    return where.size();
  }

 private:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  /// A pair as one number, to be hashed.
  static std::uint64_t key(token_pair p) { return std::uint64_t(p.first) << 32 | p.second; }

  /// A token of a word, at the place of its first byte; id none: merged into the token before.
  struct token {
    std::uint32_t id, before, after, word;
  };
  /// A pair that occurs, or has occurred: the sum of the counts of the words in which it occurs
  /// now.
  struct found_pair {
    long count = 0;
    std::vector<std::uint32_t> where;  // the first tokens of pairs when they were counted
  };
  /// A pair that may be the most frequent pair.
  struct candidate {
    long count;  // when the pair was entered
    token_pair of;
    bool operator<(candidate const& other) const {
      return count != other.count ? count < other.count : of > other.of;
    }
  };

  /// The pair that begins at a token, which is not the last of its word.
  token_pair pair_at(std::uint32_t at) const {
    return {tokens_[at].id, tokens_[tokens_[at].after].id};
  }
  /// Counts the pair of a token and the next one.
  token_pair enter(std::uint32_t at) {
    token_pair const of = pair_at(at);
    found_pair& found = pairs_[key(of)];
    found.count += counts_[tokens_[at].word];
    found.where.push_back(at);
    return of;
  }
  /// Takes away what enter() has counted; the place stays, and merge() passes over it.
  void leave(std::uint32_t at) { pairs_[key(pair_at(at))].count -= counts_[tokens_[at].word]; }

  std::vector<token> tokens_;
  std::vector<long> counts_;  // of words
  std::unordered_map<std::uint64_t, found_pair> pairs_;
  std::priority_queue<candidate> candidates_;
};

}  // namespace pp::detail
