// SPDX-License-Identifier: BSL-1.0
//
// The names of an optimizer's state in checkpoints. An optimizer lists the arrays that it keeps for
// a parameter, in the order in which they are in memory, under PyTorch's names where it has some:
//
//     static constexpr custom::named_states states_of(custom::tensor_kind) {
//       return {{"exp_avg"}, {"exp_avg_sq"}};
//     }
//
// Arrays of an optimizer without that list are numbered from 0. A setting that the meaning of the
// state depends on, such as the decay of an average whose bias is corrected, is listed by
//
//     template <class Use>
//     constexpr void for_each_state_setting(Use use) const { use("beta1", beta1); }
//
// A checkpoint of another value of it is refused. An array that has no meaning with some settings,
// as a momentum whose factor is 0, is in no file of optimizer state if this function says so:
//
//     bool uses_state(std::string_view array) const { return momentum > 0 || array != "momentum"; }
#pragma once

#include <initializer_list>

#include <pipe/base/config.hpp>

namespace pp {

namespace custom {

/// The numbers of an array of optimizer state: one for each element of the parameter, in the order
/// of the elements; or one for each row, or for each column.
enum class state_extent : unsigned char { elements, rows, columns };

/// An array of the optimizer state of a parameter.
struct named_state {
  char const* name = nullptr;
  state_extent extent = state_extent::elements;
};

/// The arrays of the state of a parameter, at most four, in the order of their memory: each follows
/// the one before, after one for elements of a whole tensor as moments_elements() says.
struct named_states {
  named_state items[4]{};
  int count = 0;
  constexpr named_states(std::initializer_list<named_state> all) {
    for (named_state const& each : all) items[count++] = each;
  }
};

}  // namespace custom

}  // namespace pp
