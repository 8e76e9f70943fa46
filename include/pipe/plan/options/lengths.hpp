// SPDX-License-Identifier: BSL-1.0
//
// The option for samples of several lengths, and the models and options that it goes with.
#pragma once

#include <type_traits>

#include <pipe/base/list.hpp>
#include <pipe/data/inputs.hpp>
#include <pipe/graph/graph.hpp>
#include <pipe/graph/model_tables.hpp>
#include <pipe/plan/options/backend.hpp>
#include <pipe/plan/options/family.hpp>
#include <pipe/plan/options/micro_batch_size.hpp>
#include <pipe/plan/options/precision.hpp>

namespace pp {

namespace option_family {
struct lengths;
}

/// Samples have several lengths, up to the context of the model's token ids, and a step computes
/// the rows that are there; of several inputs of token ids each has its own lengths. The rows of a
/// sample are rounded up to a multiple of Block, a divisor of each context; blocks of 8 rows are
/// whole tiles of products. Memory is planned for samples of
/// the longest length; of shorter ones a micro-batch has at most Most * MicroBatchSize. On the
/// host; BF16, TF32 and SplitFP32 take a Block that is a multiple of 32.
///
/// law: results have the bits of the same samples padded to the context, without Lengths, if these
///      are finite, but for the sign of sums of products that underflow to zero
template <int Block = 8, int Most = 8>
struct Lengths {
  using family = option_family::lengths;
  static constexpr int block = Block, most = Most;
};
/// All samples have the length of the context; shorter ones are padded with ids of -1 (default).
struct NoLengths {
  using family = option_family::lengths;
  static constexpr int block = 0, most = 1;
};

namespace detail {

/// Whether op o, which is on an axis of `positions` rows, has a row for each position, or makes one
/// of each sample.
constexpr bool keeps_lengths(op const& o, int positions) {
  row_rule const rule = row_rule_of(o.kind);
  if (rule == row_rule::none)
    return o.kind == op_kind::cross_entropy || (o.kind == op_kind::slice && o.rows == positions) ||
           (o.kind == op_kind::pool && o.in[1].where == space::input);
  if (rule == row_rule::norm)  // of the heads of each position, too
    return o.rows % positions == 0;
  return o.rows == positions;
}
/// The axis of the keys of an attention.
constexpr int key_axis_of(op const& o) {
  return o.attributes.attention().is_fused() ? o.axis : o.key_axis;
}
/// The first op of a model that needs samples of one length: it mixes rows, reads the rows of
/// samples as numbers of one row, or joins rows of two axes; or -1.
template <class M>
constexpr int first_op_of_one_length() {
  list<unsigned char, M::graph.size.values> axis;  // of each value
  for (int i = 0; i < M::graph.size.ops; ++i) {
    op const o = copy_of(M::graph.ops[i]);
    if (o.axis != 0 && !keeps_lengths(o, int(M::graph.inputs[o.axis - 1].form.elements())))
      return i;
    // Without the ids an attention would not know which keys are padding.
    if (o.kind == op_kind::attention && key_axis_of(o) != 0 && o.in[3].where != space::input)
      return i;
    for (int k = 0; k < o.ins; ++k) {
      operand const x = o.in[k];
      // Of an attention: 1 are keys of another sequence, 3 the ids of keys.
      bool const of_keys = o.kind == op_kind::attention && (k == 1 || k == 3);
      int const expected = of_keys ? key_axis_of(o) : o.axis;
      if (x.where == space::value && axis[x.index] != expected) return i;
      if (x.where == space::input && M::graph.inputs[x.index].axis != expected) return i;
    }
    for (int k = 0; k < op::max_out; ++k)
      if (operand const y = o.out[k]; y.where == space::value) axis[y.index] = axis_of_result(o, k);
  }
  return -1;
}

/// The rows that products of a precision add as one group, in weights' gradients: 1 in fp32 and
/// double, 32 where a processor may multiply bfloat16 numbers, see host::tile_depth.
///
/// law: where samples begin with a group, sums do not depend on the samples before
template <class Precision>
constexpr int rows_added_together() {
  using V = typename Precision::value;
  bool const multiplies_values = Precision::product == dtype_of<V>::value;
  return std::is_same_v<typename Precision::element, V> && multiplies_values ? 1 : 32;
}

/// The number of the first input of a model whose context is not a multiple of `block`, among those
/// that are axes; or -1.
template <class M>
constexpr int first_axis_of_other_blocks(int block) {
  for (int i = 0; i < M::graph.size.inputs; ++i)
    if (is_axis(M::graph.inputs[i], i) && M::graph.inputs[i].form.elements() % block != 0) return i;
  return -1;
}
/// Whether the positions of an input of a model are an axis.
template <class M>
constexpr bool has_axis() {
  for (int i = 0; i < M::graph.size.inputs; ++i)
    if (is_axis(M::graph.inputs[i], i)) return true;
  return false;
}

/// Whether all values of a model have a row for each position of an input.
template <class M>
inline constexpr bool has_rows_alone = [] {
  for (int i = 0; i < M::graph.size.ops; ++i)
    if (M::graph.ops[i].axis == 0 || M::graph.ops[i].kind == op_kind::pool) return false;
  return true;
}();

/// The diagnosis of lengths of images, which model M reads.
template <class M>
constexpr auto diagnose_lengths_of_images() {
  return diagnosis_of<wrong::images_are_cropped_or_padded_to_one_size,
                      leaf_at<M::graph.inputs[0].leaf, typename M::leaves>>();
}
/// The diagnosis of batches with lengths in a pipeline of model M with this option; of lengths of
/// one input below.
template <class M, class Given>
constexpr auto diagnose_use_of_lengths() {
  if constexpr (Given::block > 0)
    return std::type_identity<nothing_wrong>{};
  else if constexpr (!M::valid)
    return std::type_identity<nothing_wrong>{};
  else if constexpr (!has_axis<M>() && has_images<M>())
    return diagnose_lengths_of_images<M>();
  else
    return diagnosis_of<wrong::pipeline_has_samples_of_one_length, Given>();
}
template <class Given, class M, int Input>
constexpr auto diagnose_lengths_of() {
  if constexpr (Given::block == 0 || !M::valid)
    return diagnose_use_of_lengths<M, Given>();
  else if constexpr (!is_axis(model_tables<M>::inputs[Input], Input))
    return diagnosis_of<wrong::lengths_are_of_token_ids_alone,
                        leaf_at<model_tables<M>::inputs[Input].leaf, typename M::leaves>, Given>();
  else
    return std::type_identity<nothing_wrong>{};
}

}  // namespace detail

/// The family of lengths: of one length, or of several in whole blocks.
struct option_family::lengths : detail::any_family {
  using fallback = NoLengths;

