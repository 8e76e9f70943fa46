// SPDX-License-Identifier: BSL-1.0
//
// The records that a layer and its builder exchange: values, and the settings and names of
// parameters.
#pragma once

#include <string_view>

#include <pipe/graph/op.hpp>

namespace pp::detail {

/// A value as layers pass it on: its operand, the shape of one sample, and whether it is token ids.
struct handle {
  operand at{};
  sample_shape form{};
  bool is_ids = false;
  int vocabulary = 0;      // of ids
  operand padding{};       // the ids of its rows, if any: an id of -1 is padding
  unsigned char axis = 0;  // of its rows: see op::axis
};

/// The result `out` of an op on x. It has x's padding if it has as many rows as x, and then x's
/// axis if the kind of op has a rule by rows, or takes some of the columns.
constexpr handle result_of(op_kind kind, handle const& x, operand out, sample_shape form) {
  if (form.rows() != x.form.rows()) return handle{out, form};
  handle y{out, form, false, 0, x.padding};
  if (row_rule_of(kind) != row_rule::none || kind == op_kind::slice) y.axis = x.axis;
  return y;
}

/// The name of a parameter in weight files, within its layer, and whether the file holds the
/// transpose: PyTorch stores the weight of a Linear as [outputs, inputs], and the weight of a
/// convolution as [filters, channels, window].
struct file_name {
  char const* name = "weight";  // null: not in weight files
  bool transposed = false;
};

/// An observer of a description is called for each part of each layer and for each parameter that a
/// layer adds. This observer ignores the calls; the observer of weights/names.hpp composes names.
struct no_observer {
  constexpr void part(int) {}
  constexpr void end_part() {}
  constexpr void name(std::string_view) {}
  constexpr void parameter(int, file_name const&) {}
};

/// The initial values of a parameter as a function of its numbers of inputs and outputs; without a
/// rule, the layer's default. The flag is a bool because g++ with -fsanitize=undefined does not
/// treat the comparison of a function's address with null as a constant.
struct initial_rule {
  initializer (*rule)(int inputs, int outputs) = nullptr;
  bool is_given = false;
  /// The initial values of a parameter of these widths; `usual`: the layer's default.
  constexpr initializer of(int inputs, int outputs, initializer usual) const {
    return is_given ? rule(inputs, outputs) : usual;
  }
};

/// Rules for weights and for biases.
struct initial_rules {
  initial_rule weights{}, biases{};
};

/// The low-rank term of the affine maps inside a LoRA; outside a LoRA the rank is 0.
struct low_rank_term {
  int rank = 0, leaf = 0;  // the LoRA among the leaves, whose formula is the factor of the term
  bool is_scaled = false, trained = false;
  int terms_before = 0, position = 0;  // of the LoRA: terms before it; its layer
};

/// The settings of the layers around the present one for the parameters inside them, and whether
/// the model may be cut inside these layers (`CutInside`).
struct parameter_scope {
  bool trained = true, cut_inside = false;
  double rate_scale = 1, decay_scale = 1;
  initial_rules initial{};
  low_rank_term adapter{};
};

/// The operands of a loss besides its input and the labels.
struct loss_operands {
  operand target[3]{}, weights{};
  bool reads_labels = true;
  cross_entropy_attributes cross_entropy{};  // of a cross entropy
  /// The labels of the op: those of a further loss always, by which the op is known as one.
  constexpr operand labels(operand given) const {
    return reads_labels || given.where == space::input ? given : operand{};
  }
  /// Writes the operands into the op of the loss. The op's number of operands is up to the last one
  /// present, absent ones before it included.
  constexpr void put(op& o) const {
    auto const read = [&](int at, operand const& x) {
      o.in[at] = x;
      if (x.where != space::none) o.ins = short(at + 1);
    };
    for (int i = 0; i < 3; ++i) read(op::first_target + i, target[i]);
    read(op::loss_weights, weights);
  }
};

/// The operands of a user-defined layer besides its input, and its costs per sample.
struct custom_operands {
  operand parameter[3]{};  // parameters, then buffers
  long saved_per_sample = 0, flops = 0;
  bool samples_are_independent = false;
};

/// The operands of an op besides its first.
struct further_operands {
  operand a{}, b{}, c{};
  /// The number of operands that are present: these come first.
  constexpr short count() const {
    if (c.where != space::none) return 3;
    if (b.where != space::none) return 2;
    return a.where != space::none ? 1 : 0;
  }
};

}  // namespace pp::detail
