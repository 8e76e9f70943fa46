// SPDX-License-Identifier: BSL-1.0
//
// The CUDA engine of a pipeline: the launches of its kernels, the executor that enqueues them, the
// end-of-step operations, and a mirror in host memory, through which the caller reads and writes
// parameters.
#pragma once

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <pipe/backend/cuda/backend.hpp>
#include <pipe/backend/cuda/lowering/lowering.hpp>
#include <pipe/backend/cuda/update/bookkeeping.hpp>
#include <pipe/base/libm.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/optim/optimizer.hpp>
#include <pipe/runtime/cuda/device.cuh>
#include <pipe/runtime/cuda/device_data.cuh>
#include <pipe/runtime/cuda/executor.cuh>
#include <pipe/runtime/cuda/graph.cuh>
#include <pipe/runtime/cuda/launches.cuh>
#include <pipe/runtime/cuda/parameters.cuh>
#include <pipe/runtime/cuda/process_order.hpp>
#include <pipe/runtime/cuda/processes.cuh>
#include <pipe/runtime/cuda/value_mirror.cuh>
#include <pipe/runtime/runtime_of.hpp>
#include <pipe/runtime/update_guard.hpp>
#include <pipe/schedule/dynamic_table.hpp>

namespace pp {

namespace detail {

/// Executes compiled pipeline P on CUDA devices 0 to P::devices - 1 or, if there are several
/// processes, this process's part of P on the device that the transport chooses. Every engine has
/// this interface: see runtime_of.
///
/// law: calls leave the calling thread's current device as it was
template <class P>
class cuda_engine {
 public:
  using element = typename P::element;
  using optimizer = typename P::optimizer;
  using process_set = cuda_processes<P>;

  /// The last argument restores the current device once the engine is made.
  [[gnu::cold]] cuda_engine(optimizer const& o, executor_settings const& settings,
                            cuda::device_scope const& = {})
      : optimizer_(o), processes_(settings),
        devices_(cuda::use_devices(processes_.device(), P::devices)),
        executor_(processes_.description(), processes_.place(devices_.numbers), groups(), order(),
                  cuda::coefficient_bytes<optimizer>(), settings.timeline),
        parameters_(executor_, optimizer_) {
    synchronize();
  }

  /// throws: error if a run has left the parameters half updated, or a load was cut short
  void check() const {
    if (failed_update_ != 0)
      update_guard::refuse("a failure cut short the update of", failed_update_);
    loads_.check();
  }
  /// False: the engine has no threads, and runs on the caller's thread.
  bool is_own_thread() const { return false; }

  /// Runs a job. An exception (from a user-defined layer's launch, a watcher or the CUDA runtime)
  /// is rethrown once no work is in progress on the device.
  step_result run(job const& j) {
    cuda::device_scope const at(devices_.numbers[0]);
    try {
      return complete(j);
    } catch (error const& e) {
      end_failed(j, e.what());
      throw;
    } catch (...) {
      end_failed(j, "an exception that is no pp::error");
      throw;
    }
  }

