// SPDX-License-Identifier: BSL-1.0
//
// The facade: a model and options in, a trainer out.
#pragma once

#include <concepts>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <pipe/base/checked_index.hpp>
#include <pipe/base/ieee_arithmetic.hpp>
#include <pipe/base/libm.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/base/type_name.hpp>
#include <pipe/optim/learning_rate.hpp>
#include <pipe/runtime/exclusive.hpp>
#include <pipe/optim/setting_check.hpp>
#include <pipe/runtime/host/engine.hpp>
#include <pipe/train/batch_check.hpp>
#include <pipe/train/compiled_pipeline.hpp>
#include <pipe/train/diagnose_pipeline.hpp>
#include <pipe/train/first_fault.hpp>
#include <pipe/train/initial_value.hpp>
#include <pipe/train/inputs.hpp>
#include <pipe/train/loss_terms.hpp>
#include <pipe/train/names.hpp>
#include <pipe/train/settings_elsewhere.hpp>
#include <pipe/train/parameter_view.hpp>

namespace pp {

/// A pipeline that trains a model. Options, in any order: Stages, MicroBatches, MicroBatchSize, a
/// schedule (GPipe, OneFOneB ...), a precision, an optimizer, a backend, a partition (ByCost,
/// ByCount, ByProfile, Cut), HostThreads, MemoryLimit.
///
/// law: loss, gradients and updated parameters do not depend on stages, schedule, partition or
///      threads, bit for bit
/// law: each rank's memory is one allocation of plan.rank_bytes[rank] bytes; a step allocates
///      nothing
/// law: after an exception of any call a trainer is as it was before it, except that a failed run
///      of `step` or `accumulate` forgets what was accumulated; or, if the optimizer itself threw,
///      every later call throws pp::error
///
/// A trainer takes one call at a time, in the process that made it. A call by another thread
/// meanwhile, from one of its own callbacks, in a child of fork() or after a move throws pp::error
/// and changes nothing. Callbacks may call steps(), accumulated(), learning_rate() and
/// allocated_bytes(). The destructor waits for a run of another thread to end. Views of parameters
/// stay valid when the trainer is moved.
template <class Given, class... Options>
class Pipeline : public with_plan<typename made_from<Given, Options...>::compiled> {
  using made = made_from<Given, Options...>;
  using M = typename made::model;
  using diagnosis = typename made::diagnosis;
  static_assert(sizeof(pp::diagnosed(diagnosis{})) >
                0);  // its name is a heading in docs/reference/errors.md
  static constexpr bool reports =
      model_type<Given> && M::valid;  // what is given to its functions: see values_for

 public:
  using compiled = typename made::compiled;
  static_assert(sizeof(pp::diagnosed(compiled::diagnose_memory())) > 0);

  using engine = typename compiled::backend::template engine<compiled>;
  using model = M;
  using element = typename compiled::element;
  using optimizer_type = typename compiled::optimizer;
  using input_type = input_element<M, 0, element>;
  using label_type = std::conditional_t<M::labels_are_ids, int, element>;

  /// Samples of a mini-batch, and numbers per sample.
  static constexpr int samples = compiled::micro_batches * compiled::samples;
  static constexpr long inputs_per_sample = M::graph.inputs[0].form.elements();
  static constexpr long labels_per_sample = compiled::step::label_elements;
  static constexpr long outputs_per_sample = M::graph.output.elements();
  /// Whether there are averages of the parameters: see Averaging.
  static constexpr bool keeps_averages = compiled::averaging::averages;

  /// What a batch is made of, and forward takes: spans, made of whatever a span is made of.
  template <int I, bool Exists = true>
  using input_values =
      values_for<input_element<M, I, element> const, wrong::inputs_have_the_wrong_type,
                 input_item_of<M, I>, reports && Exists>;
  using label_values =
      values_for<label_type const, wrong::labels_have_the_wrong_type, typename M::loss, reports>;
  using output_values = values_for<element, wrong::outputs_have_the_wrong_type, Given, reports>;
  /// Which input has that name; the first if none has.
  template <text Name>
  static constexpr int input_named = find_input<M, Name>() < 0 ? 0 : find_input<M, Name>();

