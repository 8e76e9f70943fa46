// SPDX-License-Identifier: BSL-1.0
//
// The parameters of a model that a decoder keeps as narrow matrices: those that products and
// lookups read.
#pragma once

#include <span>
#include <string>

#include <pipe/backend/host/narrow_matrix.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/graph/op.hpp>
#include <pipe/graph/op_traits.hpp>
#include <pipe/runtime/host/core/arena.hpp>

namespace pp::detail {

/// The matrices of a decoder's model. A matrix that several ops read in the same direction is kept
/// once; an embedding table is one of a product with its transpose, so that the output projection
/// that is tied to it has the same numbers.
struct narrow_model {
  std::span<op const> ops;
  std::span<parameter const> parameters;

  /// The matrices by op, zeros in `memory`, which is allocated here; none for weights as trained.
  ///
  /// throws: std::bad_alloc
  [[gnu::cold]] heap_array<host::narrow_matrix> matrices(host::weight_format format,
                                                         arena& memory) const {
    heap_array<host::narrow_matrix> all(count());
    if (format.type == decoder_weights::as_trained) return all;
    long total = 0;
    for (int i = 0; i < count(); ++i)
      if (reads_matrix(i)) {
        all[i] = shape_of(i, format);
        if (first_reader(i) == i) total += all[i].bytes();
      }
    memory = arena(total);
    unsigned char* at = reinterpret_cast<unsigned char*>(memory.data());
    for (int i = 0; i < count(); ++i) {
      if (!reads_matrix(i)) continue;
      if (int const same = first_reader(i); same < i) {
        all[i].data = all[same].data;
        continue;
      }
      all[i].data = at;
      at += all[i].bytes();
    }
    return all;
  }
  /// Rounds parameter p to the matrices that are made of it.
  ///
  /// throws: data_error if a number of such a parameter is not finite
  [[gnu::cold]] void round(int p, float const* values, std::string const& name,
                           heap_array<host::narrow_matrix> const& to) const {
    for (int i = 0; i < count(); ++i) {
      if (!reads_matrix(i) || owner_of(i) != p || first_reader(i) != i) continue;
      host::narrow_matrix const& m = to[i];
      host::strided<float const> const from =
          is_transposed(i) ? host::strided<float const>{values, 1, m.inputs}
                           : host::strided<float const>{values, m.outputs, 1};
      if (!host::round_matrix(from, m))
        throw_error<data_error>(
            {"decoder: weights: a number of '", name, "' is not finite, so it cannot be rounded"});
    }
  }
  /// Whether parameter p is read as a matrix, and not otherwise.
  [[gnu::cold]] bool has_matrices_only(int p) const {
    bool any = false;
    for (int i = 0; i < count(); ++i)
      for (int k = 0; k < op::max_in; ++k) {
        operand const x = op_at(i).in[k];
        if (!is_parameter(x) || owner(x.index) != p) continue;
        if (k != 1 || !reads_matrix(i)) return false;
        any = true;
      }
    return any;
  }

 private:
  int count() const { return int(ops.size()); }
  op const& op_at(int i) const { return ops[std::size_t(i)]; }
  int owner(int p) const {
    parameter const& of = parameters[std::size_t(p)];
    return of.tied_to >= 0 ? of.tied_to : p;
  }
  int owner_of(int i) const { return owner(op_at(i).in[1].index); }
  bool reads_matrix(int i) const {
    row_rule const rule = row_rule_of(op_at(i).kind);
    return (rule == row_rule::product || rule == row_rule::lookup) &&
           is_parameter(op_at(i).in[1]) &&
           !is_table(parameters[std::size_t(owner_of(i))].initial.kind);
  }
  /// Whether the outputs of the matrix of op i are the rows of its parameter.
  bool is_transposed(int i) const {
    return row_rule_of(op_at(i).kind) == row_rule::lookup ||
           op_at(i).in[1].where == space::parameter_transposed;
  }
  /// The first op that reads the same matrix.
  int first_reader(int i) const {
    int k = 0;
    while (!reads_matrix(k) || owner_of(k) != owner_of(i) || is_transposed(k) != is_transposed(i))
      ++k;
    return k;
  }
  host::narrow_matrix shape_of(int i, host::weight_format format) const {
    op const& o = op_at(i);
    if (row_rule_of(o.kind) == row_rule::product)
      return {format, o.attributes.contraction().inner, o.columns, nullptr};
    return {format, o.columns, parameters[std::size_t(owner_of(i))].elements() / o.columns,
            nullptr};
  }
};

}  // namespace pp::detail
