// SPDX-License-Identifier: BSL-1.0
//
// The vocabulary between a layer and its builder: values on their way, and what is said about
// parameters.
#pragma once

#include <string_view>

#include <pipe/graph/op.hpp>

namespace pp {

/// A value as layers pass it on: where it is, how one sample of it looks, and whether it is made of
/// token ids.
struct handle {
  operand at{};
  shape form{};
  bool is_ids = false;
  int vocabulary = 0;  // of ids
  operand padding{};   // the ids that its rows come from, if they do: an id of -1 is no token
};

/// What a parameter is called in weight files, within its layer, and whether the file holds its
/// transpose: PyTorch stores the weight of a Linear [outputs, inputs].
struct file_name {
  char const* name = "weight";  // null: weight files do not hold it
  bool transposed = false;
};

/// Follows a description from outside: told which part of which layer comes next and which
/// parameters it makes. This one is not interested; train/names.hpp has one that is.
struct no_observer {
  constexpr void part(int) {}
  constexpr void end_part() {}
  constexpr void name(std::string_view) {}
  constexpr void parameter(int, file_name const&) {}
};

/// How a parameter begins, from the widths that it reads and makes; or, without a rule, as the
/// layer has it by itself. Whether there is one is a bool: g++ with -fsanitize=undefined takes no
/// comparison with the address of a function for a constant.
struct initial_rule {
  initializer (*rule)(int inputs, int outputs) = nullptr;
  bool is_given = false;
  constexpr initializer of(int inputs, int outputs, initializer usual) const {
    return is_given ? rule(inputs, outputs) : usual;
  }
};

/// Rules for weights and for biases.
struct initial_rules {
  initial_rule weights{}, biases{};
};

/// What the layers around the present one say about the parameters inside them.
struct parameter_scope {
  bool trained = true;
  double rate_scale = 1, decay_scale = 1;
  initial_rules initial{};
};

/// What a loss has beside its input and the labels.
struct loss_operands {
  operand target[3]{}, weights{};
  cross_entropy_attributes cross_entropy{};  // where the loss is one
  constexpr void put(op& o) const {
    auto const read = [&](int at, operand const& x) {
      o.in[at] = x;
      if (x.where != space::none) o.ins = short(at + 1);
    };
    for (int i = 0; i < 3; ++i) read(op::first_target + i, target[i]);
    read(op::loss_weights, weights);
  }
};

/// Operands of a user-defined layer besides its input.
struct custom_operands {
  operand parameter[3]{};  // then buffers
  long saved_per_sample = 0, flops = 0;
};

/// Operands of an op beside its first.
struct further_operands {
  operand a{}, b{}, c{};
};

}  // namespace pp