  /// A mini-batch: `samples` samples or fewer, one after the other. It is read where it is, while a
  /// step runs. Further inputs are given by name: `Trainer::batch b{source, labels};
  /// b.set<"target">(ids);`
  struct batch {
    input_values<0> inputs;
    label_values labels;
    further_values<int> named_ids[max_inputs]{};
    further_values<element> named_numbers[max_inputs]{};

    template <text Name>
    batch& set(input_values<input_named<Name>, (find_input<M, Name>() >= 0)> values) {
      static_assert(accepted<decltype(diagnose_name<M, Name>())>::value);
      constexpr int input = input_named<Name>;
      if constexpr (input == 0)
        inputs = values;
      else if constexpr (M::graph.inputs[input].is_ids)
        named_ids[input] = values;
      else
        named_numbers[input] = values;
      return *this;
    }
  };

  struct settings {
    std::uint64_t seed = 0;
    optimizer_type optimizer{};
    /// Multiplies the optimizer's learning rate at step 1, 2, ...: a learning_rate_schedule, or any
    /// other function; none: 1.
    learning_rate_function learning_rate_factor{};
    double clip_value =
        0;  ///< every element of the gradients is moved into [-this, this] first; 0: never
    double clip_norm = 0;  ///< gradients are scaled down to this global norm; 0: never
    machine_settings runtime{};
  };

  /// Throws data_error for a setting that is out of its range: see setting_check.
  explicit Pipeline(settings const& s = settings{})
      : settings_(checked(s)), engine_(s.optimizer, s.runtime) {
    initialize();
  }
  /// Not for settings by names that they do not have here, which are refused: see
  /// settings_elsewhere.
  template <class = void>
  explicit Pipeline(settings_elsewhere<Pipeline, settings> const&) : Pipeline() {}
  Pipeline(Pipeline&&) noexcept = default;
  Pipeline& operator=(Pipeline&&) noexcept = default;
  Pipeline(Pipeline const&) = delete;
  Pipeline& operator=(Pipeline const&) = delete;

  /// One training step. Throws data_error for a batch that does not fit or a learning rate that is
  /// none, not_finite if the loss or a gradient is not a number; parameters and optimizer state are
  /// then as before. So they are after a step that was skipped (FP16).
  step_result step(batch const& b) {
    auto const access = engine_.enter();
    return step_by(b, learning_rate());
  }
  step_result step(batch const& b, double learning_rate) {
    auto const access = engine_.enter();
    return step_by(b, learning_rate);
  }

  /// Keeps the gradients of a mini-batch for the next step, which then trains on all of them as on
  /// one large mini-batch: its loss is the mean over all their labels. Throws as step does. What
  /// was kept stays when a batch is refused (data_error), and is forgotten when a run fails or is
  /// skipped, here and in step, and by parameters_changed.
  ///
  /// law: n calls and a step are one step on a mini-batch of all n + 1, but for rounding
  step_result accumulate(batch const& b) {
    auto const access = engine_.enter();
    require_parameters_in_place();
    job j = prepare(b, job::kind::train);
    j.updates = false;
    j.is_continued = true;
    return add_up(j);
  }
  /// Mini-batches that wait for the next step.
  int accumulated() const { return engine_.require(), accumulated_.count; }

  /// Loss and gradients of a mini-batch, without an update.
  step_result gradients(batch const& b) {
    auto const access = engine_.enter();
    return engine_->run(prepare_gradients(b));
  }
  /// The same; see(launch_seen) is called after every launch, on the thread of the rank that ran
  /// it: ranks call at the same time. What it throws is thrown here, after all ranks have stopped.
  template <std::invocable<launch_seen const&> See>
  step_result watch(batch const& b, See see) {
    auto const access = engine_.enter();
    job j = prepare_gradients(b);
    j.watch = [](void* self, launch_seen const& seen) { (*static_cast<See*>(self))(seen); };
    j.watcher = &see;
    return engine_->run(j);
  }

