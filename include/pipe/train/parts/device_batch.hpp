// SPDX-License-Identifier: BSL-1.0
//
// A mini-batch in a GPU's memory, and its checks before a run: those of a batch in the host's
// memory, by kernels.
#pragma once

#include <cstddef>
#include <limits>
#include <type_traits>
#include <utility>

#include <pipe/base/device_span.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/runtime/job.hpp>
#include <pipe/backend/value_check.hpp>
#include <pipe/train/parts/batch.hpp>
#include <pipe/data/batch_check.hpp>
#include <pipe/data/inputs.hpp>

namespace pp::detail {

/// A device_span of T, of a list in device memory: a device_span or a thrust::device_vector. A list
/// of other elements in device memory is one error: see values_for. Not of an address and a size,
/// since `step({{inputs, n}, {labels, m}})` is a mini-batch in the host's memory.
template <class T, wrong::diagnosis Wrong, class Item, bool Reports>
struct device_values_for : device_span<T> {
  constexpr device_values_for() = default;
  template <device_list List>
  constexpr device_values_for(List&& list) : device_span<T>(span_of(list)) {}

 private:
  template <class List>
  static constexpr device_span<T> span_of([[maybe_unused]] List& list) {
    if constexpr (std::constructible_from<device_span<T>, List&>) {
      return device_span<T>(list);
    } else {
      if constexpr (Reports)
        static_assert(
            accepted<decltype(say<Wrong>(word<Item>{}, spell_expected<std::remove_const_t<T>>(),
                                         spell_found(address_in(list))))>::value);
      return {};
    }
  }
  template <class List>
  static constexpr auto address_in(List& list) {
    if constexpr (requires { list.data().get(); })
      return list.data().get();
    else
      return list.data();
  }
};

/// A mini-batch of model M in device memory, as batch_of is in the host's memory:
/// `Trainer::device_batch b{inputs, labels}; b.set<"target">(ids);`
template <class M, class Element, bool Reports>
struct device_batch_of {
  using model = M;
  using element = Element;
  using label_type = typename batch_of<M, Element, Reports>::label_type;
  template <int Index, bool Exists = true>
  using input_values =
      device_values_for<input_element<M, Index, Element> const, wrong::inputs_have_the_wrong_type,
                        input_item_of<M, Index>, Reports && Exists>;
  using label_values = device_values_for<label_type const, wrong::labels_have_the_wrong_type,
                                         typename M::loss, Reports>;
  /// See batch_of.
  template <Text Name>
  static constexpr int input_named = find_input<M, Name>() < 0 ? 0 : find_input<M, Name>();

  constexpr device_batch_of(input_values<0> of_inputs, label_values of_labels)
      : inputs(of_inputs), labels(of_labels) {}

  input_values<0> inputs;
  label_values labels;
  // By input number. An input has its list in one of the two arrays, by its type. Entry 0 is not
  // used.
  device_span<int const> named_ids[max_inputs]{};
  device_span<Element const> named_numbers[max_inputs]{};
  void* stream = nullptr;

  /// Sets an input by its name in the model.
  template <Text Name>
  device_batch_of& set(input_values<input_named<Name>, (find_input<M, Name>() >= 0)> values) {
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
  /// Sets the stream, a cudaStream_t, behind whose work the arrays are read. Without this call it
  /// is the default stream of the file that makes the call.
  device_batch_of& ready_on(void* on) {
    stream = on;
    return *this;
  }
};

/// The checks of a mini-batch in device memory, and the exceptions for checks that fail.
template <class M>
class device_checks {
 public:
  /// Notes the check that ids are in [least, end). `what`: for messages.
  void ids(char const* what, device_span<int const> values, int least, int end) {
    add(check::ids, what, values, {values.data(), long(values.size()), true, least, end - 1, 0, 0});
  }
  /// Notes the check that targets are in the range of a loss, if the loss has a range.
  template <class Loss, class T>
  void targets(device_span<T const> values) {
    if constexpr (requires { Loss::least_target; }) {
      reject_target_[count_] = &reject_target<Loss>;
      add(check::target, "", values,
          {values.data(), long(values.size()), false, 0, 0, float(Loss::least_target),
           float(Loss::most_target)});
    }
  }
  template <class T>
  void weights(device_span<T const> values) {
    add(check::weight, "", values,
        {values.data(), long(values.size()), false, 0, 0, 0, std::numeric_limits<T>::max()});
  }

  /// Runs all checks behind what was put on a stream.
  ///
  /// throws: data_error for the first value that is out of range, as check_ids, check_targets and
  ///         check_weights do
  template <class Engine>
  void run(Engine& engine, void* stream) {
    engine.device_data().look(of_, count_, found_, stream);
    for (int i = 0; i < count_; ++i)
      if (found_[i].first < of_[i].count) reject(engine, i);
  }
  /// After run(): the number of ids that are not -1. needs: these ids have been checked
  long counted(device_span<int const> ids) const {
    int i = 0;
    while (of_[i].values != ids.data()) ++i;
    return found_[i].counted;
  }

 private:
  /// The kinds of checks, which differ in the message.
  enum class check : unsigned char { ids, target, weight };

