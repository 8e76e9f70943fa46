// SPDX-License-Identifier: BSL-1.0
//
// Byte-pair encoding on bytes, as GPT-2 and its relatives encode texts: every text has tokens, and
// tokens give back the text. A vocabulary is read from a hub's files (tokenizer_file.hpp) or
// learned from texts (learn_byte_pairs.hpp).
//
// source: Sennrich et al., "Neural machine translation of rare words with subword units", ACL 2016
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <cstddef>
#include <cstdint>
#include <queue>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/base/utf8.hpp>
#include <pipe/data/text_pieces.hpp>

namespace pp {

/// The data of a byte_pair_tokenizer.
struct byte_pair_vocabulary {
  std::vector<std::string> tokens;          ///< bytes of each token, by id
  std::vector<std::pair<int, int>> merges;  ///< ids of pairs that become one token, best first
  /// Ids of tokens that stand for themselves: a text is cut at them before all else.
  std::vector<int> special;
  text_split split = text_split::gpt2;
  /// A piece that is a token becomes that token, also where merges would make other tokens of the
  /// piece.
  bool whole_pieces = false;
};

/// Texts as ids of tokens, and back.
///
/// law: decode(encode(text)) == text, for any bytes
class byte_pair_tokenizer {
 public:
  /// throws: data_error if a byte is no token, two tokens are the same, or a merge makes no token
  explicit byte_pair_tokenizer(byte_pair_vocabulary of) : of_(std::move(of)) {
    for (std::size_t i = 0; i < of_.tokens.size(); ++i)
      if (!ids_.emplace(of_.tokens[i], int(i)).second)
        throw data_error("byte_pair_tokenizer: the token " + detail::in_quotes(of_.tokens[i]) +
                         " is there twice");
    for (int b = 0; b < 256; ++b) {
      bytes_[b] = id_of(std::string(1, char(b)));
      if (bytes_[b] < 0)
        throw data_error("byte_pair_tokenizer: byte " + std::to_string(b) + " is no token");
    }
    for (std::size_t rank = 0; rank < of_.merges.size(); ++rank) {
      auto const [a, b] = of_.merges[rank];
      if (a < 0 || b < 0 || a >= vocabulary() || b >= vocabulary())
        throw data_error("byte_pair_tokenizer: merge " + std::to_string(rank) +
                         " has an id that is not in the vocabulary");
      int const made = id_of(of_.tokens[std::size_t(a)] + of_.tokens[std::size_t(b)]);
      if (made < 0)
        throw data_error("byte_pair_tokenizer: merge " + std::to_string(rank) +
                         " makes no token of the vocabulary");
      merges_.emplace(key(a, b), merge{std::uint32_t(rank), made});  // the first of equal merges
    }
    for (int const id : of_.special) {
      if (id < 0 || id >= vocabulary() || of_.tokens[std::size_t(id)].empty())
        throw data_error("byte_pair_tokenizer: special token " + std::to_string(id) +
                         " is no token");
      std::uint32_t at = 0;
      for (char const c : of_.tokens[std::size_t(id)]) {
        auto const next = std::uint32_t(special_.size());
        auto const [found, is_new] = special_after_.emplace(after(at, c), next);
        if (is_new) special_.push_back(-1);
        at = found->second;
      }
      special_[at] = id;
    }
  }

  /// Number of tokens: ids are below it.
  int vocabulary() const { return int(of_.tokens.size()); }
  byte_pair_vocabulary const& of() const { return of_; }
  /// The id of the token with these bytes; -1 if there is none.
  int id_of(std::string const& token) const {
    auto const at = ids_.find(token);
    return at == ids_.end() ? -1 : at->second;
  }

  /// The ids of a text: special tokens are found first, at each place the longest; then the pieces
  /// between special tokens are encoded, each by itself.
  ///
  /// cost: n log n for pieces of n bytes
  std::vector<int> encode(std::string_view text) const {
    std::vector<int> ids;
    std::size_t begin = 0;
    for (std::size_t at = 0; at < text.size();) {
      int const id = special_at(text.substr(at));
      if (id < 0) {
        ++at;
        continue;
      }
      encode_ordinary(text.substr(begin, at - begin), ids);
      ids.push_back(id);
      at += of_.tokens[std::size_t(id)].size();
      begin = at;
    }
    encode_ordinary(text.substr(begin), ids);
    return ids;
  }
  /// Appends the ids of a text that is not trusted: special tokens are not looked for.
  void encode_ordinary(std::string_view text, std::vector<int>& ids) const {
    detail::for_each_piece(of_.split, text,
                           [&](std::string_view piece) { encode_piece(piece, ids); });
  }