  /// The loss of a mini-batch. Changes nothing, and so returns what comes out: NaN if there is one
  /// in the batch that counts.
  double evaluate(batch const& b) {
    auto const access = engine_.enter();
    return engine_->run(prepare(b, job::kind::evaluate)).loss;
  }

  /// What the loss of a mini-batch is a mean over: the sum of the weights of the rows with a label
  /// of 0 or more, or of the elements; each weighs 1 if the loss takes no weights. 0 if nothing
  /// counts; 1 for a sum. Losses of mini-batches are averaged with it. Throws data_error for labels
  /// and weights that evaluate refuses, of which there may be any number.
  static double loss_terms(batch const& b) {
    return pp::loss_terms<typename M::loss>(std::span<label_type const>(b.labels), weights_of(b),
                                            long(M::graph.output.columns()));
  }

  /// The model's output (logits, before the loss) for n <= samples samples.
  ///
  /// shape: inputs[n * inputs_per_sample] -> outputs[n * outputs_per_sample]
  void forward(input_values<0> inputs, output_values outputs) {
    forward(batch{inputs, {}}, outputs);
  }
  /// The same for a model with further inputs; labels and what only the loss reads are not read.
  void forward(batch const& b, output_values outputs) {
    auto const access = engine_.enter();
    job j;
    j.what = job::kind::infer;
    take_inputs(b, j);
    check_size({"outputs"}, outputs.size(), std::size_t(j.samples * outputs_per_sample));
    j.output = outputs.data();
    engine_->run(j);
  }

  /// All parameters in model order, shared ones once, constant tables not at all. After writing to
  /// them call parameters_changed().
  std::vector<parameter_view<element>> parameters() {
    auto const access = engine_.enter();
    return views(&chunk_description::values);
  }
  /// To be called after values were written through a view, as load_weights and copy_weights do.
  /// Forgets what was accumulated: those are gradients at other parameters.
  void parameters_changed() {
    auto const access = engine_.enter();
    accumulated_ = accumulation{};
    engine_->parameters_changed();
  }

  /// The average of each parameter, in place, in the same order; of one that is not trained the
  /// parameter.
  std::vector<parameter_view<element>> averaged() {
    static_assert(accepted<decltype(diagnose_averages())>::value);
    auto const access = engine_.enter();
    return views(&chunk_description::average);
  }
  /// Puts the averages where the parameters are, and the other way round, so that evaluate and
  /// forward work with them. Called again, swaps back; until then step and accumulate throw
  /// pp::error. What was accumulated stays.
  void swap_averages() {
    static_assert(accepted<decltype(diagnose_averages())>::value);
    auto const access = engine_.enter();
    for (int c = 0; c < compiled::stages; ++c) {
      if (!engine::is_local(c)) continue;
      chunk_description const& chunk = compiled::memory().chunks[c];
      char* const values = engine_->memory(c) + chunk.values;
      char* const averages = engine_->memory(c) + chunk.average;
      for (long i = 0; i < chunk.trained_bytes; ++i) std::swap(values[i], averages[i]);
    }
    averages_are_in_ = !averages_are_in_;
    engine_->parameters_changed();
  }

