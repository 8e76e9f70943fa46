// SPDX-License-Identifier: BSL-1.0
//
// Messages in many languages: those of the catalogues on this machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

/// A message in all languages that have it.
struct message {
  std::vector<std::pair<int, std::string>> texts;  ///< language and text; the first is English
};

/// A text to translate, and its translation.
struct sentence_pair {
  int from_language, to_language;
  std::string const *from, *to;
};

class corpus {
 public:
  /// Reads all catalogues whose paths are like a pattern. languages: those to take; none: the
  /// `most` that have the most messages, or all if that is 0. Messages are the same if their
  /// originals and contexts are; one in twenty, by its original, is kept back.
  ///
  /// throws: pp::error if one of `languages` has no catalogue that can be read, if there are fewer
  ///         than 100 messages, or there is no language but English
  corpus(std::string const& pattern, std::vector<std::string> const& languages, int most);

  std::vector<std::string> const& languages() const { return languages_; }  ///< the first is "en"
  std::vector<message> const& training() const { return training_; }
  std::vector<message> const& kept_back() const { return kept_back_; }
  long files() const { return files_; }
  long left_out() const { return left_out_; }  ///< files that cannot be read, or are not UTF-8

  /// A pair for training: half of them from English, a quarter to English.
  ///
  /// law: a function of its arguments only
  sentence_pair draw(std::uint64_t seed, std::uint64_t step, std::uint64_t number) const;
  /// A pair to judge by, from English.
  sentence_pair draw_kept_back(std::uint64_t seed, std::uint64_t number) const;

 private:
  /// Keeps the first of the languages by their numbers of messages.
  void keep_languages(std::vector<message>& all, int most);

  std::vector<std::string> languages_;
  std::vector<message> training_, kept_back_;
  long files_ = 0, left_out_ = 0;
};
