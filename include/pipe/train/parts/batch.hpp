// SPDX-License-Identifier: BSL-1.0
//
// A mini-batch of a model, and its checks before a run.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

#include <pipe/base/error.hpp>
#include <pipe/base/hash.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/data/batch_check.hpp>
#include <pipe/data/inputs.hpp>
#include <pipe/graph/model_tables.hpp>
#include <pipe/plan/options/lengths.hpp>
#include <pipe/plan/options/micro_batch_size.hpp>
#include <pipe/runtime/job.hpp>
#include <pipe/train/parts/loss_terms.hpp>

namespace pp::detail {

/// A mini-batch of model M: views of at most `Trainer::samples` samples, stored one after the
/// other. The arrays are read in place during a call. Further inputs are given by name:
/// `Trainer::batch b{source, labels}; b.set<"target">(ids);`
///
/// Reports: whether M is valid, so that errors in a batch's types are reported. Given: the option
/// for samples of several lengths
template <class M, class Element, bool Reports, class Given = NoLengths>
struct batch_of {
  using model = M;
  using element = Element;
  using label_type = std::conditional_t<M::labels_are_ids, int, Element>;
  template <int Index, bool Exists = true>
  using input_values =
      values_for<input_element<M, Index, Element> const, wrong::inputs_have_the_wrong_type,
                 input_item_of<M, Index>, Reports && Exists>;
  using label_values =
      values_for<label_type const, wrong::labels_have_the_wrong_type, typename M::loss, Reports>;
  /// The number of the input with a name; 0 if there is none.
  template <Text Name>
  static constexpr int input_named = find_input<M, Name>() < 0 ? 0 : find_input<M, Name>();

  input_values<0> inputs;
  label_values labels;
  // By input number. An input has its list in one of the two arrays, by its type. Entry 0 is not
  // used.
  further_values<int> named_ids[max_inputs]{};
  further_values<Element> named_numbers[max_inputs]{};
  std::span<int const> lengths{};                    // empty: samples are padded to the context
  std::span<int const> named_lengths[max_inputs]{};  // likewise, by input number from 1 on
  std::span<int const> micro_batches{};              // samples of each; empty: MicroBatchSize

