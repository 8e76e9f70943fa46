// SPDX-License-Identifier: BSL-1.0
//
// The composition of a mini-batch with Lengths as a number, which processes compare: each has the
// whole mini-batch, and finds rows and messages from its own list of segments.
#pragma once

#include <cstddef>
#include <cstdint>

#include <pipe/backend/segments.hpp>
#include <pipe/base/hash.hpp>
#include <pipe/graph/model_tables.hpp>
#include <pipe/plan/options/lengths.hpp>
#include <pipe/runtime/job.hpp>

namespace pp::detail {

/// Hashes the lengths of the samples of each micro-batch and their rows, for an inference also the
/// places of its output; and the labels, weights and targets of rows that are there. P: a compiled
/// pipeline with Lengths. j: has taken the mini-batch
///
/// law: mini-batches with equal hashes have messages of equal sizes, almost surely
template <class P>
void hash_rows(job& j, int micro_batches) {
  using M = typename P::model;
  std::uint64_t lengths = 0, labels = 0;
  for (int mb = 0; mb < micro_batches; ++mb) {
    segment_list const* const of = j.batch.segments + mb * j.batch.axes;
    for (segment_list const* s = of; s != of + j.batch.axes; ++s) {
      lengths = hash_of_bytes(&s->count, sizeof(int), lengths);
      if (s->first == nullptr) continue;  // of an input that is no axis
      std::size_t const count = std::size_t(s->count);
      lengths = hash_of_bytes(s->given, sizeof(int) * count, lengths);
      lengths = hash_of_bytes(s->first, sizeof(int) * (count > 0 ? count + 1 : 0), lengths);
      if (j.what == job::kind::infer)
        lengths = hash_of_bytes(s->place, sizeof(long) * count, lengths);
    }
    auto const add = [&](void const* values, int axis, long per_sample, bool are_ids) {
      if (values == nullptr) return;
      long const number = are_ids ? long(sizeof(int)) : long(sizeof(typename P::element)),
                 planned = P::samples * per_sample,
                 here = axis == 0 ? of->count * per_sample
                                  : planned / of[axis - 1].planned_rows * of[axis - 1].rows;
      labels = hash_of_bytes(static_cast<char const*>(values) + mb * planned * number,
                             std::size_t(here * number), labels);
    };
    add(j.batch.label, model_tables<M>::loss_inputs[0].axis, model_tables<M>::labels,
        M::labels_are_ids);
    for (int i = 0; i < j.batch.axes; ++i)
      if (input_record const& in = model_tables<M>::inputs[i]; in.of_loss)
        add(j.batch.input[i], in.axis, in.form.elements(), in.is_ids);
  }
  j.batch.length_hash = lengths;
  j.batch.label_hash = labels;
}

}  // namespace pp::detail