  /// What the next step takes as its learning rate unless it is given one. Throws data_error if
  /// learning_rate_factor gives none.
  double learning_rate() const {
    engine_.require();
    if (!settings_.learning_rate_factor) return settings_.optimizer.learning_rate;
    double const factor = settings_.learning_rate_factor(steps_ + 1);
    if (!setting_check::is_amount(factor))
      complain<data_error>({"learning_rate_factor(", steps_ + 1, "): expected ",
                            setting_check::amounts, ", got ", factor});
    return settings_.optimizer.learning_rate * factor;
  }
  /// Training steps done.
  long steps() const { return engine_.require(), steps_; }
  /// Bytes allocated for a rank. Throws data_error if there is no such rank.
  long allocated_bytes(int rank) const {
    return engine_->bytes(checked_index<data_error>("rank", rank, compiled::ranks));
  }
  /// The actions that a rank executed in the last run, in order, with their times. Throws
  /// data_error if there is no such rank.
  std::span<executed_action const> executed(int rank) const {
    auto const access = engine_.enter();
    int const r = checked_index<data_error>("rank", rank, compiled::ranks);
    return {engine_->executed(r), std::size_t(engine_->executed_count(r))};
  }
  /// The type of a top-level layer (from 0), as `explain` prints it. Throws data_error if there is
  /// no such layer.
  static std::string layer_name(int layer) {
    return std::string(
        spelled_layer(checked_index<data_error>("layer", layer, M::graph.size.units)));
  }
  /// What the kernels run on: an instruction set, or a device.
  auto runs_on() const { return engine_->runs_on(); }

 private:
  static settings checked(settings s) {
    require_ieee_arithmetic();
    compiled::check_at_construction();
    setting_check const of_optimizer(optimizer_type::name), of_trainer;
    of_optimizer.amount("learning_rate", s.optimizer.learning_rate);
    if constexpr (checked_settings<optimizer_type>) s.optimizer.check(of_optimizer);
    s.learning_rate_factor.check(setting_check("learning_rate_factor"));
    of_trainer.amount("clip_value", s.clip_value);
    of_trainer.amount("clip_norm", s.clip_norm);
    return s;
  }
  static std::string_view spelled_layer(int layer) {
    return [&]<class... L>(layers<L...>) {
      std::string_view const names[] = {type_name<L>()...};
      return names[M::graph.units[layer].leaf];
    }(typename M::leaves{});
  }
  /// What is wrong with asking for averages.
  static constexpr auto diagnose_averages() {
    if constexpr (compiled::averaging::averages || !made::fine)
      return std::type_identity<nothing_wrong>{};
    else
      return diagnosis_of<wrong::pipeline_keeps_no_averages, typename compiled::averaging>();
  }
  /// All parameters but constant tables, as they are in one of the flat regions that hold them.
  std::vector<parameter_view<element>> views(long chunk_description::* region) {
    std::vector<parameter_view<element>> all;
    for_each_place([&](char* memory, chunk_description const& chunk, parameter_place const& p) {
      parameter const& of = M::graph.parameters[p.index];
      if (is_table(of.initial.kind)) return;
      auto const at = [&](long start) {
        return reinterpret_cast<element*>(memory + start + p.offset);
      };
      std::size_t const n = std::size_t(p.elements());
      parameter_name const& file = parameter_names<M>()[std::size_t(p.index)];
      all.push_back({p.index,
                     of.unit,
                     file.name,
                     file_shape(of, file.transposed),
                     file.transposed,
                     p.rows,
                     p.columns,
                     {at(p.trained ? chunk.*region : chunk.values), n},
                     {at(chunk.gradients), p.trained ? n : 0}});
    });
    return all;
  }
  static std::vector<long> file_shape(parameter const& p, bool transposed) {
    if (p.kind == tensor_kind::vector) return {p.columns};
    return transposed ? std::vector<long>{p.columns, p.rows} : std::vector<long>{p.rows, p.columns};
  }
  /// Where each parameter is that is not shared with an earlier one, in the order of the model.
  template <class Use>
  void for_each_place(Use const& use) {
    for (int c = 0; c < compiled::stages; ++c) {
      if (!engine::is_local(c)) continue;
      chunk_description const& chunk = compiled::memory().chunks[c];
      for (int i = 0; i < chunk.parameter_count; ++i)
        if (!chunk.parameters[i].shared) use(engine_->memory(c), chunk, chunk.parameters[i]);
    }
  }

