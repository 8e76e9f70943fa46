// SPDX-License-Identifier: BSL-1.0
//
// Schedules in the CSV format of PyTorch (torch.distributed.pipelining): a line per rank, an action
// per cell, `2F0` for the forward of stage 2 and micro-batch 0; I is the input gradient, W the
// weight gradient, B both. A stage of PyTorch is a chunk here.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/schedule/communication.hpp>
#include <pipe/schedule/dynamic_table.hpp>
#include <pipe/schedule/families/torch_text.hpp>

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
inline std::string torch_name(rank_instruction const& s) {
  if (s.kind == instruction_kind::compute) return torch_name(s.of);
  bool const is_forward = s.of.kind == action_kind::forward,
             sends = s.kind == instruction_kind::send;
  int const stage = sends ? s.of.chunk : is_forward ? s.of.chunk + 1 : s.of.chunk - 1;
  return std::to_string(stage) + (sends ? "SEND_" : "RECV_") + (is_forward ? 'F' : 'B') +
         std::to_string(s.of.micro_batch);
}

inline action const& computed_action(action const& a) { return a; }
inline action const& computed_action(rank_instruction const& s) { return s.of; }
inline bool is_transfer(action const&) { return false; }
inline bool is_transfer(rank_instruction const& s) { return s.kind != instruction_kind::compute; }

/// The cells of a rank, from a row of a table or of communicate()'s instructions. Beside transfers
/// the cells have what PyTorch's executor does not add itself. These are a wait for each send,
/// after the backward that shows that the value has arrived or at the end, and the reduction of a
/// stage's gradients after the last gradient.
class torch_cells {
 public:
  template <class Rows>
  torch_cells(Rows const& rows, int rank) {
    for (int i = 0; i < rows.size(rank); ++i) {
      auto const& instruction = rows.at(rank, i);
      if (is_transfer(instruction)) {
        has_transfers_ = true;
      } else if (makes_weight_gradient(computed_action(instruction).kind)) {
        std::size_t const chunk = std::size_t(computed_action(instruction).chunk);
        if (last_gradient_.size() <= chunk) last_gradient_.resize(chunk + 1, -1);
        last_gradient_[chunk] = i;
      }
    }
    for (int i = 0; i < rows.size(rank); ++i) {
      auto const& instruction = rows.at(rank, i);
      if (is_transfer(instruction))
        add_transfer(instruction);
      else if (!computed_action(instruction).with_next || i + 1 == rows.size(rank))
        add_action(computed_action(instruction), i);
      else
        i = add_pair(rows, rank, i);
    }
    for (sent const& s : sent_) add(s.wait);
  }

  std::string const& text() const { return text_; }

 private:
  /// A send for which no wait has been written yet.
  struct sent {
    action of;
    std::string wait;
  };

  void add(std::string const& cell) {
    if (cell.empty()) return;
    if (!text_.empty()) text_ += ',';
    text_ += cell;
  }
  void add_transfer(action const&) {}
  void add_transfer(rank_instruction const& s) {
    add(torch_name(s));
    if (s.kind != instruction_kind::send) return;
    char const* const wait = s.of.kind == action_kind::forward ? "WAIT_SEND_F" : "WAIT_SEND_B";
    sent_.push_back({s.of, std::to_string(s.of.chunk) + wait + std::to_string(s.of.micro_batch)});
  }
  void add_action(action const& a, int position) {
    add(torch_name(a));
    add_ends(a, position);
  }
  /// `(0F1;1B0)OVERLAP_F_B`: the receives of both actions stand before the pair, their sends after
  /// it. Returns the position of the second action.
  template <class Rows>
  int add_pair(Rows const& rows, int rank, int first) {
    int second = first + 1;
    for (; second < rows.size(rank) && is_transfer(rows.at(rank, second)); ++second)
      if (!is_send(rows.at(rank, second))) add_transfer(rows.at(rank, second));
    action const &forward = computed_action(rows.at(rank, first)),
                 &backward = computed_action(rows.at(rank, second));
    add("(" + torch_name(forward) + ";" + torch_name(backward) + ")OVERLAP_F_B");
    for (int i = first + 1; i < second; ++i)
      if (is_send(rows.at(rank, i))) add_transfer(rows.at(rank, i));
    add_ends(backward, second);
    return second;
  }
  static bool is_send(action const&) { return false; }
  static bool is_send(rank_instruction const& s) { return s.kind == instruction_kind::send; }

  /// The cells that follow an action: the wait for the send of its chunk's output, and the
  /// reduction of the chunk's gradients.
  void add_ends(action const& a, int position) {
    if (!has_transfers_) return;
    if (makes_input_gradient(a.kind)) {
      auto const mine = std::find_if(sent_.begin(), sent_.end(), [&](sent const& s) {
        return s.of.kind == action_kind::forward && s.of.chunk == a.chunk &&
               s.of.micro_batch == a.micro_batch;
      });
      if (mine != sent_.end()) {
        add(mine->wait);
        sent_.erase(mine);
      }
    }
    if (makes_weight_gradient(a.kind) && last_gradient_[std::size_t(a.chunk)] == position)
      for (char const* const word : {"REDUCE_GRAD", "WAIT_REDUCE_GRAD"})
        add(std::to_string(a.chunk) + word);
  }

