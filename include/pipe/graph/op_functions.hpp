// SPDX-License-Identifier: BSL-1.0
//
// The functions by which a layer adds ops to its model, one per kind of op, with the shapes of
// operands and result per sample. R: rows; C, K, N: columns; S: rows of another sequence.
#pragma once

#include <pipe/graph/attributes.hpp>
#include <pipe/graph/fault.hpp>
#include <pipe/graph/handle.hpp>
#include <pipe/graph/layer_checks.hpp>
#include <pipe/graph/layers.hpp>
#include <pipe/graph/loss_labels.hpp>
#include <pipe/graph/naming.hpp>
#include <pipe/graph/op.hpp>
#include <pipe/graph/op_kind.hpp>

namespace pp::detail {

/// Base of Builder, which stores the ops that these functions add. Each function appends one op and
/// returns the handle of its result.
///
/// needs: Builder is derived from op_functions<Builder>; it has push, second_output, shared, is_a,
///        report, as_probable and new_stream
template <class Builder>
class op_functions {
 public:
  /// ids[R] and table[V, C] -> [R, C]; an id of -1 gives a row of zeros
  constexpr handle lookup(handle ids, operand table, int vocabulary, int width) {
    sample_shape form = ids.form;
    form.extent[form.rank++] = width;
    self().is_a(custom::tensor_kind::table, table);
    // A single id has no other length.
    if (ids.at.where == space::input && ids.form.elements() > 1) {
      ids.axis = static_cast<unsigned char>(1 + ids.at.index);
      if constexpr (Builder::keeps) self().graph_.inputs[ids.at.index].axis = ids.axis;
    }
    handle y = self().push(op_kind::lookup, ids, form, {table}, lookup_attributes{vocabulary});
    y.padding = ids.at;
    y.axis = ids.axis;
    return y;
  }
  /// ids[I] and table[V, C] -> [C]: the sum or the mean of the rows of I ids, without padding; see
  /// EmbeddingBag. The function sets of.ids.
  constexpr handle bag(handle ids, operand table, lookup_attributes of, int width) {
    of.ids = ids.form.columns();
    self().is_a(custom::tensor_kind::table, table);
    return self().push(op_kind::bag, ids, ids.form.with_columns(width), {table}, of);
  }
  /// x[R, K] and w[K, N] -> [R, N]
  constexpr handle matmul(handle x, operand w, int columns) {
    self().is_a(custom::tensor_kind::matrix, w);
    return self().push(op_kind::matmul, x, x.form.with_columns(columns), {w},
                       contraction_attributes{x.form.columns()});
  }
  /// x[R, K] and table[N, K] -> x table', [R, N]
  constexpr handle matmul_transposed(handle x, operand table) {
    shared_extents const of = self().shared(table.index);
    if (of.form.columns() != x.form.columns())
      self().report(wrong::tied_layer_needs_parameters_of_the_same_shape, of.form,
                    of.form.with_columns(x.form.columns()));
    operand const transposed{space::parameter_transposed, table.index};
    return self().push(op_kind::matmul, x, x.form.with_columns(of.form.rows()), {transposed},
                       contraction_attributes{x.form.columns(), true});
  }
  /// x[H, W, C] and w[kh, kw, C / groups, N] -> [Y, X, N], of the shape `form`
  constexpr handle convolution(handle x, operand w, sample_shape form,
                               convolution_attributes const& of) {
    self().is_a(custom::tensor_kind::matrix, w);
    return self().push(op_kind::convolution, x, form, {w}, of);
  }
  /// x[Y, X, N] and w[kh, kw, C / groups, N] -> [H, W, C], of the shape `form`: the input gradient
  /// of the convolution `of`. A depthwise convolution reads w as it is, any other reads the
  /// transpose of w.
  constexpr handle transposed_convolution(handle x, operand w, sample_shape form,
                                          convolution_attributes const& of) {
    self().is_a(custom::tensor_kind::matrix, w);
    if (!of.is_depthwise()) w.where = space::parameter_transposed;
    return self().push(op_kind::convolution_input_gradient, x, form, {w}, of);
  }
  /// x[R, C] and b[C] -> x + b in every row
  constexpr handle bias(handle x, operand b) { return self().push(op_kind::bias, x, x.form, {b}); }
  /// x[R, C] and table[R, C] -> x + table, the same table for every sample
  constexpr handle row_bias(handle x, operand table) {
    self().is_a(custom::tensor_kind::table, table);
    return self().push(op_kind::row_bias, x, x.form, {table});
  }
  /// Applies the formula of the layer being described to each element. `reads_output`: the
  /// formula's derivative is a function of y; see concept formula.
  constexpr handle map(handle x, bool reads_output) {
    return self().push(op_kind::map, x, x.form, {}, map_attributes{reads_output});
  }
  /// The same by formula F, one of the `formulas` of the layer being described.
  template <class F>
  constexpr handle map(handle x) {
    int const layer = self().leaf_;
    self().leaf_ = self().template index_of<F>();
    handle const y = map(x, F::derivative_reads_output);
    self().leaf_ = layer;
    return y;
  }
  /// x[R, C] and slope[C] -> x above 0, else slope x; with is_shared: slope[1]. The layer that is
  /// described has the constant is_shared, too; see PReLU.
  constexpr handle prelu(handle x, operand slope, bool is_shared) {
    return self().push(op_kind::prelu, x, x.form, {slope}, slope_attributes{is_shared});
  }
  /// x and z of one shape -> x + z
  constexpr handle add(handle x, handle z) { return self().push(op_kind::add, x, x.form, {z.at}); }
  /// x and z of one shape -> x z, element by element
  constexpr handle multiply(handle x, handle z) {
    return self().push(op_kind::multiply, x, x.form, {z.at});
  }
  /// x[R, C] and z[R, C] -> the sums of x z along the rows, [R, 1]
  constexpr handle row_dot(handle x, handle z) {
    return self().push(op_kind::row_dot, x, x.form.with_columns(1), {z.at},
                       contraction_attributes{x.form.columns()});
  }
  /// x[R, C] and s[R, 1] -> each row of x times its number, [R, C]
  constexpr handle row_scale(handle x, handle s) {
    return self().push(op_kind::row_scale, x, x.form, {s.at});
  }
  /// x[R, K] -> scale(x a) b, [R, N]: the low-rank term of the LoRA around the layer. a[K, rank]
  /// begins as `initial`, b[rank, N] as zeros.
  constexpr handle low_rank(handle x, int columns, initializer initial, char const* name_of_a,
                            char const* name_of_b) {
    parameter_scope const outer = self().scope();
    low_rank_term const& term = outer.adapter;
    int const layer = self().leaf_;
    self().leaf_ = term.leaf;
    self().scope().trained = term.trained;
    ++low_rank_terms_;
    operand const a =
        self().parameter(x.form.columns(), term.rank, initial, true, {name_of_a, true});
    operand const b =
        self().parameter(term.rank, columns, {distribution::constant, 0}, true, {name_of_b, true});
    handle y = matmul(x, a, term.rank);
    if (term.is_scaled) y = map(y, true);
    y = matmul(y, b, columns);
    self().scope() = outer;
    self().leaf_ = layer;
    return y;
  }
  /// The number of low-rank terms so far.
  constexpr int low_rank_terms() const { return low_rank_terms_; }
  /// Called where a LoRA ends, with the number of terms before it: its terms do not count as terms
  /// of a LoRA around it.
  constexpr void leave_low_rank_terms(int before) { low_rank_terms_ = before; }
  /// Drops random units of x, with the probability of the layer being described; see Dropout.
  constexpr handle dropout(handle x) {
    return self().as_probable(
        x, self().push(op_kind::dropout, x, x.form, {operand{space::random, self().new_stream()}}));
  }
  /// x[R, C] -> the columns of x from `first` on, [R, columns]. A layer that takes both halves of x
  /// slices the second half first, then at once the first half: the gradient rule needs this order.
  constexpr handle slice(handle x, int first, int columns) {
    return self().push(op_kind::slice, x, x.form.with_columns(columns), {},
                       slice_attributes{x.form.columns(), first});
  }
  /// Marks the previous op as the middle of a Reversible. A Reversible inside another layer is not
  /// a unit, and is not marked: forward stores what its backward reads.
  constexpr void middle_of_reversible() {
    if constexpr (Builder::keeps)
      if (self().depth_ == 1) self().graph_.units[self().unit_].middle = self().sizes_.ops - 1;
  }
  /// x[R, C] and z[R, S] -> [R, C + S]
  constexpr handle concat(handle x, handle z) {
    return self().push(op_kind::concat, x, x.form.with_columns(x.form.columns() + z.form.columns()),
                       {z.at}, concat_attributes{x.form.columns()});
  }
  /// row[C] and x[R, C] -> [R + 1, C]: `row` before the rows of each sample. For the op, a sample
  /// of x is one row of R * C numbers.
  constexpr handle row_before(operand row, handle x) {
    sample_shape const rows(x.form.rows() + 1, x.form.columns());
    if (!self().needs_room(rows, most_numbers)) return x;
    handle y = self().push(op_kind::concat, handle{row, sample_shape(x.form.columns())},
                           sample_shape(int(rows.elements())), {x.at},
                           concat_attributes{x.form.columns(), true});
    y.form = rows;
    return y;
  }
  /// Normalises each row; beta may be absent. `has_mean`: LayerNorm, else RMSNorm.
  /// The op has a second result, statistics[R, 2].
  constexpr handle norm(handle x, operand gamma, operand beta, bool has_mean, double epsilon) {
    handle const y =
        self().push(op_kind::norm, x, x.form, {gamma, beta}, norm_attributes{has_mean, epsilon});
    self().second_output(2L * x.form.rows());
    return y;
  }
  /// Normalises each column over the rows of a group of samples; gamma and beta may be absent. Adds
  /// two ops, since the statistics of all rows are needed before the first row is normalised.
  constexpr handle batch_norm(handle x, operand gamma, operand beta, operand running_mean,
                              operand running_variance, batch_attributes const& of) {
    handle const statistics =
        self().push(op_kind::batch_statistics, x, sample_shape(3, x.form.columns()),
                    {running_mean, running_variance}, of);
    return self().push(op_kind::batch_norm, x, x.form, {statistics.at, gamma, beta}, of);
  }
  /// Normalises each of `groups` equal groups of columns of a sample; gamma and beta may be absent.
  /// The op has a second result, statistics[groups, 2].
  constexpr handle group_norm(handle x, operand gamma, operand beta, group_attributes const& of) {
    handle const y = self().push(op_kind::group_norm, x, x.form, {gamma, beta}, of);
    self().second_output(2L * of.groups);
    return y;
  }
  /// Divides each element by a power of the squares of its neighbours in the row.
  constexpr handle response_norm(handle x, response_attributes const& of) {
    return self().push(op_kind::response_norm, x, x.form, {}, of);
  }
  /// Softmax along each row.
  constexpr handle softmax(handle x) { return self().push(op_kind::softmax, x, x.form, {}); }
  /// x[S, C] -> [C]; rows whose token id is -1 are left out
  constexpr handle pool(handle x, pool_kind which) {
    return self().as_probable(x, self().push(op_kind::pool, x, sample_shape(x.form.columns()),
                                             {x.padding}, pool_attributes{which, x.form.rows()}));
  }
  /// (H, W, C) -> (H', W', C), or (T, C) -> (T', C), with the extents of the attributes.
  constexpr handle resample(handle x, resample_attributes const& by) {
    sample_shape form = x.form;
    for (int i = 0; i + 1 < form.rank; ++i) form.extent[i] = by.axis[i].out;
    return self().as_probable(x, self().push(op_kind::resample, x, form, {}, by));
  }
  /// x[R, C] -> [C, R]
  constexpr handle transpose(handle x) {
    return self().push(op_kind::transpose, x, sample_shape(x.form.columns(), x.form.rows()), {});
  }
  /// x[R, 2C] -> [R, C] by the formula of the layer being described; see gated.
  constexpr handle gate(handle x) {
    return self().push(op_kind::gate, x, x.form.with_columns(x.form.columns() / 2), {});
  }
  /// qkv[R, C + 2K] -> [R, C]: each of the of.kv_heads heads of keys and values serves of.heads /
  /// of.kv_heads heads of queries. `rotation`: see RoPE. Rows of padding are not attended to. The
  /// op has a second result, lse[R, H].
  constexpr handle attention(handle qkv, attention_attributes const& of,
                             operand rotation = operand{}) {
    int const width = qkv.form.columns() / (of.heads + 2 * of.kv_heads) * of.heads;
    handle const y = self().push(op_kind::attention, qkv, qkv.form.with_columns(width),
                                 {operand{}, rotation, qkv.padding}, of);
    self().second_output(long(of.heads) * qkv.form.rows());
    return y;
  }
  /// q[R, C] and kv[S, 2K] -> [R, C]: queries of one sequence attend to all positions of another.
  constexpr handle cross_attention(handle q, handle kv, int heads, int kv_heads,
                                   score_attributes const& scores = score_attributes{}) {
    handle const y =
        self().push(op_kind::attention, q, q.form, {kv.at, operand{}, kv.padding},
                    attention_attributes{heads, kv_heads, kv.form.rows(), false, scores});
    self().second_output(long(heads) * q.form.rows());
    if constexpr (Builder::keeps) self().graph_.ops[self().sizes_.ops - 1].key_axis = kv.axis;
    return y;
  }
  /// A user-defined op with its own functions: x -> a value of shape `form`.
  /// With with.saved_per_sample > 0 the op has a second result of that many elements.
  constexpr handle custom(handle x, sample_shape form, custom_operands const& with) {
    handle const y = self().push(
        op_kind::custom, x, form, {with.parameter[0], with.parameter[1], with.parameter[2]},
        custom_attributes{x.form, with.flops, with.samples_are_independent});
    if (with.saved_per_sample > 0) self().second_output(with.saved_per_sample);
    return y;
  }
  /// Describes S, a FurtherLoss: its layers, if any, on the stashed value that S names, and its
  /// loss of their result, whose labels are an input of the model. All this is part of the last
  /// unit. The current value does not change.
  template <class S>
  constexpr void further_loss() {
    if (!self().ok()) return;
    using loss = typename S::further;
    handle const before = self().current();
    int const leaf = self().leaf_;
    self().leaf_ = self().template index_of<S>();
    self().set(self().recall(S::key.view()));
    ++self().depth_;
    if constexpr (S::has_layers) self().template part<typename S::chain>(0);
    --self().depth_;
    handle const x = self().current();
    if constexpr (is_refused<loss>) {
      self().template refuse<loss>();
    } else if (self().template needs_input_of_loss<loss>(x) && self().needs_numbers()) {
      sample_shape rows = x.form;
      --rows.rank;
      labels_ = loss::labels_are_ids
                    ? self().template loss_input<S>(
                          sample_shape(rows.rank > 0 ? int(rows.elements()) : 1), x.form.columns())
                    : self().template loss_input<S>(
                          x.form.with_columns(labels_of_row<loss>(x.form.columns())));
      loss::describe(self());
    }
    self().leaf_ = leaf;
    labels_ = operand{space::label, 0};
    self().set(before);
  }

 protected:
  operand labels_{space::label, 0};  // the labels of the loss that is being described

 private:
  int low_rank_terms_ = 0;
  constexpr Builder& self() { return static_cast<Builder&>(*this); }
};

}  // namespace pp::detail