  static bool is_local(int chunk) { return process_set::has(P::memory().chunks[chunk].rank); }
  static bool writes_files() { return process_set::has(0) && process_set::is_first_replica(); }
  /// Between processes: see stream_transport.
  void broadcast(int process, char* data, long bytes)
    requires(process_set::are_several)
  {
    processes_.world().broadcast(process, data, bytes);
  }
  int process()
    requires(process_set::are_several)
  {
    return processes_.world().process();
  }
  int processes()
    requires(process_set::are_several)
  {
    return processes_.world().processes();
  }
  int process_of(int chunk)
    requires(process_set::are_several)
  {
    // The number of the chunk's device, in the first replica.
    return executor_.description().devices.of(P::memory().chunks[chunk].rank);
  }
  long least(long here)
    requires(process_set::are_several)
  {
    return processes_.world().least(here);
  }
  /// The host mirror of a chunk's parameters, gradients and averages, at the offsets of the rank's
  /// arena. It has the optimizer's state, too, if the state is on the device: at its offset in the
  /// arena or, with ZeRO, behind everything else. Valid until the next run.
  char* memory(int chunk) {
    cuda::device_scope const at(devices_.numbers[0]);
    if (!mirror_is_current_) download();
    return mirror_[std::size_t(chunk)].data();
  }
  /// The optimizer's state of a chunk, with ZeRO of the ranges that this replica updates: in the
  /// mirror or, with OffloadState, in the host's memory where kernels read and write it. Valid
  /// until the next run.
  char* state(int chunk) {
    chunk_description const& c = P::memory().chunks[chunk];
    if constexpr (P::offload::is_on)
      return reinterpret_cast<char*>(parameters_.states().of(c));
    else
      return memory(chunk) + (is_state_apart<P> ? end_of_mirrored(c) : c.state);
  }
  /// Must be called after parameters were written through memory(): the next run uploads them.
  void parameters_changed() { mirror_is_newer_ = true; }
  /// Must be called after gradients, optimizer state or averages were written: the next run uploads
  /// all of memory().
  void states_changed() { mirror_is_newer_ = states_are_newer_ = true; }
  /// Makes check() throw from now on: some states are those of a file, others are not.
  void spoil(long step) { loads_.spoil(step); }
  /// The factor of the loss in the next step, and the number of steps since it changed; zeros in a
  /// process without rank 0, or if the loss is not scaled.
  list<double, 2> loss_scaling() const {
    cuda::device_scope const at(devices_.numbers[0]);
    cuda::loss_scaling now{0, 0};
    if (executor_.scaling(0) != nullptr) download(&now, executor_.scaling(0), sizeof now);
    return {{double(now.scale), double(now.sound_steps)}};
  }
  void set_loss_scaling(list<double, 2> const& to) {
    cuda::device_scope const at(devices_.numbers[0]);
    cuda::loss_scaling const now{float(to[0]), int(to[1])};
    loss_scale_ = now.scale;
    executor_.for_each_device([&](int first) {
      cuda::check(cudaMemcpy(executor_.scaling(first), &now, sizeof now, cudaMemcpyHostToDevice),
                  "upload of the loss scale");
    });
  }
  long bytes(int rank) const { return executor_.bytes(rank); }

  /// Uploads a mini-batch: at once, or while the next run on a prefetched mini-batch is in
  /// progress.
  void prefetch(job const& j, bool at_once = true) {
    cuda::device_scope const at(devices_.numbers[0]);
    if (at_once) return load(j);
    next_ = j;
    has_next_ = true;
  }
  /// An input or the labels as the last run has read them. For messages.
  [[gnu::cold]] std::vector<float> staged(int input, int samples) const {
    cuda::device_scope const at(devices_.numbers[0]);
    std::vector<float> values;
    executor_.for_each_device([&](int first) {
      if (values.empty()) values = executor_.uploads(first).staged(input, samples);
    });
    return values;
  }

  /// A program's arrays in device memory, ready for a job that reads or writes them.
  cuda::device_data<typename P::value>& device_data() {
    device_data_.prepare();
    return device_data_;
  }
  /// Copies from device memory. For messages: waits for the device.
  static void download(void* to, void const* from, long bytes) {
    cuda::check(cudaMemcpy(to, from, std::size_t(bytes), cudaMemcpyDeviceToHost),
                "download of a mini-batch");
  }

  executed_action const* executed(int rank) const { return executor_.times().executed(rank); }
  int executed_count(int rank) const { return executor_.times().executed_count(rank); }
  /// The time when the last run began in this process: see run_times.
  std::chrono::steady_clock::time_point began() const { return executor_.times().began(); }

  /// What decides the bits of steps: the name of the device. Neither the number of devices nor
  /// graphs change a bit.
  [[gnu::cold]] std::string arithmetic() const { return devices_.properties.name; }
  /// The devices' name, the number of products that use cuBLASLt, and whether steps are graphs.
  [[gnu::cold]] std::string runs_on() const {
    std::string text = devices_.properties.name + launches_[0]->text();
    if (P::devices > 1) text = std::to_string(P::devices) + " x " + text;
    if (!P::graphs::is_on) return text;
    std::string const reason = by_streams();
    return text + (reason.empty() ? ", steps as CUDA graphs" : ", steps by streams: " + reason);
  }

 private:
  /// Runs a job. Uploads the mirror first if the caller has written to it.
  step_result complete(job const& j) {
    auto const shown = executor_.ranges().of(j.what);
    if (mirror_is_newer_) upload();
    parameters_.prepare(j);
    executor_.begin(j);
    parameters_.sums().begin();
    enqueue(j);
    // The device has work while the host converts the next mini-batch.
    if (is_last_accumulation(j)) load_next(j);
    step_result result;
    if (j.what == job::kind::infer) {
      executor_.deliver();
      processes_.share_outputs(j);
      result.seconds = executor_.times().seconds();
      return result;
    }
    if (is_last_accumulation(j) || is_waited_for())
      executor_.streams().wait();
    else
      parameters_.sums().run_ahead();
    // Evaluation changes no parameter.
    mirror_is_current_ = mirror_is_current_ && j.what != job::kind::train;
    result.seconds = executor_.times().seconds();
    result.bubble = executor_.times().bubble();
    if (is_last_accumulation(j)) report(parameters_.outcome(), j, result);
    // The step is complete: enqueue() had set its number.
    failed_update_ = 0;
    if (is_replayed(j)) graphs_.remember(cuda::shape_of(j));
    return result;
  }