  std::string text_;
  std::vector<int> last_gradient_;  // by chunk: a position
  std::vector<sent> sent_;
  bool has_transfers_ = false;
};

}  // namespace detail

namespace schedules {

/// A table, or the instructions of communicate(), as CSV text: a line per rank. PyTorch's
/// `_load_csv` calls a table "compute_only" and instructions "compute_comms", and accepts both:
/// waits and reductions of gradients, which PyTorch's executor needs, stand beside the transfers.
///
/// law: actions that PyTorch does not have, recomputation and updates, are left out
template <class Rows>
std::string torch_csv(Rows const& rows) {
  std::string text;
  for (int rank = 0; rank < rows.ranks(); ++rank)
    text += detail::torch_cells(rows, rank).text() + '\n';
  return text;
}

/// A parsed schedule: the table with its placement, and the sizes.
struct read_schedule {
  dynamic_table table{0};
  int chunks = 0, micro_batches = 0;
};

}  // namespace schedules

namespace torch_format {

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

/// The reason of a fault, for a message; for a misplaced stage see refuse_stage.
inline std::string reason_of(finding const& found) {
  std::string const word = printable(found.word);
  switch (found.what) {
    case schedules::csv_fault::none: return {};
    case schedules::csv_fault::no_action: return "expected at least 1 action, found none";
    case schedules::csv_fault::stage_expected: return "expected the number of a stage";
    case schedules::csv_fault::stage_too_large: return "a stage " + word + " is too large";
    case schedules::csv_fault::micro_batch_expected: return "expected the number of a micro-batch";
    case schedules::csv_fault::micro_batch_too_large:
      return "a micro-batch " + word + " is too large";
    case schedules::csv_fault::goes_on: return "'" + word + "' goes on after its micro-batch";
    case schedules::csv_fault::pair_not_closed:
      return "'" + word + "' does not end with )OVERLAP_F_B";
    case schedules::csv_fault::quote_not_closed:
      return "a cell begins with a quote and does not end with one";
    case schedules::csv_fault::no_placement: return "no placement has that number of stages";
    case schedules::csv_fault::wrong_rank: return "the stage cannot be on this rank";
    case schedules::csv_fault::unknown_action: break;
  }
  std::string all;
  for (known_word const& known : known_words) (all += known.word) += ", ";
  return "'" + word + "' is no action that is known here: " + all + "(...;...)OVERLAP_F_B";
}

/// Throws data_error with the place and the reason.
[[noreturn]] inline void refuse(place at, std::string_view why) {
  throw data_error("line " + std::to_string(at.line) + ", column " + std::to_string(at.column) +
                   ": " + std::string(why));
}

/// Throws a data_error that names the first action whose stage cannot be on its rank.
[[noreturn]] inline void refuse_stage(std::string_view text, schedules::read_schedule const& s,
                                      best_placement const& best) {
  misplaced_action const found = find_misplaced(text, s.table.ranks(), s.chunks, best);
  if (best.name == nullptr)
    refuse(found.at, std::to_string(s.chunks) + " stages on " + std::to_string(s.table.ranks()) +
                         " ranks: no placement known here (straight, loop, vee, bidirectional) "
                         "has as many");
  int const holder =
      rank_of(best.where, s.table.ranks(), found.which.chunk, found.which.micro_batch);
  refuse(found.at, "stage " + std::to_string(found.which.chunk) + " cannot be on rank " +
                       std::to_string(found.rank) + ": " + best.name +
                       ", the placement that fits best, has it on rank " + std::to_string(holder));
}

}  // namespace torch_format

namespace schedules {

/// Parses CSV text. Empty cells are idle time and are ignored; a line without actions is a rank
/// without actions, except at the end of the text. Transfers and waits for transfers are ignored
/// too, since they follow from the actions, and so are operations on sharded parameters (UNSHARD,
/// RESHARD, REDUCE_GRAD, WAIT_REDUCE_GRAD). `(0F1;1B0)OVERLAP_F_B` is a pair. Cells may be in
/// double quotes, and between them semicolons or tabs, as spreadsheets write them. The schedule is
/// not validated: call `schedules::validate`.
///
/// law:    read_torch_csv(torch_csv(table)) has the same actions in the same order, if the last
///         rank has any
/// throws: data_error with line, column and reason, in printable characters
inline read_schedule read_torch_csv(std::string_view text) {
  read_schedule s;
  bool any_backward = false;
  torch_format::finding const found = torch_format::scan(
      text, [&] { s.table.items.emplace_back(); },
      [&](action const& a, torch_format::place) {
        s.table.items.back().push_back(a);
        s.chunks = std::max(s.chunks, a.chunk + 1);
        s.micro_batches = std::max(s.micro_batches, a.micro_batch + 1);
        any_backward = any_backward || a.kind != action_kind::forward;
      });
  if (!found.ok()) torch_format::refuse(found.at, torch_format::reason_of(found));
  if (s.chunks == 0)
    torch_format::refuse({}, torch_format::reason_of({csv_fault::no_action, {}, {}}));
  s.table.trains = any_backward;
  auto const best = torch_format::placement_of(s.table, s.chunks);
  if (best.name == nullptr || best.misplaced > 0) torch_format::refuse_stage(text, s, best);
  s.table.where = best.where;
  return s;
}

}  // namespace schedules

}  // namespace pp
