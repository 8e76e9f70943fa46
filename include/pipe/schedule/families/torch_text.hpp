// SPDX-License-Identifier: BSL-1.0
//
// The scanner of PyTorch's CSV format of schedules, for texts in a program, which the compiler
// reads, and for files. A cell is `2F0`, `2WAIT_SEND_F0`, `(0F1;1B0)OVERLAP_F_B` or nothing.
#pragma once

#include <cstddef>
#include <string_view>

#include <pipe/schedule/action.hpp>
#include <pipe/schedule/pairs.hpp>
#include <pipe/schedule/placement.hpp>

namespace pp {

namespace schedules {

/// The reasons why a text is no schedule in PyTorch's format.
enum class csv_fault : unsigned char {
  none,
  no_action,              ///< in the whole text
  stage_expected,         ///< a cell without the number of its stage
  stage_too_large,        ///< 2^20 or more
  micro_batch_expected,   ///< a cell without the number of its micro-batch
  micro_batch_too_large,  ///< 2^24 or more
  unknown_action,         ///< a word between the numbers that is none of known_words
  goes_on,                ///< a cell that does not end after its action
  pair_not_closed,        ///< a bracket without its )OVERLAP_F_B
  quote_not_closed,       ///< a cell that begins with a quote and does not end with one
  no_placement,           ///< the stages are no number that a placement has on these ranks
  wrong_rank              ///< a stage on a rank where the best placement does not have it
};

}  // namespace schedules

namespace torch_format {

/// A place in the text, counted from 1.
struct place {
  int line = 1, column = 1;
};

/// The first fault of a text, or none. word: the part of the text that is wrong
struct finding {
  schedules::csv_fault what = schedules::csv_fault::none;
  place at{};
  std::string_view word{};
  constexpr bool ok() const { return what == schedules::csv_fault::none; }
};

/// Limits on the numbers of a text, so that a short hostile text cannot ask for much memory.
inline constexpr int most_chunks = 1 << 20, most_micro_batches = 1 << 24;

/// The meaning of a word. is_compute: the word is an action of a table. Other words are transfers
/// and waits for transfers, which follow from the actions, or are about sharded parameters
struct known_word {
  std::string_view word;
  schedules::action_kind kind = schedules::action_kind::forward;
  bool is_compute = false, has_micro_batch = true;
};
inline constexpr known_word known_words[] = {{"F", schedules::action_kind::forward, true},
                                             {"B", schedules::action_kind::backward, true},
                                             {"I", schedules::action_kind::backward_input, true},
                                             {"W", schedules::action_kind::backward_weight, true},
                                             {"SEND_F"},
                                             {"RECV_F"},
                                             {"SEND_B"},
                                             {"RECV_B"},
                                             {"WAIT_SEND_F"},
                                             {"WAIT_SEND_B"},
                                             {"UNSHARD", {}, false, false},
                                             {"RESHARD", {}, false, false},
                                             {"REDUCE_GRAD", {}, false, false},
                                             {"WAIT_REDUCE_GRAD", {}, false, false}};

/// The meaning of a word; null for an unknown one. Compilers count each step here.
constexpr known_word const* find_word(std::string_view word) {
  for (known_word const& known : known_words)
    if (known.word.size() == word.size() && known.word[0] == word[0] && known.word == word)
      return &known;
  return nullptr;
}

/// One pass over a text, without memory of its own, so that a compiler can run it. Every position
/// is read once, but for the words of messages.
///
/// NewRank: void(), for each line up to the last with a cell that is not empty
/// Use:     void(action, place), for each action of the line; of a cell with two that may be a pair
///          the forward first, marked
/// law:     after a fault neither function is called again
template <class NewRank, class Use>
class scanner {
 public:
  /// The text begins with line `number`; new_rank knows the lines before. A byte-order mark before
  /// line 1 is passed over.
  constexpr scanner(std::string_view text, NewRank new_rank, Use use, int number)
      : next_(text.data()), end_(text.data() + text.size()), line_(next_), new_rank_(new_rank),
        use_(use), number_(number), ranks_(number - 1) {
    constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
    if (number == 1 && text.substr(0, 3) == byte_order_mark) line_ = next_ += 3;
  }

  /// Reads the whole text, or up to its first fault, which is returned.
  constexpr finding scan() {
    while (found_.ok() && next_ != end_) {
      char const c = *next_;
      if (c == '\n' || c == '\r') {
        if (c == '\r' && next_ + 1 != end_ && next_[1] == '\n') ++next_;
        line_ = ++next_;
        ++number_;
      } else if (is_separator(c) || c == ' ') {
        ++next_;
      } else {
        read_cell();
      }
    }
    return found_;
  }

 private:
  // Commas separate cells; spreadsheets also write semicolons and tabs.
  static constexpr bool is_separator(char c) { return c == ',' || c == ';' || c == '\t'; }