  /// The bytes of tokens. The bytes of a part of a text's tokens may end within a character of
  /// UTF-8.
  ///
  /// throws: data_error for an id outside of the vocabulary
  std::string decode(std::span<int const> ids) const {
    std::string text;
    for (int const id : ids) {
      if (id < 0 || id >= vocabulary())
        throw data_error("byte_pair_tokenizer: token " + std::to_string(id) +
                         ", expected an id in [0, " + std::to_string(vocabulary()) + ")");
      text += of_.tokens[std::size_t(id)];
    }
    return text;
  }

 private:
  /// The rank of a pair, 0 the best, and the id of the token that it becomes.
  struct merge {
    std::uint32_t rank;
    int made;
  };
  static std::uint64_t key(int a, int b) {
    return std::uint64_t(std::uint32_t(a)) << 32 | std::uint32_t(b);
  }

  static std::uint64_t after(std::uint32_t beginning, char c) {
    return std::uint64_t(beginning) << 8 | static_cast<unsigned char>(c);
  }
  /// The longest special token that a text begins with; -1 if there is none.
  ///
  /// cost: the number of characters that the text has in common with a special token, however many
  /// special tokens there are
  int special_at(std::string_view text) const {
    int longest = -1;
    std::uint32_t at = 0;
    for (char const c : text) {
      auto const next = special_after_.find(after(at, c));
      if (next == special_after_.end()) break;
      at = next->second;
      if (special_[at] >= 0) longest = special_[at];
    }
    return longest;
  }

  /// Merges the pair of lowest rank, the leftmost of equal pairs, until no pair is left.
  void encode_piece(std::string_view piece, std::vector<int>& ids) const {
    if (of_.whole_pieces)
      if (int const id = id_of(std::string(piece)); id >= 0) return ids.push_back(id);
    struct part {
      int id;  // -1: merged into the token before
      long before, after;
    };
    std::vector<part> parts;
    for (std::size_t i = 0; i < piece.size(); ++i)
      parts.push_back({bytes_[static_cast<unsigned char>(piece[i])], long(i) - 1, long(i) + 1});
    long const end = long(parts.size());
    // Rank and place of a pair, and its ids when the pair was entered: since then the pair may have
    // been merged away.
    using candidate = std::tuple<std::uint32_t, long, int, int>;
    std::priority_queue<candidate, std::vector<candidate>, std::greater<>> best;
    auto const enter = [&](long at) {
      if (at < 0 || parts[std::size_t(at)].after == end) return;
      int const a = parts[std::size_t(at)].id,
                b = parts[std::size_t(parts[std::size_t(at)].after)].id;
      if (auto const known = merges_.find(key(a, b)); known != merges_.end())
        best.emplace(known->second.rank, at, a, b);
    };
    for (long i = 0; i < end; ++i) enter(i);
    while (!best.empty()) {
      auto const [rank, at, a, b] = best.top();
      best.pop();
      part& left = parts[std::size_t(at)];
      if (left.id != a || left.after == end || parts[std::size_t(left.after)].id != b) continue;
      part& right = parts[std::size_t(left.after)];
      left.id = merges_.find(key(a, b))->second.made;
      left.after = right.after;
      right.id = -1;
      if (left.after < end) parts[std::size_t(left.after)].before = at;
      enter(left.before);
      enter(at);
    }
    for (part const& p : parts)
      if (p.id >= 0) ids.push_back(p.id);
  }

  byte_pair_vocabulary of_;
  std::unordered_map<std::string, int> ids_;
  std::unordered_map<std::uint64_t, merge> merges_;
  int bytes_[256] = {};
  // By number of a beginning of special tokens, 0 the empty beginning: the id of the token that the
  // beginning is, or -1; and the number of the beginning with one more character.
  std::vector<int> special_{-1};
  std::unordered_map<std::uint64_t, std::uint32_t> special_after_;
};

}  // namespace pp
