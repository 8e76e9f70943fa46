// SPDX-License-Identifier: BSL-1.0
//
// The host engine of a pipeline: the kernels of its backend, the optimizer, and the executor that
// calls both. The only template over the pipeline in the host runtime.
#pragma once

#include <concepts>
#include <string>
#include <type_traits>

#include <pipe/backend/host/arithmetic.hpp>
#include <pipe/backend/host/backend.hpp>
#include <pipe/optim/optimizer.hpp>
#include <pipe/optim/setting_check.hpp>
#include <pipe/runtime/host/core/common_kernels.hpp>
#include <pipe/runtime/host/core/executor.hpp>
#include <pipe/runtime/host/overlap/step_flow.hpp>
#include <pipe/runtime/host/replicas/value_mirror.hpp>
#include <pipe/runtime/runtime_of.hpp>

namespace pp::detail {

struct nothing_mirrored {};

/// Executes compiled pipeline P on the host. Every engine has this interface: see runtime_of.
template <class P>
class host_engine {
 public:
  using element = typename P::element;
  using optimizer = typename P::optimizer;

  host_engine(optimizer const& o, executor_settings const& settings)
      : optimizer_(o), kernels_(kernels(settings)), executor_(description(), calls(), settings) {}

  step_result run(job const& j) {
    if constexpr (divides_values) {
      take_mirror();
      if (j.what == job::kind::train) mirror_.forget();
    }
    return executor_.run(j);
  }
  /// Steps that overlap, with the accumulations that run in this process: see step_flow.
  auto flow(own_accumulations const& own) { return step_flow(executor_.context(), own); }
  void check() const { executor_.check(); }
  bool is_own_thread() const { return executor_.is_own_thread(); }

  /// Start of the arena that holds a chunk. Parameters, gradients and averages in it may be read
  /// and written between runs; divided parameters are not in it.
  char* memory(int chunk) { return executor_.memory(chunk); }
  /// Must be called after parameters were written through memory() or mirror().
  void parameters_changed() {
    executor_.parameters_changed();
    if constexpr (divides_values) mirror_is_newer_ = true;
  }

  /// Whether replicas divide the parameters for which is_divided() holds. Between runs the
  /// functions below read and write divided parameters. All replicas call them for the same
  /// parameters, except for room_of, take_over and for_each_own, which exchange nothing.
  static constexpr bool divides_values = P::zero::level > 2;
  /// Whether the gradients of these parameters are divided as well, so that no replica has a whole
  /// one.
  static constexpr bool divides_gradients = P::divides_gradients;
  /// A copy of all divided parameters of a chunk, at their offsets, valid until the next training
  /// run.
  char* mirror(int chunk)
    requires divides_values
  {
    return mirror_.of(executor_.description(), chunk, executor_);
  }
  /// The values of one divided parameter, in the rank's ring, valid until the next call. room_of:
  /// memory there without the values.
  ///
  /// throws: rank_error if a replica does not take part
  char* bring(int chunk, parameter_place const& p)
    requires divides_values
  {
    take_mirror();
    char* const values = executor_.windows(chunk).bring_alone(chunk, p);
    if (values == nullptr) value_mirror::refuse();
    return values;
  }
  char* room_of(int chunk, parameter_place const& p)
    requires divides_values
  {
    take_mirror();
    return executor_.windows(chunk).room_of(chunk, p);
  }
  /// Takes over the values of one divided parameter, of which each replica keeps its parts.
  void take_over(int chunk, parameter_place const& p, char const* values)
    requires divides_values
  {
    executor_.windows(chunk).distribute(chunk, p, values);
    mirror_.renew(chunk, p, values, p.elements() * long(sizeof(element)));
  }
  /// use(address, begin, bytes) for the parts of one divided parameter that this replica has,
  /// `begin` bytes from the parameter's start.
  template <class Use>
  void for_each_own(int chunk, parameter_place const& p, Use const& use)
    requires divides_values
  {
    take_mirror();
    executor_.windows(chunk).for_each_own(chunk, p, use);
  }

  /// The optimizer's state of a chunk, with ZeRO of the ranges that this replica updates; null if
  /// there are none.
  char* state(int chunk) {
    auto const own = executor_.shards(P::memory().chunks[chunk].rank).updates_of(chunk);
    return own.count == 0 ? nullptr : reinterpret_cast<char*>(own.items[0].state);
  }
  /// Must be called after any state was written through memory(), state() or for_each_own(). With
  /// divided parameters all replicas call this function.
  void states_changed() {
    executor_.parameters_changed();
    if constexpr (divides_values) mirror_.renew(executor_);
  }
  /// Makes check() throw from now on: some states are those of a file, others are not.
  void spoil(long step) { executor_.spoil(step); }
  /// Whether there are older versions of the weights to be saved; notes that they were written;
  /// notes that they are not to be read: see version_layout.
  bool has_versions() const { return executor_.has_versions(); }
  void versions_changed() { executor_.versions_changed(); }
  void forget_versions() { executor_.forget_versions(); }
  /// Size of a rank's arena.
  long bytes(int rank) const { return executor_.bytes(rank); }

