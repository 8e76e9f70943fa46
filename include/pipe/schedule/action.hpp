// SPDX-License-Identifier: BSL-1.0
//
// The instruction set of a pipeline: each rank executes a list of actions, and a schedule is the
// choice of these lists. The letters are those of the zero-bubble paper (Qi et al., 2024).
#pragma once

namespace pp {

namespace schedules {

/// The computation of an action, for one chunk of the model and one micro-batch.
enum class action_kind : unsigned char {
  forward,          ///< F:  the chunk's output; stores what its backward needs
  backward_input,   ///< B:  the gradient of the chunk's input, which the previous chunk waits for
  backward_weight,  ///< W:  the gradient of the chunk's parameters, which only the update waits for
  backward,         ///< BW: B and then W
  recompute,        ///< R:  F again, for values that were not stored; between F and its B
  update  ///< U:  the optimizer step, with all gradients up to and including `micro_batch`
};

}  // namespace schedules

namespace detail {

using namespace schedules;

inline constexpr int action_kinds = 6;

}  // namespace detail

namespace schedules {

/// An entry of a schedule.
struct action {
  action_kind kind = action_kind::forward;
  /// Whether this action and the next one of its rank run together, as a pair: see pairs.hpp.
  bool with_next = false;
  int chunk = 0;
  int micro_batch = 0;
  /// The version of the weights that the action reads, or that an update makes: the number of
  /// updates of the chunk in this table up to then, with the update itself.
  int version = 0;

  constexpr action() = default;
  /// An action of a list: {kind, chunk, micro_batch}, then what few lists have. The members are in
  /// another order, in which they take 16 bytes: large tables are nothing but actions.
  constexpr action(action_kind does, int of_chunk, int of_micro_batch = 0, int reads_version = 0,
                   bool is_paired = false)
      : kind(does), with_next(is_paired), chunk(of_chunk), micro_batch(of_micro_batch),
        version(reads_version) {}

  friend constexpr bool operator==(action const&, action const&) = default;
};

/// The letters of a kind in papers and drawings; "?" for a value outside the enumeration.
constexpr char const* short_name(action_kind kind) {
  constexpr char const* names[detail::action_kinds] = {"F", "B", "W", "BW", "R", "U"};
  return static_cast<int>(kind) < detail::action_kinds ? names[static_cast<int>(kind)] : "?";
}

}  // namespace schedules

namespace detail {

/// The bit of a kind in a set of kinds.
constexpr unsigned bit(action_kind kind) { return 1u << static_cast<unsigned>(kind); }

/// Whether the action produces the gradient of its chunk's input.
constexpr bool makes_input_gradient(action_kind kind) {
  return kind == action_kind::backward_input || kind == action_kind::backward;
}

/// Whether the action adds to the gradient of its chunk's parameters.
constexpr bool makes_weight_gradient(action_kind kind) {
  return kind == action_kind::backward_weight || kind == action_kind::backward;
}

}  // namespace detail

}  // namespace pp
