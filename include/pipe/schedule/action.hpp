// SPDX-License-Identifier: BSL-1.0
//
// The instruction set of a pipeline. A rank does nothing but walk a list of these; a schedule is
// the art of choosing the lists. The letters are those of the zero-bubble paper (Qi et al., 2024).
#pragma once

namespace pp {

/// What one action computes, for one chunk of the model and one micro-batch.
enum class action_kind : unsigned char {
  forward,          ///< F:  the chunk's output, keeping what its backward needs
  backward_input,   ///< B:  the gradient of the chunk's input, which the chunk before waits for
  backward_weight,  ///< W:  the gradient of the chunk's parameters, which only the update waits for
  backward,         ///< BW: B and W as one
  recompute,        ///< R:  F once more, to bring back what was not kept; between F and its B
  update  ///< U:  the optimizer step, with all gradients up to and including `micro_batch`
};

namespace detail {

inline constexpr int action_kinds = 6;

}  // namespace detail

/// An entry of a schedule: a kind of work, for one chunk of the model and one micro-batch.
struct action {
  action_kind kind = action_kind::forward;
  int chunk = 0;
  int micro_batch = 0;
  int version = 0;  ///< of the weights that it reads, or that an update makes: how many updates
                    ///< they have seen in this table

  friend constexpr bool operator==(action const&, action const&) = default;
};

/// The letter by which papers and drawings call a kind.
constexpr char const* short_name(action_kind kind) {
  constexpr char const* names[detail::action_kinds] = {"F", "B", "W", "BW", "R", "U"};
  return static_cast<int>(kind) < detail::action_kinds ? names[static_cast<int>(kind)] : "?";
}

namespace detail {

/// One bit per kind, for sets of them.
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
