// SPDX-License-Identifier: BSL-1.0
//
// The facade of the library: a trainer for a model, compiled with its options.
#pragma once

#include <concepts>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <pipe/base/checked_index.hpp>
#include <pipe/base/libm.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/checkpoint/with_checkpoints.hpp>
#include <pipe/optim/learning_rate.hpp>
#include <pipe/optim/setting_check.hpp>
#include <pipe/plan/compiled/compiled_pipeline.hpp>
#include <pipe/plan/compiled/diagnose_pipeline.hpp>
#include <pipe/runtime/exclusive.hpp>
#include <pipe/runtime/host/engine.hpp>
#include <pipe/runtime/runtime_of.hpp>
#include <pipe/train/parts/accumulated_batches.hpp>
#include <pipe/train/parts/accumulation_runs.hpp>
#include <pipe/train/parts/averages.hpp>
#include <pipe/train/parts/batch.hpp>
#include <pipe/train/parts/device_batch.hpp>
#include <pipe/train/parts/find_nonfinite.hpp>
#include <pipe/train/parts/initialize_parameters.hpp>
#include <pipe/train/parts/input_gradients.hpp>
#include <pipe/train/parts/lengths.hpp>
#include <pipe/train/parts/losses.hpp>
#include <pipe/train/parts/outputs.hpp>
#include <pipe/train/parts/prefetched.hpp>
#include <pipe/train/parts/refused_calls.hpp>
#include <pipe/train/parts/setting_checks.hpp>
#include <pipe/train/parts/settings_elsewhere.hpp>
#include <pipe/train/parts/trainer_processes.hpp>
#include <pipe/train/parts/trainer_settings.hpp>
#include <pipe/train/parts/training.hpp>
#include <pipe/train/parts/view_parameters.hpp>