  /// Whether the host waits for each accumulation, because the accumulation's times are read or
  /// other processes may be lost.
  bool is_waited_for() const { return executor_.is_observed() || process_set::are_several; }
  /// Writes the outcome of a step to its result.
  void report(cuda::step_outcome const& outcome, job const& j, step_result& result) {
    result.loss = outcome.loss;
    result.losses = {outcome.losses, executor_.description().losses};
    if (j.what != job::kind::train) return;
    result.gradient_norm = outcome.norm;
    result.loss_scale = loss_scale_ = outcome.loss_scale;
    bool const overflows = libm::isfinite(outcome.loss) && !libm::isfinite(outcome.norm);
    result.skipped = P::precision::scales_loss && overflows && outcome.loss_scale > 1;
  }

  /// Uploads the next mini-batch, if job j is a run on the prefetched mini-batch before it.
  ///
  /// post: if CUDA fails, the next mini-batch is discarded, and the run on it throws
  void load_next(job const& j) noexcept {
    if (!has_next_ || j.batch.place != data_place::loaded) return;
    try {
      load(next_);
    } catch (error const&) {
      (void)cudaGetLastError();
    }
    has_next_ = false;
  }

  /// Waits after a failure until no work is in progress on any device of this process.
  void end_failed(job const& j, char const* why) noexcept {
    processes_.abort(why);
    executor_.drain();
    load_next(j);
  }
  /// Uploads a prefetched mini-batch to all devices of this process.
  void load(job const& j) {
    executor_.for_each_device([&](int first) { executor_.uploads(first).load(j); });
  }

  /// Enqueues a run whose mini-batch is uploaded: on streams, or as a graph.
  void enqueue(job const& j) {
    auto const enqueue = [&](long& failed_update) {
      executor_.streams().fork();
      executor_.enqueue([&](int chunk, bool drops, int launch) {
        parameters_.complete(chunk, drops, launch, j);
      });
      if (j.what != job::kind::infer) parameters_.enqueue_end(j, failed_update);
    };
    cuda::graph* const g = is_replayed(j) ? graphs_.find(cuda::shape_of(j)) : nullptr;
    if (g == nullptr) return enqueue(failed_update_);
    // Behind the uploads of all ranks.
    executor_.streams().join();
    cudaStream_t const stream = executor_.stream_of(executor_.root());
    if (g->is_empty()) {
      *g = cuda::graph::capture(stream, [&] {
        long unused = 0;
        enqueue(unused);
        executor_.streams().join();
      });
      executor_.streams().begin();  // a capture puts no work on the streams
    }
    if (j.what == job::kind::train && j.update.applies) failed_update_ = j.step;
    g->launch(stream);
  }
  /// Whether a run is replayed as a graph when it comes again. An inference is not, as the host
  /// waits for its outputs one by one.
  bool is_replayed(job const& j) const {
    return has_graphs_ && !executor_.is_observed() && j.what != job::kind::infer;
  }
  /// The reason why steps are no graphs although the option asks for graphs; empty if they are.
  [[gnu::cold]] std::string by_streams() const {
    // Earlier drivers cannot say which edges a graph has.
    if (driver_ < 12040) return "the driver is older than CUDA 12.4";
    if (executor_.copies().processes() != nullptr) return "there are several processes";
    if (!devices_.are_peers) return "a device does not reach the memory of another";
    if (kernels_of_step_ <= P::graphs::most_kernels) return "";
    return std::to_string(kernels_of_step_) + " kernels, and a graph has at most " +
           std::to_string(P::graphs::most_kernels);
  }

  /// The orders in which the host enqueues training and evaluation. Computed once, as they are the
  /// same in every run of a trainer.
  [[gnu::cold]] cuda_order order() const {
    if constexpr (process_set::are_several) return processes_.order();
    std::vector<detail::slot_count> slots;
    auto const* const map = &P::memory();
    for (int c = 0; c + 1 < P::stages; ++c)
      slots.push_back(
          {map->chunks[c].rings.boundary.slots, map->chunks[c + 1].rings.gradient.slots});
    auto forward = dynamic_table(P::ranks, P::schedule::where, false);
    for (int r = 0; r < P::ranks; ++r)
      for (action const& a : map->rank[r].evaluation) forward.push(r, a);
    return {cuda::order_of(P::times(), P::table(), slots),
            cuda::order_of(P::times(), forward, slots)};
  }