  // The end of the text is no such character, so no caller need ask whether the text has ended.
  constexpr bool is_next(char c) const { return next_ != end_ && *next_ == c; }
  constexpr bool is_line_end() const { return next_ == end_ || *next_ == '\n' || *next_ == '\r'; }
  constexpr void skip_spaces() {
    while (is_next(' ')) ++next_;
  }
  /// The place of a character of the current line.
  constexpr place at(char const* p) const { return {number_, int(p - line_) + 1}; }

  /// Records a fault at `from`, with the text up to the end of its part of the cell, or of the
  /// cell.
  constexpr bool refuse(schedules::csv_fault what, char const* from, bool whole_cell = false) {
    char const* to = from;
    auto const ends = [&](char c) {
      if (c == '\n' || c == '\r' || c == '"') return true;
      if (is_pair_ && !whole_cell && (c == ';' || c == ')')) return true;
      return !is_quoted_ && (c == ',' || c == '\t' || (c == ';' && !is_pair_));
    };
    while (to != end_ && !ends(*to)) ++to;
    while (to != from && to[-1] == ' ') --to;
    found_ = {what, at(from), {from, std::size_t(to - from)}};
    return false;
  }

  /// Reads a number in [0, most); -1 after a fault, which names the text from `from` on. Once a
  /// number is too large its further digits are passed over, so that nothing overflows.
  constexpr int read_number(int most, schedules::csv_fault missing, schedules::csv_fault too_large,
                            char const* from) {
    char const* const first = next_;
    long value = 0;
    for (; next_ != end_ && *next_ >= '0' && *next_ <= '9'; ++next_)
      if (value < most) value = 10 * value + (*next_ - '0');
    if (next_ != first && value < most) return int(value);
    if (next_ == first)
      refuse(missing, from);
    else
      found_ = {too_large, at(from), {first, std::size_t(next_ - first)}};
    return -1;
  }

  /// Reads an action, and adds the action to the cell's if tables have such actions. False: a
  /// fault.
  constexpr bool read_action() {
    char const* const from = next_;
    int const chunk = read_number(most_chunks, schedules::csv_fault::stage_expected,
                                  schedules::csv_fault::stage_too_large, from);
    if (chunk < 0) return false;
    char const* const letters = next_;
    while (next_ != end_ && ((*next_ >= 'A' && *next_ <= 'Z') || *next_ == '_')) ++next_;
    std::string_view const word(letters, std::size_t(next_ - letters));
    known_word const* const known = find_word(word);
    if (known == nullptr) return refuse(schedules::csv_fault::unknown_action, from);
    int micro_batch = 0;
    if (known->has_micro_batch || !ends_part()) {
      micro_batch = read_number(most_micro_batches, schedules::csv_fault::micro_batch_expected,
                                schedules::csv_fault::micro_batch_too_large, from);
      if (micro_batch < 0) return false;
    }
    skip_spaces();
    if (!ends_part()) return refuse(schedules::csv_fault::goes_on, from);
    if (known->is_compute) add({known->kind, chunk, micro_batch}, at(from));
    return true;
  }
  /// Whether the cell, or the part of a pair, ends here.
  constexpr bool ends_part() const {
    if (is_line_end()) return true;
    char const c = *next_;
    if (is_pair_) return c == ';' || c == ')' || c == ',' || c == ' ';
    return c == ' ' || (is_quoted_ ? c == '"' : is_separator(c));
  }

  /// Adds an action of the cell: the first two wait for the end of the cell.
  constexpr void add(schedules::action const& a, place where) {
    if (count_ < 2) {
      of_cell_[count_] = a;
      place_of_[count_++] = where;
      return;
    }
    use_cell();
    count_ = 3;
    use_(a, where);
  }
  /// Hands on the waiting actions of a cell. Two actions that may be a pair are a pair, with the
  /// forward first; other actions run one after the other.
  constexpr void use_cell(bool are_all = false) {
    if (count_ == 2 && are_all) {
      if (detail::makes_pair(of_cell_[1], of_cell_[0])) {
        schedules::action const backward = of_cell_[0];
        place const where = place_of_[0];
        of_cell_[0] = of_cell_[1];
        place_of_[0] = place_of_[1];
        of_cell_[1] = backward;
        place_of_[1] = where;
      }
      of_cell_[0].with_next = detail::makes_pair(of_cell_[0], of_cell_[1]);
    }
    for (int i = 0; i < count_ && count_ < 3; ++i) use_(of_cell_[i], place_of_[i]);
  }