namespace pp {

/// A pipeline-parallel trainer of a model. Options, in any order: Stages, MicroBatches,
/// MicroBatchSize, GradientAccumulation, a schedule (GPipe, OneFOneB ...), a precision, an
/// optimizer, a backend, a partition (ByCost, ByCount, ByProfile, Cut), a recompute policy,
/// Averaging, HostThreads, MemoryLimit.
///
/// law: loss, gradients and updated parameters do not depend on stages, schedule, partition or
///      threads, bit for bit
/// law: a rank's memory is one allocation of plan.rank_bytes[rank] bytes; steps allocate nothing
/// law: an exception from a call leaves the trainer as it was. But a failed run of `step` or
///      `accumulate` discards accumulated gradients, and after an exception from the optimizer
///      itself every later call throws pp::error
///
/// A trainer takes one call at a time, in the process that constructed it. A concurrent call, a
/// call from its own callbacks, in a child of fork() or after a move throws pp::error without
/// effect. Callbacks may call steps(), accumulated(), learning_rate() and allocated_bytes(). The
/// destructor waits for another thread's run to end. Views of parameters survive a move.
template <class Given, class... Options>
class Pipeline
    : public detail::with_plan<typename detail::made_from<Given, Options...>::compiled>,
      public detail::with_checkpoints<Pipeline<Given, Options...>>,
      public detail::with_training<Pipeline<Given, Options...>>,
      private detail::refused_calls<Pipeline<Given, Options...>, step_result>,
      public detail::with_losses<Pipeline<Given, Options...>,
                                 typename detail::made_from<Given, Options...>::model>,
      public detail::with_outputs<Pipeline<Given, Options...>,
                                  typename detail::made_from<Given, Options...>::model>,
      public detail::with_input_gradients<Pipeline<Given, Options...>,
                                          typename detail::made_from<Given, Options...>::model> {
  using made = detail::made_from<Given, Options...>;
  using M = typename made::model;
  using diagnosis = typename made::diagnosis;
  using prefetched_batch = detail::prefetched_batch;
  using refused_calls = detail::refused_calls<Pipeline, step_result>;
  using accumulated_batches = detail::accumulated_batches<detail::losses_in<typename M::loss>>;
  // The name of the diagnosis is a heading in docs/reference/errors.md.
  static_assert(decltype(detail::diagnosed(diagnosis{}))::ok);
  // Whether wrong arguments of member functions are reported: see values_for.
  static constexpr bool reports = detail::model_type<Given> && M::valid;

 public:
  using compiled = typename made::compiled;
  static_assert(decltype(detail::diagnosed(compiled::diagnose_memory()))::ok);

  using engine = typename detail::runtime_of<typename compiled::backend>::template engine<compiled>;
  using model = M;
  using element = typename compiled::element;
  using optimizer_type = typename compiled::optimizer;
  using batch = detail::batch_of<M, element, reports, typename compiled::lengths>;
  /// A mini-batch in the memory of the GPU that trains. Calls take it where they take a batch.
  using device_batch = detail::device_batch_of<M, element, reports>;
  using input_type = detail::input_element<M, 0, element>;
  using label_type = typename batch::label_type;

  /// Samples of a full mini-batch (see batch_samples), and elements per sample.
  static constexpr int samples =
      compiled::sum::accumulations * compiled::micro_batches * compiled::samples;
  static constexpr long inputs_per_sample = detail::model_tables<M>::inputs[0].form.elements();
  static constexpr long labels_per_sample =
      compiled::step::label_elements(detail::model_tables<M>::outline);
  static constexpr long outputs_per_sample = detail::model_tables<M>::output.elements();
  /// Whether averages of the parameters are kept: see Averaging.
  static constexpr bool keeps_averages = compiled::averaging::averages;

  /// Arguments of forward: constructible from everything from which a std::span is.
  template <int Index>
  using input_values = typename batch::template input_values<Index>;
  using output_values =
      detail::values_for<element, wrong::outputs_have_the_wrong_type, Given, reports>;
  /// Arguments of forward in device memory.
  template <int Index>
  using device_input_values = typename device_batch::template input_values<Index>;
  using device_output_values =
      detail::device_values_for<element, wrong::outputs_have_the_wrong_type, Given, reports>;

  using settings = detail::trainer_settings<optimizer_type>;
  using refused_calls::step, refused_calls::accumulate, refused_calls::gradients;

  /// Allocates the ranks' memory, starts their threads and initializes the parameters.
  ///
  /// throws: data_error for a setting out of range: see setting_check; pp::error if threads or
  ///         memory are not available
  explicit Pipeline(settings const& s = settings{})
      : settings_(detail::checked_settings_of<compiled>(s)), engine_(s.optimizer, s.runtime) {
    runs_.state(*engine_.operator->(), settings_.runtime.speed);
    auto const all = parameter_places();
    detail::initialize_parameters<M, element, keeps_averages>(all, settings_.seed);
    engine_->parameters_changed();
  }
  /// Catches settings by the names of other frameworks, which are errors: see settings_elsewhere.
  template <class = void>
  explicit Pipeline(detail::settings_elsewhere<Pipeline, settings> const&) : Pipeline() {}
  /// Catches a number, as if it were a learning rate: see refused_calls.
  template <class Number>
    requires std::is_arithmetic_v<Number>
  explicit Pipeline(Number) : Pipeline(detail::refused_settings<Pipeline, Number>()) {}
  Pipeline(Pipeline&&) noexcept = default;
  Pipeline& operator=(Pipeline&&) noexcept = default;
  Pipeline(Pipeline const&) = delete;
  Pipeline& operator=(Pipeline const&) = delete;

  /// One training step. Parameters and optimizer state are unchanged if it throws or is skipped
  /// (FP16).
  ///
  /// throws: data_error for a batch or a learning rate out of range, and if no label counts;
  ///         not_finite if the loss or a gradient is not finite
  step_result step(batch const& b) {
    auto const access = engine_.enter();
    return step_by(b, learning_rate());
  }
  /// One training step with a given learning rate instead of learning_rate().
  step_result step(batch const& b, double learning_rate) {
    auto const access = engine_.enter();
    return step_by(b, learning_rate);
  }
  /// The same on arrays in device memory. Their contents are those after all work that the program
  /// has put on the batch's stream before the call. Every call below that takes a batch does so.
  step_result step(device_batch const& b) {
    auto const access = enter_with_device_data();
    return step_by(b, learning_rate());
  }
  step_result step(device_batch const& b, double learning_rate) {
    auto const access = enter_with_device_data();
    return step_by(b, learning_rate);
  }

  /// Gives a mini-batch for a later call on pp::prefetched; two may wait. Needs Prefetching. A GPU
  /// uploads the mini-batch at once if none waits, else during the call on the waiting mini-batch.
  ///
  /// needs:  if a mini-batch waits, the arrays stay as they are until the call on it has returned
  /// throws: data_error for a batch out of range; error if two wait
  void prefetch(batch const& b) {
    auto const access = enter_with_prefetched();
    prefetched_.require_room();
    detail::job const j = prepare(detail::batch_ahead<batch>{b}, detail::job::kind::train);
    prefetched_.add(j, runs_.here(j), detail::list_bytes(b), *engine_.operator->());
  }
  /// The calls on the mini-batch that was prefetched first, which is used up unless the call throws
  /// data_error. The results are those of the same batch.
  ///
  /// throws: also error if none waits
  step_result step(prefetched_batch b) {
    auto const access = enter_with_prefetched();
    return step_by(b, learning_rate());
  }
  step_result step(prefetched_batch b, double learning_rate) {
    auto const access = enter_with_prefetched();
    return step_by(b, learning_rate);
  }
  step_result accumulate(prefetched_batch b) { return accumulate_on(enter_with_prefetched(), b); }
  step_result gradients(prefetched_batch b) { return gradients_on(enter_with_prefetched(), b); }

  /// Accumulates the gradients of a mini-batch for the next step, which then trains on all of them
  /// as one large mini-batch: its loss is the mean over all labels. Not for a mini-batch of several
  /// accumulations, which is already such a sum. Accumulated gradients survive a rejected batch
  /// (data_error); they are discarded by parameters_changed, and by a run that fails or is skipped,
  /// here or in step. Several losses whose terms have no fixed proportion are counted ahead: see
  /// count_terms.
  ///
  /// law: n calls and a step equal one step on a mini-batch of all n + 1, up to rounding
  /// throws: as step does
  step_result accumulate(batch const& b) { return accumulate_on(engine_.enter(), b); }
  step_result accumulate(device_batch const& b) {
    return accumulate_on(enter_with_device_data(), b);
  }
  /// The accumulations of a mini-batch (see GradientAccumulation), and its most samples.
  int accumulations() const { return runs_.accumulations; }
  int batch_samples() const { return runs_.accumulations * runs_.samples; }
  /// Those that run in this process: how many, and the number in the mini-batch of one of them.
  int own_accumulations() const { return runs_.count(); }
  int own_accumulation(int i) const {
    return runs_.number_of(detail::checked_index<data_error>("accumulation", i, runs_.count()));
  }
  /// Number of mini-batches accumulated for the next step.
  int accumulated() const { return engine_.require(), accumulated_.count(); }

  /// Loss and gradients of a mini-batch, without an update. Without labels: NaN and zeros.
  step_result gradients(batch const& b) { return gradients_on(engine_.enter(), b); }
  step_result gradients(device_batch const& b) { return gradients_on(enter_with_device_data(), b); }
  /// gradients() with a watcher: see(launch_seen) is called after every launch, on the thread of
  /// the rank that ran it, so concurrently. An exception from it is rethrown here after all ranks
  /// have stopped.
  template <std::invocable<launch_seen const&> See>
  step_result watch(batch const& b, See see) {
    auto const access = engine_.enter();
    return watch_on(b, see);
  }
  template <std::invocable<launch_seen const&> See>
  step_result watch(device_batch const& b, See see) {
    auto const access = enter_with_device_data();
    return watch_on(b, see);
  }

  /// Views of all parameters in model order: shared parameters once, constant tables not at all,
  /// empty views for another process's ranks, copies of parameters that replicas divide (see
  /// for_each_parameter). After writing to them call parameters_changed().
  std::vector<parameter_view<element>> parameters() {
    auto const access = engine_.enter();
    return detail::view_parameters<M, element>(parameter_places());
  }
  /// A trainer_processes, valid while this object lives: for weights, decoders, reports.
  auto processes() const {
    using parameters = detail::parameter_memory<engine>;
    return detail::trainer_processes<M, element, parameters>{engine_.enter(), parameter_places()};
  }
  /// Must be called after writing through a view; load_weights and copy_weights do. Discards
  /// accumulated gradients, which belong to the previous parameters.
  void parameters_changed() {
    auto const access = engine_.enter();
    accumulated_ = accumulated_batches{};
    engine_->parameters_changed();
  }

  /// Views of the averages, in the order of parameters(); for a parameter that is not trained, of
  /// the parameter itself.
  std::vector<parameter_view<element>> averaged() {
    static_assert(detail::accepted<decltype(detail::diagnose_averages<made>())>::value);
    auto const access = engine_.enter();
    return detail::view_parameters<M, element>(parameter_places(),
                                               &detail::chunk_description::average);
  }
  /// Exchanges parameters and averages, so that evaluate and forward use the averages. A second
  /// call restores the parameters; until then step and accumulate throw pp::error. Accumulated
  /// gradients are kept.
  void swap_averages() {
    static_assert(detail::accepted<decltype(detail::diagnose_averages<made>())>::value);
    auto const access = engine_.enter();
    averages_.swap(parameter_places());
    engine_->parameters_changed();
  }

  /// The learning rate of the next step, unless step() is given another.
  ///
  /// throws: data_error if learning_rate_factor returns a negative value or one that is not finite
  double learning_rate() const {
    engine_.require();
    return detail::learning_rate_of(settings_, steps_ + 1);
  }
  /// Completed training steps.
  long steps() const { return engine_.require(), steps_; }
  /// Bytes that this process has allocated for a rank. Throws data_error for a rank out of range.
  long allocated_bytes(int rank) const {
    return engine_->bytes(detail::checked_index<data_error>("rank", rank, compiled::ranks));
  }
  /// The actions that a rank executed in the last run, in order, with their times; none of another
  /// process's: see gather_executed. Throws data_error for a rank out of range.
  std::span<executed_action const> executed(int rank) const {
    auto const access = engine_.enter();
    int const r = detail::checked_index<data_error>("rank", rank, compiled::ranks);
    return {engine_->executed(r), std::size_t(engine_->executed_count(r))};
  }
  /// The type of a top-level layer, counted from 0, as `explain` prints it. Throws data_error for a
  /// layer out of range.
  static std::string layer_name(int layer) {
    return std::string(detail::spelled_layer<M>(
        detail::checked_index<data_error>("layer", layer, M::graph_type::size.units)));
  }
  /// The instruction set of the kernels, or the device's name.
  auto runs_on() const { return engine_->runs_on(); }

 private:
  friend detail::checkpoint_of<Pipeline>;
  friend detail::optimizer_states<Pipeline>;
  friend detail::training_of<Pipeline>;
  friend detail::with_losses<Pipeline, M>;
  friend detail::with_outputs<Pipeline, M>;
  friend detail::with_input_gradients<Pipeline, M>;
  step_result run(detail::job const& j) { return runs_.run(*engine_.operator->(), j); }

  /// The chunks, with their memory in the engine.
  detail::parameter_memory<engine> parameter_places() const {
    return {compiled::memory().chunks.items, compiled::stages, engine_.operator->()};
  }

  static constexpr bool takes_device_data = made::fine && compiled::backend::has_own_memory;
  /// Begins a call that is given arrays in device memory.
  auto enter_with_device_data() {
    static_assert(detail::accepted<decltype(detail::diagnose_device_data<made>())>::value);
    return engine_.enter();
  }
  auto enter_with_prefetched() {
    static_assert(detail::accepted<decltype(detail::diagnose_prefetching<made>())>::value);
    return engine_.enter();
  }

  /// Enters a checked batch in a job. An inference has no labels.
  ///
  /// throws: data_error for a batch out of range
  void take(batch const& b, detail::job& j) {
    if constexpr (compiled::lengths::block > 0) return dense_.take(b, j);
    detail::take_inputs(b, batch_samples(), j);
    if (j.what != detail::job::kind::infer) detail::take_labels(b, labels_per_sample, j);
  }
  void take(device_batch const& b, detail::job& j) {
    if constexpr (takes_device_data)
      detail::take_device_batch(b, batch_samples(), labels_per_sample, j, *engine_.operator->());
  }
  void take(prefetched_batch, detail::job& j) { j = prefetched_.take(); }
  void take(detail::batch_ahead<batch> const& b, detail::job& j) {
    if constexpr (compiled::lengths::block > 0 && compiled::prefetching::is_on)
      return dense_ahead_[prefetched_.next_place()].take(b.of, j);
    take(b.of, j);
  }
  /// A job on a checked batch, with the seed and the number of the next step.
  template <class Batch>
  detail::job prepare(Batch const& b, detail::job::kind what) {
    detail::job j;
    take(b, j);
    detail::begin_job<compiled>(j, what);
    j.seed = settings_.seed;
    j.step = steps_ + 1;
    return j;
  }

  /// Runs one training step. A skipped step is not counted, but discards accumulated gradients.
  ///
  /// needs: the engine has been entered
  template <class Batch>
  step_result step_by(Batch const& b, double learning_rate) {
    custom::setting_check().amount("learning_rate", learning_rate);
    averages_.require_out(steps_ + 1);
    detail::job j = prepare(b, detail::job::kind::train);
    detail::begin_step(j, settings_, steps_ + 1, learning_rate);
    step_result const r = add_up(j);
    accumulated_ = accumulated_batches{};
    if (!r.skipped) ++steps_;
    runs_.end_step(parameter_places(), j, steps_, settings_.compare_replicas);
    return r;
  }

  /// See accumulate, gradients and watch. Access: to the engine, until they return.
  template <class Access, class Batch>
  step_result accumulate_on(Access const&, Batch const& b) {
    static_assert(detail::accepted<decltype(detail::diagnose_accumulation<made>())>::value);
    runs_.require_one();
    averages_.require_out(steps_ + 1);
    detail::job j = prepare(b, detail::job::kind::train);
    j.update.applies = false;
    j.part.is_continued = true;
    return add_up(j);
  }
  template <class Access, class Batch>
  step_result gradients_on(Access const&, Batch const& b) {
    return run(prepare_gradients("gradients", b));
  }
  template <class Batch, class See>
  step_result watch_on(Batch const& b, See& see) {
    detail::job j = prepare_gradients("gradients", b);
    j.watch.see = [](void* self, launch_seen const& seen) { (*static_cast<See*>(self))(seen); };
    j.watch.of = &see;
    return run(j);
  }

  /// A training job without an update, for a call of that name.
  ///
  /// throws: error while accumulated gradients are pending; data_error for a batch out of range
  template <class Batch>
  detail::job prepare_gradients(char const* call, Batch const& b) {
    if (accumulated_.count() > 0)
      detail::throw_error<error>({call, "(): ", accumulated_.count(),
                                  " accumulated mini-batches are pending; call step() first"});
    detail::job j = prepare(b, detail::job::kind::train);
    j.update.applies = false;
    return j;
  }

  /// Runs a mini-batch on top of the accumulated mini-batches, which are discarded unless the run
  /// succeeds. Loss and norm of the result are over all mini-batches.
  step_result add_up(detail::job& j) {
    accumulated_batches all = accumulated_;
    char const* const with = all.count() == 0 ? "" : ", with what was accumulated";
    all.extend(j, M::loss::sums, Pipeline::loss_names.items);
    accumulated_ = accumulated_batches{};
    step_result r = run(j);
    if (r.skipped) return r;
    if (!libm::isfinite(r.loss) || !libm::isfinite(r.gradient_norm))
      detail::reject_step<M, element>({steps_ + 1, with}, j, runs_.here(j), labels_per_sample,
                                      compiled::ranks, parameter_places(), [&] { run(j); });
    all.add(j, r);
    accumulated_ = all;
    return r;
  }

  settings settings_;
  long steps_ = 0;
  accumulated_batches accumulated_;
  detail::averages averages_;
  detail::prefetch_queue prefetched_;
  detail::accumulation_runs<compiled> runs_;
  [[no_unique_address]] detail::dense_batches_of<compiled> dense_{runs_.accumulations};
  [[no_unique_address]] detail::dense_batches_ahead_of<compiled> dense_ahead_{runs_.accumulations};
  // Last, because its destructor waits for a run that uses the other members.
  detail::exclusive<engine> engine_;
};

}  // namespace pp