  /// Notes the check of an array; all arrays are checked in one launch.
  template <class T>
  void add(check kind, char const* what, device_span<T const>, value_check const& c) {
    kind_[count_] = kind;
    what_[count_] = what;
    of_[count_++] = c;
  }
  /// Throws data_error for the value that check i has found, which is downloaded for the message.
  template <class Engine>
  [[noreturn, gnu::cold]] void reject(Engine& engine, int i) {
    value_check const& c = of_[i];
    long const at = found_[i].first;
    if (kind_[i] == check::ids) {
      int id = 0;
      engine.download(&id, static_cast<int const*>(c.values) + at, sizeof id);
      reject_id(what_[i], id, at, c.least_id, c.most_id + 1);
    }
    float value = 0;
    engine.download(&value, static_cast<float const*>(c.values) + at, sizeof value);
    if (kind_[i] == check::target) reject_target_[i](double(value), at);
    reject_weight(double(value), at);
  }

  value_check of_[most_checks];
  checked_values found_[most_checks];
  check kind_[most_checks]{};
  char const* what_[most_checks]{};
  void (*reject_target_[most_checks])(double, long){};
  int count_ = 0;
};

/// Throws data_error unless a device can read an array: an address of the host's memory would end
/// the process, or worse, in the first kernel that reads it.
template <class Engine, class T>
void check_readable(Engine& engine, batch_part of, device_span<T> values) {
  if (!engine.device_data().is_readable(values.data()))
    throw_error<data_error>({of.what, of.quote(), of.name, of.quote(),
                             ": expected numbers in the memory of the device, got an address of "
                             "the host's"});
}

/// The divisor of a loss of a batch of `rows` rows of `columns` columns: see loss_terms. To be
/// called after the checks.
template <class Loss, class T, class Batch, class Engine>
double device_loss_terms(Batch const& b, device_span<T const> labels, int columns, long rows,
                         device_checks<typename Batch::model> const& checks, Engine& engine) {
  if constexpr (Loss::sums) {
    return 1;
  } else if constexpr (Loss::is_weighted || Loss::weighs_classes) {
    int const* ids = nullptr;
    float const* weights = nullptr;
    if constexpr (Loss::labels_are_ids) ids = labels.data();
    if constexpr (Loss::is_weighted)
      weights = input_of<Batch::template input_named<Loss::weights::name>>(b).data();
    return engine.device_data().template sum_weights<Loss>(ids, weights, rows,
                                                           double(terms_of_row<Loss>(columns)));
  } else if constexpr (Loss::labels_are_ids) {
    return double(checks.counted(labels));
  } else {
    return double(rows * terms_of_row<Loss>(columns));
  }
}

/// Checks the arrays of a batch in device memory and enters them in a job, with the loss's divisor
/// unless it is an inference. Waits for what was put on the batch's stream.
///
/// throws: data_error as take_inputs and take_labels do, or for an address that the device cannot
///         read
template <class Batch, class Engine>
void take_device_batch(Batch const& b, int most, long labels_per_sample, job& j, Engine& engine) {
  using M = typename Batch::model;
  constexpr int columns = model_tables<M>::output.columns();
  bool const has_labels = j.what != job::kind::infer;
  device_span<typename Batch::label_type const> const labels = b.labels;
  device_checks<M> checks;
  auto const check_loss = [&]<class Loss>(std::type_identity<Loss>, [[maybe_unused]] auto of) {
    if constexpr (!Loss::labels_are_ids) checks.template targets<Loss>(of);
    if constexpr (Loss::is_weighted)
      checks.weights(input_of<Batch::template input_named<Loss::weights::name>>(b));
  };
  j.batch.place = data_place::device;
  j.batch.stream = b.stream;
  take_inputs(b, most, j, checks);
  [&]<int... Is>(std::integer_sequence<int, Is...>) {
    auto const look = [&]<int K>(std::integral_constant<int, K>) {
      if (j.batch.input[K] == nullptr) return;
      check_readable(
          engine, {K == 0 ? "inputs" : "input ", K == 0 ? std::string_view() : input_name<M, K>()},
          input_of<K>(b));
    };
    (look(std::integral_constant<int, Is>{}), ...);
  }(std::make_integer_sequence<int, M::graph_type::size.inputs>{});
  if (has_labels) {
    check_size({"labels"}, b.labels.size(), std::size_t(j.batch.samples * labels_per_sample));
    check_readable(engine, {"labels"}, b.labels);
    j.batch.label = b.labels.data();
    if constexpr (M::labels_are_ids) checks.ids("label", b.labels, -1, int(columns));
    check_loss(std::type_identity<typename M::loss>{}, labels);
    // Ids of further losses have been checked as inputs.
    for_each_further_loss<M>([&]<class S>(std::type_identity<S> loss) {
      check_loss(loss, input_of<input_of_labels<S, M>>(b));
    });
  }
  checks.run(engine, b.stream);
  if (!has_labels) return;
  j.loss.count(device_loss_terms<typename M::loss>(
      b, labels, columns, detail::samples_of(b) * model_tables<M>::output.rows(), checks, engine));
  take_further_losses<M>(j.loss, [&]<class S>(std::type_identity<S>) {
    return device_loss_terms<S>(b, input_of<input_of_labels<S, M>>(b), columns_of_labels<S, M>,
                                detail::samples_of(b) * rows_of_labels<S, M>, checks, engine);
  });
}

}  // namespace pp::detail