  /// Reads `(...;...)OVERLAP_F_B`. False: a fault.
  constexpr bool read_pair() {
    constexpr std::string_view ending = ")OVERLAP_F_B";
    char const* const from = next_;
    is_pair_ = true;
    char const* close = next_;
    while (close != end_ && *close != ')' && *close != '\n' && *close != '\r') ++close;
    if (std::string_view(close, std::size_t(end_ - close)).substr(0, ending.size()) != ending)
      return refuse(schedules::csv_fault::pair_not_closed, from, true);
    do {
      ++next_;
      skip_spaces();
      if (!read_action()) return false;
    } while (is_next(';'));
    if (next_ != close) return refuse(schedules::csv_fault::pair_not_closed, from, true);
    next_ += ending.size();
    is_pair_ = false;
    skip_spaces();
    return ends_part() || refuse(schedules::csv_fault::pair_not_closed, from, true);
  }

  /// Reads a cell, which may be quoted: an action, a pair or nothing. Lines since the last one with
  /// a cell that is not empty become ranks without actions.
  constexpr void read_cell() {
    char const* const from = next_;
    is_quoted_ = is_next('"');
    is_pair_ = false;
    count_ = 0;
    if (is_quoted_) {
      ++next_;
      skip_spaces();
    }
    bool const is_empty = is_quoted_ && is_next('"');
    for (; !is_empty && ranks_ < number_; ++ranks_) new_rank_();
    if (!is_empty && !(is_next('(') ? read_pair() : read_action())) return;
    if (is_quoted_) {
      if (!is_next('"')) return void(refuse(schedules::csv_fault::quote_not_closed, from));
      ++next_;
      is_quoted_ = false;
      skip_spaces();
      if (!ends_part()) return void(refuse(schedules::csv_fault::quote_not_closed, from));
    }
    use_cell(true);
  }

  char const *next_, *end_, *line_;  // line_: where the current line begins
  NewRank new_rank_;
  Use use_;
  int number_, ranks_;  // the line's number; the number of lines that new_rank_ knows
  bool is_quoted_ = false, is_pair_ = false;
  schedules::action of_cell_[2]{};
  place place_of_[2]{};
  int count_ = 0;  // 3: more than two actions, which are no pair
  finding found_{};
};

/// Calls new_rank() for every line, and use(action, place) for each action of the line. Returns the
/// first fault of the text, or none. number: the number of the text's first line
template <class NewRank, class Use>
constexpr finding scan(std::string_view text, NewRank new_rank, Use use, int number = 1) {
  return scanner<NewRank, Use>(text, new_rank, use, number).scan();
}

/// The placements that a text may have; a text does not name its placement.
struct named_placement {
  schedules::placement where;
  char const* name;
};
inline constexpr named_placement placements[] = {
    {schedules::placement::straight, "straight"},
    {schedules::placement::loop, "loop"},
    {schedules::placement::vee, "vee"},
    {schedules::placement::bidirectional, "bidirectional"}};

/// The placement with the fewest actions on a wrong rank, and the number of those actions; no name
/// if no placement has this number of stages.
struct best_placement {
  schedules::placement where = schedules::placement::straight;
  char const* name = nullptr;
  long misplaced = 0;
};
/// rows: a table's lists of actions by rank, as of static_rows
/// cost: a look at all actions for each placement that is tried, until one fits
template <class Rows>
constexpr best_placement placement_of(Rows const& rows, int chunks) {
  int const ranks = rows.ranks();
  best_placement best;
  for (named_placement const& tried : placements) {
    if (!detail::fits(tried.where, ranks, chunks)) continue;
    long misplaced = 0;
    for (int rank = 0; rank < ranks; ++rank)
      for (int i = 0; i < rows.size(rank); ++i) {
        schedules::action const& a = rows.at(rank, i);
        misplaced += rank_of(tried.where, ranks, a.chunk, a.micro_batch) != rank;
      }
    if (best.name == nullptr || misplaced < best.misplaced)
      best = {tried.where, tried.name, misplaced};
    if (misplaced == 0) break;
  }
  return best;
}

/// The first action whose stage cannot be on its rank, or, where no placement has as many stages,
/// the first of the last stage.
struct misplaced_action {
  place at{};
  int rank = -1;
  schedules::action which{};
};
/// The first misplaced action, sought in the text once more, as tables do not keep the places of
/// their actions.
///
/// needs: the placement fits in part, or not at all
constexpr misplaced_action find_misplaced(std::string_view text, int ranks, int chunks,
                                          best_placement const& best) {
  misplaced_action found;
  int rank = -1;
  scan(
      text, [&] { ++rank; },
      [&](schedules::action const& a, place at) {
        if (found.rank < 0 &&
            (best.name == nullptr ? a.chunk == chunks - 1
                                  : rank_of(best.where, ranks, a.chunk, a.micro_batch) != rank))
          found = {at, rank, a};
      });
  return found;
}

}  // namespace torch_format

}  // namespace pp