  /// Sets an input by its name in the model.
  template <Text Name>
  batch_of& set(input_values<input_named<Name>, (find_input<M, Name>() >= 0)> values) {
    static_assert(accepted<decltype(diagnose_name<M, Name>())>::value);
    constexpr int input = input_named<Name>;
    if constexpr (input == 0)
      inputs = values;
    else if constexpr (model_tables<M>::inputs[input].is_ids)
      named_ids[input] = values;
    else
      named_numbers[input] = values;
    return *this;
  }
  /// Sets the lengths of samples whose ids in the first input, and whose labels if each of its
  /// positions has one, lie one behind the other without padding. Needs Lengths.
  template <class Option = Given>
  batch_of& set_lengths(std::span<int const> of_samples) {
    static_assert(accepted<decltype(diagnose_lengths_of<Option, M, 0>())>::value);
    lengths = of_samples;
    return *this;
  }
  /// The same for an input by its name in the model.
  template <Text Name, class Option = Given>
  batch_of& set_lengths(std::span<int const> of_samples) {
    static_assert(accepted<decltype(diagnose_name<M, Name>())>::value);
    constexpr int input = input_named<Name>;
    static_assert(accepted<decltype(diagnose_lengths_of<Option, M, input>())>::value);
    if constexpr (input == 0)
      lengths = of_samples;
    else
      named_lengths[input] = of_samples;
    return *this;
  }
  /// Sets the number of samples of each micro-batch, in their order: as many as have room for their
  /// rows. Needs Lengths, and a model with an output for each position.
  template <class Option = Given>
  batch_of& set_micro_batches(std::span<int const> samples) {
    static_assert(accepted<decltype(diagnose_use_of_lengths<M, Option>())>::value);
    micro_batches = samples;
    return *this;
  }
};

/// Input Index of a batch.
template <int Index, class Batch>
auto input_of(Batch const& b) {
  if constexpr (Index == 0)
    return b.inputs;
  else if constexpr (model_tables<typename Batch::model>::inputs[Index].is_ids)
    return b.named_ids[Index];
  else
    return b.named_numbers[Index];
}

/// The lengths of the samples of input Index, one behind the other; empty if they are padded.
template <int Index, class Batch>
std::span<int const> lengths_of_input(Batch const& b) {
  if constexpr (Index == 0)
    return b.lengths;
  else
    return b.named_lengths[Index];
}
/// Whether the samples of an input of a batch have lengths.
template <class Batch>
bool has_lengths(Batch const& b) {
  bool any = !b.lengths.empty();
  for (auto const& of : b.named_lengths) any = any || !of.empty();
  return any;
}

/// Checks of arrays in the host's memory, which are made at once.
struct host_checks {
  static void ids(char const* what, std::span<int const> values, int least, int end) {
    check_ids(what, values, least, end);
  }
};

/// Checks input Index and enters it in a job. Inference skips inputs that only the loss reads.
template <int Index, class Batch, class Checks>
void take_input(Batch const& b, std::size_t samples, job& j, [[maybe_unused]] Checks& checks) {
  using M = typename Batch::model;
  constexpr input_record in = model_tables<M>::inputs[Index];
  if (in.of_loss && j.what == job::kind::infer) return;
  auto const values = input_of<Index>(b);
  std::size_t const expected = samples * std::size_t(in.form.elements());
  // Input 0 determines the number of samples, so its size needs no check here.
  if constexpr (Index > 0) check_size({"input ", input_name<M, Index>()}, values.size(), expected);
  if constexpr (in.is_ids) checks.ids("token", values, -1, in.vocabulary);
  j.batch.input[Index] = expected > 0 ? values.data() : nullptr;  // labels may be of no numbers
}

/// The number of samples of a batch whose first input has this number of elements.
///
/// throws: data_error unless there are 1 to `most` whole samples
inline int count_samples(std::size_t elements, std::size_t per_sample, int most) {
  std::size_t const n = elements / per_sample;
  if (n < 1 || n > std::size_t(most) || elements % per_sample != 0)
    throw_error<data_error>({"inputs: expected 1 to ", most, " samples of ", per_sample,
                             " numbers, got ", elements, " numbers"});
  return int(n);
}

/// Counts the samples, checks every input and enters them in a job.
///
/// throws: data_error unless there are 1 to `most` samples, each input has as many, and every token
///         is in the vocabulary
template <class Batch, class Checks>
void take_inputs(Batch const& b, int most, job& j, Checks& checks) {
  using M = typename Batch::model;
  if constexpr (requires { b.micro_batches; })
    if (has_lengths(b) || !b.micro_batches.empty())
      throw_error<data_error>({"lengths, micro_batches: they need the option Lengths"});
  std::size_t const per_sample = std::size_t(model_tables<M>::inputs[0].form.elements());
  if constexpr (has_images<M>()) check_images(b.inputs.size(), model_tables<M>::inputs[0].form);
  j.batch.samples = count_samples(b.inputs.size(), per_sample, most);
  [&]<int... Is>(std::integer_sequence<int, Is...>) {
    (take_input<Is>(b, std::size_t(j.batch.samples), j, checks), ...);
  }(std::make_integer_sequence<int, M::graph_type::size.inputs>{});
}

template <class Batch>
void take_inputs(Batch const& b, int most, job& j) {
  host_checks checks;
  take_inputs(b, most, j, checks);
}

/// Hashes the labels, weights and targets of a mini-batch of model M, which all processes give
/// alike. Inputs are not hashed: a process may leave them out where none of its ranks reads them.
template <class M, class Element>
void hash_labels(job& j) {
  constexpr auto const& inputs = model_tables<M>::inputs;
  constexpr graph_view const outline = model_tables<M>::outline;
  auto const add = [&](void const* values, long each, bool are_ids) {
    std::size_t const bytes =
        std::size_t(j.batch.samples * each) * (are_ids ? sizeof(int) : sizeof(Element));
    j.batch.label_hash = hash_of_bytes(values, bytes, j.batch.label_hash);
  };
  j.batch.label_hash = 0;
  if (j.batch.label != nullptr) add(j.batch.label, model_tables<M>::labels, M::labels_are_ids);
  for (int i = 0; i < outline.inputs.count; ++i)
    if (inputs[i].of_loss && j.batch.input[i] != nullptr)
      add(j.batch.input[i], inputs[i].form.elements(), inputs[i].is_ids);
}

/// Sets the kind of a job of compiled pipeline P, once the job has its arrays.
///
/// throws: data_error in training if the last micro-batch, or the last group of SyncOver, would
///         have a single number for each channel of a batch norm
template <class P>
void begin_job(job& j, job::kind what) {
  using M = typename P::model;
  j.what = what;
  if constexpr (norms_samples(model_tables<M>::outline)) {
    static constexpr auto groups = groups_without_positions<M, P::samples>();
    for (int each : groups)
      if (what == job::kind::train && each > 0 && j.batch.samples % each == 1)
        throw_error<data_error>(
            {"inputs: the last ", each == P::samples ? "micro-batch" : "group of SyncOver", " of ",
             j.batch.samples, " samples would have 1, and a batch norm needs 2 or ",
             "more in training: leave one out, or add one"});
  }
  if constexpr (requires { P::transport::world(); } && !P::backend::has_own_memory)
    if (P::transport::world().processes() > 1 && j.batch.segments == nullptr)
      hash_labels<M, typename P::element>(j);
}

/// Makes a training job that has its arrays the job of a step, with a trainer's settings.
template <class Settings>
void begin_step(job& j, Settings const& s, long step, double learning_rate) {
  j.step = step;
  j.seed = s.seed;
  j.update = {};  // nvcc forgets the names of an initialiser's members
  j.update.learning_rate = learning_rate;
  j.update.clip_value = s.clip_value;
  j.update.clip_norm = s.clip_norm;
  j.update.samples = j.batch.samples;
}

/// The weights of a batch's rows; empty if the loss has none.
template <class Batch>
std::span<typename Batch::element const> weights_of([[maybe_unused]] Batch const& b) {
  using loss = typename Batch::model::loss;
  if constexpr (loss::is_weighted)
    return input_of<Batch::template input_named<loss::weights::name>>(b);
  else
    return {};
}

/// Samples of a batch, by its lengths or its first input.
template <class Batch>
long samples_of(Batch const& b) {
  if constexpr (requires { b.lengths; })
    if (!b.lengths.empty()) return long(b.lengths.size());
  return long(b.inputs.size()) / model_tables<typename Batch::model>::inputs[0].form.elements();
}
/// See Pipeline::loss_terms.
template <class Batch>
double loss_terms_of(Batch const& b) {
  using M = typename Batch::model;
  return loss_terms<typename M::loss>(std::span<typename Batch::label_type const>(b.labels),
                                      weights_of(b), model_tables<M>::output.columns(),
                                      detail::samples_of(b) * model_tables<M>::output.rows());
}

/// The labels of further loss S in a batch of model M: their input, and the loss's rows of a sample
/// and columns of a row; of a formula of rows the columns of its labels.
template <class S, class M>
inline constexpr int input_of_labels = find_input<M, S::name>();
template <class S, class M>
inline constexpr int rows_of_labels =
    further_loss_rows(model_tables<M>::inputs[input_of_labels<S, M>], typename M::leaves{});
template <class S, class M>
inline constexpr int columns_of_labels = [] {
  constexpr input_record in = model_tables<M>::inputs[input_of_labels<S, M>];
  return in.is_ids ? in.vocabulary : in.form.columns();
}();

/// Calls use(type_identity of a further loss) for those of model M, in their order.
template <class M, class Use>
void for_each_further_loss([[maybe_unused]] Use const& use) {
  if constexpr (requires { typename M::loss::further; })
    [&]<class... S>(layers<S...>) {
      (use(std::type_identity<S>{}), ...);
    }(typename M::loss::further{});
}
/// Enters the further losses of model M where the divisor of the first one is: see further_losses.
/// terms_of(type_identity of one): the sum of the weights of its terms.
template <class M, class Terms>
void take_further_losses(job_loss& to, Terms const& terms_of) {
  [[maybe_unused]] int rows = model_tables<M>::output.rows();  // of a sample in the losses so far
  for_each_further_loss<M>([&]<class S>(std::type_identity<S> loss) {
    double const terms = terms_of(loss);
    to.further.items[to.further.count++] = {leaf_index<S>(typename M::leaves{}),
                                            rows,
                                            S::weight() * to.terms / loss_divisor(terms),
                                            S::weight(),
                                            terms,
                                            S::further::sums};
    rows += rows_of_labels<S, M>;
  });
}
/// The sum of the weights of the terms of further loss S in a batch.
///
/// throws: data_error as loss_terms does
template <class S, class Batch>
double further_terms_of(Batch const& b) {
  using M = typename Batch::model;
  using element = typename Batch::element;
  constexpr int input = input_of_labels<S, M>;
  using label = std::conditional_t<model_tables<M>::inputs[input].is_ids, int, element>;
  std::span<element const> weights;
  if constexpr (S::is_weighted)
    weights = input_of<Batch::template input_named<S::weights::name>>(b);
  return loss_terms<typename S::further>(std::span<label const>(input_of<input>(b)), weights,
                                         columns_of_labels<S, M>,
                                         detail::samples_of(b) * rows_of_labels<S, M>);
}

/// Counts the terms of all losses.
///
/// throws: data_error as loss_terms does
template <class Batch>
void count_loss_terms(Batch const& b, job_loss& to) {
  to.count(loss_terms_of(b));
  take_further_losses<typename Batch::model>(
      to, [&b]<class S>(std::type_identity<S>) { return further_terms_of<S>(b); });
}

/// Checks the labels and enters them in a job, with the loss's divisor and further losses. To be
/// called after take_inputs.
///
/// throws: data_error as loss_terms does, or if the labels are not of as many samples as the inputs
template <class Batch>
void take_labels(Batch const& b, long per_sample, job& j) {
  check_size({"labels"}, b.labels.size(), std::size_t(j.batch.samples * per_sample));
  j.batch.label = b.labels.data();
  count_loss_terms(b, j.loss);
}

}  // namespace pp::detail