  /// The actions that rank r executed in the last run, in order.
  executed_action const* executed(int rank) const { return executor_.executed(rank); }
  int executed_count(int rank) const { return executor_.executed_count(rank); }
  /// The time when the last run began in this process.
  std::chrono::steady_clock::time_point began() const { return executor_.began(); }

  /// For reports: the kernels' instruction set. arithmetic: what decides the bits of results.
  std::string runs_on() const { return host::name_of_kernels(kernels_.runs_on, kernels_.unit); }
  host::isa instruction_set() const { return kernels_.runs_on; }
  std::string arithmetic() const { return host::arithmetic_of(kernels_.runs_on); }

  /// Whether this process runs the rank of a chunk. Only then has the chunk memory here.
  static bool is_local(int chunk) {
    return P::transport::place(P::ranks).has(P::memory().chunks[chunk].rank);
  }
  /// Whether this process writes files for all processes: it has rank 0 of the first replica.
  static bool writes_files() {
    process_place const place = P::transport::place(P::ranks);
    return place.has(0) && place.replica == 0;
  }

  /// Between processes: see stream_transport.
  void broadcast(int process, char* data, long bytes)
    requires stream_transport<typename P::transport>
  {
    executor_.transport().broadcast(process, data, bytes);
  }
  /// The number of this process, the number of processes, and the process of a chunk in the first
  /// replica.
  int process()
    requires stream_transport<typename P::transport>
  {
    return executor_.transport().process();
  }
  int processes()
    requires stream_transport<typename P::transport>
  {
    return executor_.transport().processes();
  }
  int process_of(int chunk)
    requires stream_transport<typename P::transport>
  {
    return executor_.transport().process_of(P::memory().chunks[chunk].rank);
  }
  long least(long here)
    requires stream_transport<typename P::transport>
  {
    return executor_.transport().least(here);
  }

 private:
  /// The fastest kernels of this machine, among the kernels whose bits all processes can have.
  static host::kernels<P> kernels([[maybe_unused]] executor_settings const& settings) {
    using backend = typename P::backend;
    host::kernels<P> best = backend::template kernels<P>();
    if constexpr (requires { P::transport::world(); }) {
      if (P::transport::world().processes() == 1) return best;
      P::transport::world().watch().see_ranks(P::ranks);
      kernel_sets own;
      own.add(best.runs_on);
      constexpr bool has_sets = requires { backend::template kernels<P>(host::isa::portable); };
      for (host::isa set : {host::isa::portable, host::isa::avx2, host::isa::avx512})
        if constexpr (has_sets)
          if (set < best.runs_on) own.add(backend::template kernels<P>(set).runs_on);
      host::isa const common =
          common_kernels<typename P::transport>(own, settings.waiting.deadline);
      if constexpr (has_sets)
        if (common < host::bits_of(best.runs_on)) return backend::template kernels<P>(common);
    }
    return best;
  }
  /// The pipeline's description, with sends and receives if the transport copies. Sends and
  /// receives are made at run time: see compiled_pipeline::instructions().
  static pipeline_description description() {
    pipeline_description d = P::description();
    if constexpr (P::transport::copies) d.instructions = P::instructions().items;
    return d;
  }
  backend_calls<element> calls() const {
    return {kernels_.groups.items,
            kernels_.sum_of_squares,
            kernels_.add,
            kernels_.transpose,
            kernels_.to_panels,
            &host_engine::update,
            this,
            hash_of(optimizer_),
            states_of_element(),
            kernels_.clamp,
            kernels_.approach,
            kernels_.narrow,
            kernels_.widen,
            int(sizeof(typename P::value)),
            kernels_.unit};
  }
  static constexpr int states_of_element() {
    if constexpr (custom::element_optimizer<optimizer>)
      return optimizer::states;
    else
      return 0;
  }
  /// backend_calls::update: calls the optimizer's kernel with this engine's optimizer settings.
  static void update(void const* self, update_request<element> const& r) {
    host_engine const& e = *static_cast<host_engine const*>(self);
    update_range const& range = r.range;
    e.kernels_.update(
        e.optimizer_,
        custom::update_context{r.step, r.learning_rate * range.rate_scale, r.gradient_scale,
                               range.decay_scale},
        custom::tensor_update<element>{range.shape, r.values, r.gradients, r.state, r.workspace},
        range.whole, r.own);
  }

  /// Takes over the values that the program has written to the mirror.
  void take_mirror() {
    if (mirror_is_newer_) mirror_.write_back(executor_);
    mirror_is_newer_ = false;
  }

  [[no_unique_address]] std::conditional_t<divides_values, value_mirror, nothing_mirrored> mirror_;
  bool mirror_is_newer_ = false;
  /// Declared before executor_, which is destroyed first: its threads use the optimizer and the
  /// kernels.
  optimizer const optimizer_;
  host::kernels<P> kernels_;
  executor<element, typename P::transport> executor_;
};

template <std::derived_from<host_backend> Backend>
struct runtime_of<Backend> {
  template <class P>
  using engine = host_engine<P>;
  template <class P>
  static constexpr long workspace_bytes() {
    return Backend::template workspace_of<P>(P::passes::shapes);
  }
};

}  // namespace pp::detail