  /// Counts the samples and takes every input. They must be as many in each.
  static void take_inputs(batch const& b, job& j) {
    std::size_t const per_sample = std::size_t(inputs_per_sample), n = b.inputs.size() / per_sample;
    if (n < 1 || n > std::size_t(samples) || b.inputs.size() % per_sample != 0)
      complain<data_error>({"inputs: expected 1 to ", samples, " samples of ", per_sample,
                            " numbers, got ", b.inputs.size(), " numbers"});
    j.samples = int(n);
    [&]<int... I>(std::integer_sequence<int, I...>) {
      (take_input<I>(b, n, j), ...);
    }(std::make_integer_sequence<int, M::graph.size.inputs>{});
  }
  template <int I>
  static auto input_of(batch const& b) {
    if constexpr (I == 0)
      return b.inputs;
    else if constexpr (M::graph.inputs[I].is_ids)
      return b.named_ids[I];
    else
      return b.named_numbers[I];
  }
  template <int I>
  static void take_input(batch const& b, std::size_t n, job& j) {
    constexpr input_record in = M::graph.inputs[I];
    if (in.of_loss && j.what == job::kind::infer) return;
    auto const values = input_of<I>(b);
    std::size_t const expected = n * std::size_t(in.form.elements());
    if constexpr (I > 0) check_size({"input ", input_name<M, I>()}, values.size(), expected);
    if constexpr (in.is_ids) check_ids("token", values, -1, in.vocabulary);
    j.input[I] = values.data();
  }

  /// The weights of a batch's rows; none if the loss takes none.
  static std::span<element const> weights_of(batch const& b) {
    if constexpr (M::loss::is_weighted) return input_of<input_named<M::loss::weights::name>>(b);
    (void)b;
    return {};
  }

  job prepare(batch const& b, job::kind what) {
    job j;
    j.what = what;
    take_inputs(b, j);
    check_size({"labels"}, b.labels.size(), std::size_t(j.samples * labels_per_sample));
    j.label = b.labels.data();
    j.counted = loss_terms(b);
    j.loss_terms = j.gradient_terms = j.counted > 0 ? j.counted : 1;
    j.seed = settings_.seed;
    j.step = steps_ + 1;
    return j;
  }

  step_result step_by(batch const& b, double learning_rate) {
    setting_check().amount("learning_rate", learning_rate);
    require_parameters_in_place();
    job j = prepare(b, job::kind::train);
    j.learning_rate = learning_rate;
    j.clip_value = settings_.clip_value;
    j.clip_norm = settings_.clip_norm;
    step_result const r = add_up(j);
    accumulated_ = accumulation{};
    if (!r.skipped) ++steps_;
    return r;
  }

  void require_parameters_in_place() const {
    if (averages_are_in_)
      complain<error>(
          {"step ", steps_ + 1, ": averages stand in for the parameters; swap them out first"});
  }

  job prepare_gradients(batch const& b) {
    if (accumulated_.count > 0)
      throw error("gradients: those of accumulated mini-batches wait for a step");
    job j = prepare(b, job::kind::train);
    j.updates = false;
    return j;
  }

  /// Mini-batches whose gradients wait for a step. Gradients are made as if the first were alone,
  /// and scaled at the end.
  struct accumulation {
    int count = 0;
    double first_terms = 0, counted = 0, loss = 0;  // the loss summed over all terms
    long samples = 0;
  };

  /// Runs a mini-batch on top of what was accumulated. The loss and the norm are of all of it.
  step_result add_up(job& j) {
    accumulation all =
        std::exchange(accumulated_, accumulation{});  // forgotten, unless the run goes well
    if (all.count == 0) all.first_terms = j.loss_terms;
    j.continues = all.count > 0;
    j.first_sample = all.samples;
    all.counted = M::loss::sums ? 1 : all.counted + j.counted;
    double const terms = all.counted > 0 ? all.counted : 1;
    j.gradient_terms = all.first_terms;
    j.gradient_scale = all.first_terms / terms;
    step_result r = engine_->run(j);
    if (r.skipped) return r;
    if (!libm::isfinite(r.loss) || !libm::isfinite(r.gradient_norm))
      reject(j, all.count == 0 ? "" : ", with what was accumulated");
    all.loss += r.loss * j.loss_terms;
    ++all.count;
    all.samples += j.samples;
    accumulated_ = all;
    if (all.count > 1) r.loss = all.loss / terms;
    return r;
  }

