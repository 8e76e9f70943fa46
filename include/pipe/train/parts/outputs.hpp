// SPDX-License-Identifier: BSL-1.0
//
// The outputs of a trainer's model by name. Each loss has an output, what its chain makes before
// the loss; outputs have the names of the losses.
#pragma once

#include <cstddef>
#include <string_view>
#include <type_traits>

#include <pipe/base/device_span.hpp>
#include <pipe/base/text.hpp>
#include <pipe/data/batch_check.hpp>
#include <pipe/graph/diagnostics.hpp>
#include <pipe/graph/model_tables.hpp>
#include <pipe/plan/compiled/diagnose_pipeline.hpp>
#include <pipe/runtime/job.hpp>
#include <pipe/train/parts/device_batch.hpp>
#include <pipe/train/parts/losses.hpp>

namespace pp::detail {

/// The number of model M's loss with that name, or -1.
template <class M, Text Name>
constexpr int find_loss() {
  int number = 0;
  for (std::string_view const name : names_of_losses<typename M::loss>()) {
    if (name == Name.view()) return number;
    ++number;
  }
  return -1;
}

/// The number of an output; 0 for an output that is not there, which is reported.
template <class M, Text Name>
inline constexpr int output_number = find_loss<M, Name>() < 0 ? 0 : find_loss<M, Name>();

/// The diagnosis of outputs of M by name, each of which is there and is asked for once. An invalid
/// model has been reported already.
template <class M, Text Name, Text... More>
constexpr auto diagnose_outputs() {
  if constexpr (!M::valid)
    return std::type_identity<nothing_wrong>{};
  else if constexpr (find_loss<M, Name>() < 0)
    return say<wrong::model_has_no_loss_with_that_name>(word<M>{}, spell_text<Name>());
  else if constexpr (((Name.view() == More.view()) || ...))
    return say<wrong::name_is_given_twice>(word<M>{}, spell_text<Name>());
  else if constexpr (sizeof...(More) > 0)
    return diagnose_outputs<M, More...>();
  else
    return std::type_identity<nothing_wrong>{};
}

/// Values, whatever the name: the type of an argument for each name of a pack.
template <class Values, Text>
struct named_values {
  using type = Values;
};

/// The output of a name as a part of a batch, for messages.
template <Text Name>
constexpr batch_part output_part() {
  if (Name.view() == "labels") return {"outputs"};
  return {"outputs ", Name.view()};
}

/// Enters the array for output `number`, of `per_sample` numbers, of an inference in a job.
///
/// throws: data_error for a wrong size, or an address that the device cannot write to
template <class Outputs, class Engine>
void take_output(int number, batch_part of, Outputs const& outputs, long per_sample, job& j,
                 [[maybe_unused]] Engine& engine) {
  check_size(of, outputs.size(), std::size_t(j.batch.samples * per_sample));
  j.batch.output[number] = outputs.data();
  j.batch.output_is_on_device = device_list<Outputs>;
  if constexpr (device_list<Outputs> && requires { engine.device_data(); })
    check_readable(engine, of, outputs);
}

/// A trainer that gives the outputs of model M.
template <class Trainer, class M>
struct with_outputs {
  /// Numbers per sample of the output with a name.
  template <Text Name>
  static constexpr long outputs_per_sample_of = [] {
    static_assert(accepted<decltype(diagnose_outputs<M, Name>())>::value);
    return model_tables<M>::loss_inputs[output_number<M, Name>].elements;
  }();

  /// The model's output (logits, before the loss) for n <= samples samples. Of several losses,
  /// `forward<"name">(inputs, outputs)` gives what the chain of the loss with that name makes, and
  /// `forward<"labels", "name">(inputs, outputs, more)` several outputs of one run.
  ///
  /// shape: inputs[n * inputs_per_sample] -> outputs[n * outputs_per_sample_of<Name>] for each name
  /// law:   an output does not depend on the others that a run gives
  /// throws: data_error for inputs or outputs of another size
  template <Text Name = "labels", Text... More, class T = Trainer>
  void forward(typename T::template input_values<0> inputs, typename T::output_values outputs,
               typename named_values<typename T::output_values, More>::type... more) {
    infer<T, Name, More...>(typename T::batch{inputs, {}}, outputs, more...);
  }
  /// The output of a model with further inputs. Labels and inputs of the loss are not read.
  template <Text Name = "labels", Text... More, class T = Trainer>
  void forward(typename T::batch const& b, typename T::output_values outputs,
               typename named_values<typename T::output_values, More>::type... more) {
    infer<T, Name, More...>(b, outputs, more...);
  }
  /// The same from, and to, arrays in device memory. Outputs are there when the call returns.
  template <Text Name = "labels", Text... More, class T = Trainer>
  void forward(typename T::template device_input_values<0> inputs,
               typename T::device_output_values outputs,
               typename named_values<typename T::device_output_values, More>::type... more) {
    infer<T, Name, More...>(typename T::device_batch{inputs, {}}, outputs, more...);
  }
  template <Text Name = "labels", Text... More, class T = Trainer>
  void forward(typename T::device_batch const& b, typename T::device_output_values outputs,
               typename named_values<typename T::device_output_values, More>::type... more) {
    infer<T, Name, More...>(b, outputs, more...);
  }
  template <Text Name = "labels", Text... More, class T = Trainer>
  void forward(typename T::device_batch const& b, typename T::output_values outputs,
               typename named_values<typename T::output_values, More>::type... more) {
    infer<T, Name, More...>(b, outputs, more...);
  }
  template <Text Name = "labels", Text... More, class T = Trainer>
  void forward(typename T::batch const& b, typename T::device_output_values outputs,
               typename named_values<typename T::device_output_values, More>::type... more) {
    infer<T, Name, More...>(b, outputs, more...);
  }

 private:
  template <class T, Text... Names, class Batch, class... Outputs>
  void infer(Batch const& b, Outputs const&... outputs) {
    static_assert(accepted<decltype(diagnose_outputs<M, Names...>())>::value);
    constexpr bool on_device =
        (device_list<Outputs> || ...) || std::is_same_v<Batch, typename T::device_batch>;
    if constexpr (on_device)  // not by a call of its own: the compiler would print that, too
      static_assert(accepted<decltype(diagnose_device_data<typename T::made>())>::value);
    T& t = static_cast<T&>(*this);
    auto const access = t.engine_.enter();
    job j;
    j.what = job::kind::infer;
    t.take(b, j);
    if constexpr (T::compiled::lengths::block > 0)
      (t.dense_.template take_output<output_number<M, Names>>(b, output_part<Names>(), outputs, j),
       ...);
    else
      (take_output(output_number<M, Names>, output_part<Names>(), outputs,
                   outputs_per_sample_of<Names>, j, *t.engine_.operator->()),
       ...);
    t.run(j);
  }
};

}  // namespace pp::detail
