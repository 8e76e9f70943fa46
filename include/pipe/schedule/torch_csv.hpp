// SPDX-License-Identifier: BSL-1.0
//
// Schedules in the CSV format of PyTorch (torch.distributed.pipelining): a line per rank, an action
// per cell, `2F0` for the forward of stage 2 and micro-batch 0; I is the input gradient, W the
// weight gradient, B both. A stage of PyTorch is a chunk here.
#pragma once

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/schedule/communication.hpp>
#include <pipe/schedule/dynamic_table.hpp>

namespace pp {

namespace detail {

/// `2F0`, `1B3`, `1I3`, `1W3`; empty for actions without a name in PyTorch: recompute and update.
inline std::string torch_name(action const& a) {
  char const letter = a.kind == action_kind::forward           ? 'F'
                      : a.kind == action_kind::backward        ? 'B'
                      : a.kind == action_kind::backward_input  ? 'I'
                      : a.kind == action_kind::backward_weight ? 'W'
                                                               : ' ';
  if (letter == ' ') return {};
  return std::to_string(a.chunk) + letter + std::to_string(a.micro_batch);
}

/// `0SEND_F1` where stage 0 sends the output of micro-batch 1, `1RECV_F1` where stage 1 receives
/// it; SEND_B and RECV_B for gradients.
inline std::string torch_name(rank_step const& s) {
  if (s.kind == step_kind::compute) return torch_name(s.of);
  bool const is_forward = s.of.kind == action_kind::forward, sends = s.kind == step_kind::send;
  int const stage = sends ? s.of.chunk : is_forward ? s.of.chunk + 1 : s.of.chunk - 1;
  return std::to_string(stage) + (sends ? "SEND_" : "RECV_") + (is_forward ? 'F' : 'B') +
         std::to_string(s.of.micro_batch);
}

}  // namespace detail

/// A table, or the steps of communicate(), as CSV text: a line per rank.
template <class Rows>
std::string torch_csv(Rows const& rows) {
  std::string text;
  for (int rank = 0; rank < rows.ranks(); ++rank) {
    bool first = true;
    for (int i = 0; i < rows.size(rank); ++i) {
      std::string word = detail::torch_name(rows.at(rank, i));
      if (word.empty()) continue;
      if constexpr (requires { rows.at(rank, i).with_next; })
        if (rows.at(rank, i).with_next && i + 1 < rows.size(rank))
          word = "(" + word + ";" + detail::torch_name(rows.at(rank, ++i)) + ")OVERLAP_F_B";
      if (!first) text += ',';
      text += word;
      first = false;
    }
    text += '\n';
  }
  return text;
}

/// A parsed schedule: its table with the placement, and its size.
struct read_schedule {
  dynamic_table table{0};
  int chunks = 0, micro_batches = 0;
};

namespace torch_format {

/// A place in the text, counted from 1.
struct place {
  int line = 1, column = 1;
};
/// Throws data_error with the place and the reason.
[[noreturn]] inline void refuse(place at, std::string_view why) {
  throw data_error("line " + std::to_string(at.line) + ", column " + std::to_string(at.column) +
                   ": " + std::string(why));
}

/// Limits on the numbers of a text, so that a short hostile one cannot ask for much memory.
inline constexpr int most_chunks = 1 << 20, most_micro_batches = 1 << 24;

/// Text of a file for a message: bytes other than printable ASCII as \xNN, cut after 40 bytes.
inline std::string printable(std::string_view text) {
  constexpr std::size_t most = 40;
  constexpr char digits[] = "0123456789abcdef";
  std::string safe;
  for (char const c : text.substr(0, most)) {
    auto const byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7F)
      safe += c;
    else
      ((safe += "\\x") += digits[byte >> 4]) += digits[byte & 15];
  }
  return text.size() > most ? safe + "..." : safe;
}

/// Parses a number in [0, most) at the beginning of `text`, and removes it from `text`.
///
/// throws: data_error
inline int number(std::string_view& text, int most, place at, std::string const& of_what) {
  std::string_view const digits = text.substr(0, text.find_first_not_of("0123456789"));
  if (digits.empty()) refuse(at, "expected the number of " + of_what);
  int value = 0;
  auto const fault = std::from_chars(digits.data(), digits.data() + digits.size(), value).ec;
  if (fault != std::errc{} || value >= most)
    refuse(at, of_what + " " + printable(digits) + " is too large");
  text.remove_prefix(digits.size());
  return value;
}

/// Parses one action; none for transfers, which follow from the other actions, and for operations
/// on sharded parameters.
inline std::optional<action> parse(std::string_view word, place at) {
  struct kind_name {
    std::string_view word;
    std::optional<action_kind> kind;
    bool has_micro_batch;
  };
  static constexpr kind_name kinds[] = {{"SEND_F", {}, true},
                                        {"RECV_F", {}, true},
                                        {"SEND_B", {}, true},
                                        {"RECV_B", {}, true},
                                        {"UNSHARD", {}, false},
                                        {"RESHARD", {}, false},
                                        {"REDUCE_GRAD", {}, false},
                                        {"F", action_kind::forward, true},
                                        {"B", action_kind::backward, true},
                                        {"I", action_kind::backward_input, true},
                                        {"W", action_kind::backward_weight, true}};
  std::string_view rest = word;
  int const chunk = number(rest, most_chunks, at, "a stage");
  for (kind_name const& k : kinds)
    if (rest.substr(0, k.word.size()) == k.word) {
      rest.remove_prefix(k.word.size());
      int const mb = k.has_micro_batch || !rest.empty()
                         ? number(rest, most_micro_batches, at, "a micro-batch")
                         : 0;
      if (!rest.empty()) refuse(at, "'" + printable(word) + "' goes on after its micro-batch");
      return k.kind ? std::optional(action{*k.kind, chunk, mb}) : std::nullopt;
    }
  refuse(at, "'" + printable(word) +
                 "' is no action that is known here: F, B, I, W, SEND_F, RECV_F, SEND_B, RECV_B, "
                 "UNSHARD, RESHARD, "
                 "REDUCE_GRAD, (...;...)OVERLAP_F_B");
}

/// Calls use(action, place) for the actions of a cell: one, or several in brackets. Two that may be
/// a pair are one, with the forward first; others run one after the other.
template <class Use>
void for_each_in_cell(std::string_view cell, place at, Use use) {
  if (cell.front() != '(') {
    if (auto const a = parse(cell, at)) use(*a, at);
    return;
  }
  std::size_t const close = cell.find(')');
  if (close == cell.npos || cell.substr(close + 1) != "OVERLAP_F_B")
    refuse(at, "'" + printable(cell) + "' does not end with )OVERLAP_F_B");
  std::vector<std::pair<action, place>> found;
  for (std::size_t begin = 1; begin <= close;) {
    std::size_t const end = std::min(cell.find(';', begin), close);
    place const where{at.line, at.column + int(begin)};
    if (auto const a = parse(cell.substr(begin, end - begin), where)) found.push_back({*a, where});
    begin = end + 1;
  }
  if (found.size() == 2) {
    if (detail::makes_pair(found[1].first, found[0].first)) std::swap(found[0], found[1]);
    found[0].first.with_next = detail::makes_pair(found[0].first, found[1].first);
  }
  for (auto const& [a, where] : found) use(a, where);
}

/// Calls new_rank() for every line, and use(action, place) for each of its actions.
template <class NewRank, class Use>
void for_each_action(std::string_view text, NewRank new_rank, Use use) {
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF", blank = " \t\r";
  if (text.substr(0, byte_order_mark.size()) == byte_order_mark)
    text.remove_prefix(byte_order_mark.size());
  text = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
  for (int number = 1; !text.empty(); ++number) {
    std::string_view const line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    new_rank();
    for (std::size_t begin = 0; begin <= line.size();) {
      std::size_t const end = std::min(line.find(',', begin), line.size());
      std::string_view cell = line.substr(begin, end - begin);
      cell = cell.substr(0, cell.find_last_not_of(blank) + 1);
      std::size_t const spaces = std::min(cell.find_first_not_of(blank), cell.size());
      if (spaces < cell.size())
        for_each_in_cell(cell.substr(spaces), place{number, int(begin + spaces) + 1}, use);
      begin = end + 1;
    }
  }
}

/// The placements that a text may have; it does not name its own.
inline constexpr std::pair<placement, char const*> placements[] = {
    {placement::straight, "straight"},
    {placement::loop, "loop"},
    {placement::vee, "vee"},
    {placement::bidirectional, "bidirectional"}};

/// The placement with the fewest actions on a wrong rank, and their number; no name if no placement
/// has this number of stages.
struct best_placement {
  placement where = placement::straight;
  char const* name = nullptr;
  long misplaced = LONG_MAX;
};
inline best_placement placement_of(read_schedule const& s) {
  int const ranks = s.table.ranks();
  best_placement best;
  for (auto const& [where, name] : placements) {
    bool const one = where == placement::straight || where == placement::bidirectional;
    if (one ? s.chunks != ranks : s.chunks % ranks != 0) continue;
    long misplaced = 0;
    for (int rank = 0; rank < ranks; ++rank)
      for (action const& a : s.table.row(rank))
        misplaced += rank_of(where, ranks, a.chunk, a.micro_batch) != rank;
    if (misplaced < best.misplaced) best = {where, name, misplaced};
    if (misplaced == 0) break;
  }
  return best;
}

/// Throws a data_error that names the first action whose stage cannot be on its rank.
[[noreturn]] inline void refuse_stage(std::string_view text, read_schedule const& s,
                                      best_placement const& best) {
  int const ranks = s.table.ranks();
  int rank = -1;
  for_each_action(
      text, [&] { ++rank; },
      [&](action const& a, place at) {
        if (best.name == nullptr) {
          if (a.chunk == s.chunks - 1)
            refuse(at, std::to_string(s.chunks) + " stages on " + std::to_string(ranks) +
                           " ranks: no placement known here (straight, loop, vee, bidirectional) "
                           "has as many");
        } else if (int const holder = rank_of(best.where, ranks, a.chunk, a.micro_batch);
                   holder != rank) {
          refuse(at, "stage " + std::to_string(a.chunk) + " cannot be on rank " +
                         std::to_string(rank) + ": " + best.name +
                         ", the placement that fits best, has it on rank " +
                         std::to_string(holder));
        }
      });
  refuse({}, "its stages are on no ranks");
}

}  // namespace torch_format