  PIPE_COLD void reject_if_given(batch_part of, void const* values, long per_sample, job const& j,
                                 char const* with) const {
    element const* const x = static_cast<element const*>(values);
    long const count = j.samples * per_sample, i = first_not_finite(x, count);
    if (i < count)
      complain<not_finite>({"step ", steps_ + 1, " rejected", with, ": ", of.what, of.quote(),
                            of.name, of.quote(), ": ", double(x[i]), " at position ", i,
                            " (sample ", i / per_sample, ")"});
  }
  PIPE_COLD void reject_if_of_parameters(char const* with) {
    for_each_place([&](char* memory, chunk_description const& chunk, parameter_place const& p) {
      element const* const values = reinterpret_cast<element*>(memory + chunk.values + p.offset);
      long const i = first_not_finite(values, p.elements());
      int const layer = M::graph.parameters[p.index].unit;
      if (i < p.elements())
        complain<not_finite>({"step ", steps_ + 1, " rejected", with, ": a parameter of layer ",
                              layer, " (", spelled_layer(layer), "), ", p.rows, " x ", p.columns,
                              ": ", double(values[i]), " at position ", i,
                              ", written or made by an update of an earlier step: was its learning "
                              "rate too large?"});
    });
  }
  /// Says where the first number is that is not finite: among those given, the parameters, or else,
  /// as the mini-batch runs again, among those made.
  [[noreturn]] PIPE_COLD void reject(job& j, char const* with) {
    [&]<int... I>(std::integer_sequence<int, I...>) {
      ((M::graph.inputs[I].is_ids
            ? void()
            : reject_if_given(
                  {I == 0 ? "inputs" : "input ", I == 0 ? std::string_view() : input_name<M, I>()},
                  j.input[I], M::graph.inputs[I].form.elements(), j, with)),
       ...);
    }(std::make_integer_sequence<int, M::graph.size.inputs>{});
    if (!M::labels_are_ids) reject_if_given({"labels"}, j.label, labels_per_sample, j, with);
    reject_if_of_parameters(with);
    first_fault search(compiled::ranks);
    j.updates = false;
    j.watch = &first_fault::watch;
    j.watcher = &search;
    engine_->run(j);
    if (fault_place const* const p = search.found())
      complain<not_finite>({"step ", steps_ + 1, " rejected", with,
                            ": a number that is not finite first appears in ",
                            p->forward ? "forward" : "backward", " of micro-batch ", p->micro_batch,
                            ", stage ", p->chunk, ", layer ", p->layer, " (",
                            spelled_layer(p->layer), ")"});
    complain<not_finite>({"step ", steps_ + 1, " rejected", with,
                          ": the loss or the gradient norm is not a finite number, though all that "
                          "they are made of is"});
  }

  void initialize() {
    for_each_place([&](char* memory, chunk_description const& chunk, parameter_place const& p) {
      element* const values = reinterpret_cast<element*>(memory + chunk.values + p.offset);
      initializer const how = M::graph.parameters[p.index].initial;
      for (long e = 0; e < p.elements(); ++e)
        values[e] = initial_value<element>(how, settings_.seed, p, e);
      if (compiled::averaging::averages && p.trained)
        std::memcpy(memory + chunk.average + p.offset, values,
                    sizeof(element) * std::size_t(p.elements()));
    });
    engine_->parameters_changed();
  }

  settings settings_;
  long steps_ = 0;
  accumulation accumulated_;
  bool averages_are_in_ = false;
  exclusive<engine> engine_;  // last: its destructor waits for a run, which needs the others
};

}  // namespace pp