  template <class Options>
  static constexpr auto diagnose() {
    using option = typename Options::template get<lengths>;
    using runs_on = typename Options::template get<backend>;
    using numbers = typename Options::template get<precision>;
    constexpr auto refused = []<class With>(std::type_identity<With>) {
      return detail::diagnosis_of<wrong::lengths_do_not_go_with, option, With>();
    };
    if constexpr (std::is_same_v<option, fallback>)
      return std::type_identity<detail::nothing_wrong>{};
    else if constexpr (option::block < 1 || option::most < 1)
      return detail::diagnosis_of<wrong::number_must_be_positive, option>();
    else if constexpr (runs_on::has_own_memory)
      return refused(std::type_identity<runs_on>{});
    else if constexpr (option::block % detail::rows_added_together<numbers>() != 0)
      return refused(std::type_identity<numbers>{});
    else
      return std::type_identity<detail::nothing_wrong>{};
  }
  template <class M, class Options>
  static constexpr auto diagnose_for() {
    using option = typename Options::template get<lengths>;
    if constexpr (std::is_same_v<option, fallback>) {
      return std::type_identity<detail::nothing_wrong>{};
    } else if constexpr (!detail::has_axis<M>() && detail::has_images<M>()) {
      return detail::diagnose_lengths_of_images<M>();
    } else if constexpr (!detail::has_axis<M>()) {
      return detail::diagnosis_of<wrong::lengths_are_of_token_ids_alone, M, option>();
    } else {
      constexpr int other = detail::first_axis_of_other_blocks<M>(option::block);
      if constexpr (other >= 0) {
        return detail::diagnosis_of<
            wrong::block_must_divide_the_context,
            detail::leaf_at<M::graph.inputs[other].leaf, typename M::leaves>, option>();
      } else {
        constexpr int at = detail::first_op_of_one_length<M>();
        if constexpr (at >= 0)
          return detail::diagnosis_of<wrong::layer_needs_samples_of_one_length,
                                      detail::leaf_at<M::graph.ops[at].leaf, typename M::leaves>,
                                      option>();
        else
          return std::type_identity<detail::nothing_wrong>{};
      }
    }
  }
};

}  // namespace pp