  /// Waits for the devices. Copies and memsets on the default stream are not ordered with the
  /// executor's non-blocking streams, and may still be in progress when their calls return.
  void synchronize() const {
    executor_.for_each_device(
        [](int) { cuda::check(cudaDeviceSynchronize(), "copies to the device"); });
  }
  /// The launches of each device. Their kernels are prepared on the device.
  [[gnu::cold]] std::vector<cuda_group const*> groups() {
    std::vector<cuda_group const*> all;
    for (int const number : devices_.numbers) {
      if (P::devices > 1) cuda::check(cudaSetDevice(number), "choice of the device");
      launches_.push_back(owner<cuda_launches<P>>(new cuda_launches<P>(devices_.properties)));
      all.push_back(launches_.back()->groups());
    }
    return all;
  }

  /// Multiplies gradients in the mirror by a power of two.
  void scale_gradients(int c, float factor) {
    chunk_description const& chunk = P::memory().chunks[c];
    float* const gradients =
        reinterpret_cast<float*>(mirror_[std::size_t(c)].data() + chunk.gradients);
    for (long i = 0; factor != 1 && i < chunk.sizes.trained / long(sizeof(float)); ++i)
      gradients[i] *= factor;
  }
  /// Fills the mirror. Gradients are divided by the loss scale, so that the caller sees gradients
  /// of the loss itself.
  ///
  /// cost: a copy of all parameters, gradients, states and averages to the host
  [[gnu::cold]] void download() {
    executor_.streams().wait();
    mirror_.resize(std::size_t(P::stages));
    for (int c = 0; c < P::stages; ++c) {
      if (!executor_.is_local(c)) continue;
      copy_to_host(mirrored_ranges(executor_, parameters_, c, true), mirror_[std::size_t(c)]);
      // In device memory gradients keep the factor of the loss.
      scale_gradients(c, 1 / loss_scale_);
    }
    mirror_is_current_ = true;
  }
  /// Copies parameters, buffers and averages, or all states, from the mirror to the device, and
  /// renews the copies of parameters there.
  [[gnu::cold]] void upload() {
    float const scale = states_are_newer_ ? loss_scale_ : 1;
    for (int c = 0; c < P::stages && !mirror_.empty(); ++c) {
      if (!executor_.is_local(c)) continue;
      scale_gradients(c, scale);
      copy_to_device(mirrored_ranges(executor_, parameters_, c, states_are_newer_),
                     mirror_[std::size_t(c)]);
      scale_gradients(c, 1 / scale);
    }
    states_are_newer_ = false;
    synchronize();
    parameters_.renew_copies();
    mirror_is_newer_ = false;
  }

  /// Later members use earlier members, and are destroyed first.
  optimizer const optimizer_;
  process_set processes_;
  cuda::device_list devices_;
  std::vector<owner<cuda_launches<P>>> launches_;  // by device
  mutable cuda_executor executor_;
  cuda_parameter_operations<P> parameters_;
  int const driver_ = cuda::driver_version();
  long const kernels_of_step_ =
      kernels_of_step(executor_.description(), launches_[0]->groups(), executor_.streams().local());
  bool const has_graphs_ = P::graphs::is_on && by_streams().empty();
  cuda::graph_table graphs_{P::sum::accumulations};
  cuda::device_data<typename P::value> device_data_{executor_};
  std::vector<std::vector<char>> mirror_;  // by chunk, at the offsets of its rank's arena
  bool mirror_is_current_ = false, mirror_is_newer_ = false, states_are_newer_ = false;
  job next_;  // if has_next_: to be uploaded while the next run is in progress
  bool has_next_ = false;
  float loss_scale_ = 1;    // factor of the gradients on the device
  long failed_update_ = 0;  // the step whose update failed half-way; 0: none
  update_guard loads_;      // of states from a file
};

template <>
struct runtime_of<Cuda> {
  template <class P>
  using engine = cuda_engine<P>;
  template <class P>
  static constexpr long workspace_bytes() {
    return cuda::workspace_bytes<P>();
  }
  template <class Optimizer, class Chunk>
  static constexpr long bookkeeping_bytes(Chunk const* chunks, int chunk_count, int rank,
                                          bool is_first, int parameters, int streams) {
    return cuda::bookkeeping_bytes<Optimizer>(chunks, chunk_count, rank, is_first, parameters,
                                              streams);
  }
};

}  // namespace detail

}  // namespace pp