/// Parses CSV text. Empty cells are idle time and are ignored; a line without actions is a rank
/// without actions, except at the end of the text. Transfers are ignored, since they follow from
/// the actions, and so are operations on sharded parameters (UNSHARD, RESHARD, REDUCE_GRAD).
/// `(0F1;1B0)OVERLAP_F_B` is a pair. The schedule is not validated: call `validate`.
///
/// law:    read_torch_csv(torch_csv(table)) has the same actions in the same order, if the last
///         rank has any
/// throws: data_error with line, column and reason, in printable characters
inline read_schedule read_torch_csv(std::string_view text) {
  read_schedule s;
  bool any_backward = false;
  torch_format::for_each_action(
      text, [&] { s.table.items.emplace_back(); },
      [&](action const& a, torch_format::place) {
        s.table.items.back().push_back(a);
        s.chunks = std::max(s.chunks, a.chunk + 1);
        s.micro_batches = std::max(s.micro_batches, a.micro_batch + 1);
        any_backward = any_backward || a.kind != action_kind::forward;
      });
  if (s.chunks == 0) torch_format::refuse({}, "expected at least 1 action, found none");
  s.table.trains = any_backward;
  auto const best = torch_format::placement_of(s);
  if (best.name == nullptr || best.misplaced > 0) torch_format::refuse_stage(text, s, best);
  s.table.where = best.where;
  return s;
}

}  // namespace pp
