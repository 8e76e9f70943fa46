// SPDX-License-Identifier: BSL-1.0
//
// Schedules as PyTorch writes and reads them (torch.distributed.pipelining): a line per rank, an action per cell, `2F0` for the
// forward of stage 2 and micro-batch 0; I is the input gradient, W the weight gradient, B both. A stage there is a chunk here.
#pragma once

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <pipe/base/error.hpp>
#include <pipe/schedule/communication.hpp>
#include <pipe/schedule/dynamic_table.hpp>

namespace pp {

/// `2F0`, `1B3`, `1I3`, `1W3`; empty for what PyTorch has no word for: recomputation and updates.
inline std::string torch_name(action const& a) {
  char const letter = a.kind == action_kind::forward           ? 'F'
                      : a.kind == action_kind::backward        ? 'B'
                      : a.kind == action_kind::backward_input  ? 'I'
                      : a.kind == action_kind::backward_weight ? 'W'
                                                               : ' ';
  if (letter == ' ') return {};
  return std::to_string(a.chunk) + letter + std::to_string(a.micro_batch);
}

/// `0SEND_F1` where stage 0 sends the output of micro-batch 1, `1RECV_F1` where stage 1 receives it; SEND_B and RECV_B for gradients.
inline std::string torch_name(rank_step const& s) {
  if (s.kind == step_kind::compute) return torch_name(s.of);
  bool const is_forward = s.of.kind == action_kind::forward, sends = s.kind == step_kind::send;
  int const stage = sends ? s.of.chunk : is_forward ? s.of.chunk + 1 : s.of.chunk - 1;
  return std::to_string(stage) + (sends ? "SEND_" : "RECV_") + (is_forward ? 'F' : 'B') +
         std::to_string(s.of.micro_batch);
}

/// Rows of actions, or of the steps that communicate() makes of them, as text.
template <class Rows>
std::string torch_csv(Rows const& rows) {
  std::string text;
  for (int rank = 0; rank < rows.ranks(); ++rank) {
    bool first = true;
    for (int i = 0; i < rows.size(rank); ++i) {
      std::string const word = torch_name(rows.at(rank, i));
      if (word.empty()) continue;
      if (!first) text += ',';
      text += word;
      first = false;
    }
    text += '\n';
  }
  return text;
}

/// A schedule that was read: its table, placement and all, and its size.
struct read_schedule {
  dynamic_table table{0};
  int chunks = 0, micro_batches = 0;
};

namespace torch_format {

struct place {
  int line = 1, column = 1;
};
[[noreturn]] inline void refuse(place at, std::string_view why) {
  throw data_error("line " + std::to_string(at.line) + ", column " + std::to_string(at.column) + ": " +
                   std::string(why));
}

inline constexpr int most_chunks = 1 << 20, most_micro_batches = 1 << 24;

/// A number from 0 to below `most` at the beginning of `text`, which is moved behind it.
inline int number(std::string_view& text, int most, place at, std::string_view of_what) {
  int value = -1;
  auto const [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc{} || end == text.data() || text.front() == '-')
    refuse(at, "expected the number of " + std::string(of_what));
  if (value >= most) refuse(at, std::string(of_what) + " " + std::to_string(value) + " is too large");
  text.remove_prefix(std::size_t(end - text.data()));
  return value;
}

/// An action; none for transfers, which follow from the others.
inline std::optional<action> parse(std::string_view word, place at) {
  struct kind_name {
    std::string_view word;
    std::optional<action_kind> kind;
  };
  static constexpr kind_name kinds[] = {{"SEND_F", {}},
                                        {"RECV_F", {}},
                                        {"SEND_B", {}},
                                        {"RECV_B", {}},
                                        {"F", action_kind::forward},
                                        {"B", action_kind::backward},
                                        {"I", action_kind::backward_input},
                                        {"W", action_kind::backward_weight}};
  std::string_view rest = word;
  int const chunk = number(rest, most_chunks, at, "a stage");
  for (kind_name const& k : kinds)
    if (rest.substr(0, k.word.size()) == k.word) {
      rest.remove_prefix(k.word.size());
      int const mb = number(rest, most_micro_batches, at, "a micro-batch");
      if (!rest.empty()) refuse(at, "'" + std::string(word) + "' goes on after its micro-batch");
      return k.kind ? std::optional(action{*k.kind, chunk, mb}) : std::nullopt;
    }
  refuse(at, "'" + std::string(word) + "' is no action that is known here: F, B, I, W, SEND_F, RECV_F, SEND_B, RECV_B");
}

/// The placement under which every action is on its rank, if there is one.
inline std::optional<placement> placement_of(read_schedule const& s) {
  int const ranks = s.table.ranks();
  for (placement where : {placement::straight, placement::loop, placement::vee, placement::bidirectional}) {
    bool const one = where == placement::straight || where == placement::bidirectional;
    if (one ? s.chunks != ranks : s.chunks % ranks != 0) continue;
    bool fits = true;
    for (int rank = 0; rank < ranks && fits; ++rank)
      for (action const& a : s.table.row(rank)) fits = fits && rank_of(where, ranks, a.chunk, a.micro_batch) == rank;
    if (fits) return where;
  }
  return std::nullopt;
}

}  // namespace torch_format

/// Reads such text. Empty cells are idle time and mean nothing; transfers are left out, since they follow from the actions.
/// Whether the schedule is a right one is for `validate` to say.
///
/// law: read_torch_csv(torch_csv(table)) has the same actions in the same order
/// throws: data_error with line, column and reason
inline read_schedule read_torch_csv(std::string_view text) {
  using torch_format::place, torch_format::refuse;
  read_schedule s;
  int rank = 0;
  place at;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    bool const is_last = text.empty();
    if (!(is_last && line.empty())) {
      s.table.items.emplace_back();
      at.column = 1;
      for (std::size_t begin = 0; begin <= line.size();) {
        std::size_t const end = std::min(line.find(',', begin), line.size());
        std::string_view word = line.substr(begin, end - begin);
        place cell{at.line, int(begin) + 1};
        while (!word.empty() && word.front() == ' ') word.remove_prefix(1), ++cell.column;
        while (!word.empty() && word.back() == ' ') word.remove_suffix(1);
        if (!word.empty())
          if (auto const a = torch_format::parse(word, cell)) {
            s.table.push(rank, *a);
            s.chunks = std::max(s.chunks, a->chunk + 1);
            s.micro_batches = std::max(s.micro_batches, a->micro_batch + 1);
          }
        begin = end + 1;
      }
      ++rank;
    }
    ++at.line;
  }
  at.column = 1;
  if (s.chunks == 0) refuse(at, "there is no action in it");
  bool any_backward = false;
  for (auto const& row : s.table.items)
    for (action const& a : row) any_backward = any_backward || a.kind != action_kind::forward;
  s.table.trains = any_backward;
  auto const where = torch_format::placement_of(s);
  if (!where)
    refuse({1, 1}, std::to_string(s.chunks) + " stages on " + std::to_string(s.table.ranks()) +
                       " ranks: no placement known here (straight, loop, vee, bidirectional) puts them there");
  s.table.where = *where;
  return s;
}

}  // namespace pp
