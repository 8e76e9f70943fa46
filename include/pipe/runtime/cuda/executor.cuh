// SPDX-License-Identifier: BSL-1.0
//
// The executor of a pipeline on one GPU. One host thread walks all actions in a topological order
// and enqueues each on its rank's stream, behind the events of the other ranks' actions that it
// depends on; events play the role of a shared-memory transport's tokens. Boundary values are read
// where they were written. The host waits once, at the end of a run. What it enqueues between
// fork() and join() of its streams can be captured as a graph.
#pragma once

#include <cstring>
#include <limits>
#include <mutex>  // has the clocks of <chrono> without its calendar
#include <utility>
#include <vector>

#include <pipe/backend/cuda/arguments.hpp>
#include <pipe/backend/cuda/narrow_mlp/tile.hpp>
#include <pipe/backend/cuda/update/bookkeeping.hpp>
#include <pipe/backend/cuda/update/not_finite.hpp>
#include <pipe/backend/cuda/update/flat_parameters.hpp>
#include <pipe/backend/cuda/update/step_outcome.hpp>
#include <pipe/base/bytes.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/runtime/actions.hpp>
#include <pipe/runtime/cuda/conversion.hpp>
#include <pipe/runtime/cuda/kernel_list.cuh>
#include <pipe/runtime/cuda/group_launch.cuh>
#include <pipe/runtime/cuda/profiler_ranges.cuh>
#include <pipe/runtime/cuda/rank_streams.cuh>
#include <pipe/runtime/cuda/resources.cuh>
#include <pipe/runtime/cuda/upload.cuh>
#include <pipe/runtime/cuda/watched_launch.cuh>
#include <pipe/runtime/description.hpp>
#include <pipe/runtime/job.hpp>

namespace pp::detail {

/// The part of an executor that does not depend on the optimizer.
class cuda_executor {
 public:
  /// coefficient_bytes: of the optimizer's coefficients for one range of parameters
  [[gnu::cold]] cuda_executor(pipeline_description const& d, cuda_group const* groups,
                              cuda_order order, long coefficient_bytes, bool wants_timeline)
      : d_(d), groups_(groups), order_(std::move(order)), wants_timeline_(wants_timeline),
        streams_(d.ranks) {
    cuda::prepare_kernels(kernels{});
    for (int r = 0; r < d.ranks; ++r) {
      rank_description const& plan = d.rank[r];
      allocate(r);
      bookkeeping_[r] = cuda::bump_allocator(memory_of(r) + plan.device_bookkeeping,
                                             plan.device_bookkeeping_bytes);
      tickets_[r] = kept<unsigned>(r, nullptr, cuda::most_tickets);
      int const most = plan.most_actions();
      if (wants_timeline) timelines_[r].marks.resize(std::size_t(most));
      timelines_[r].actions.reserve(std::size_t(most));
    }
    streams_of_bits_ = kept<int>(0, d.streams, d.stream_count);
    cuda::loss_scaling const start{};
    scaling_ = kept(0, &start, 1);
    found_ = kept<char>(0, nullptr, cuda::search_bytes);
    long const run_bytes = cuda::run_bytes(d.chunk, d.chunks, coefficient_bytes);
    run_ = kept<char>(0, nullptr, run_bytes);
    run_to_send_ = cuda::pinned_buffer(run_bytes);
  }
  cuda_executor(cuda_executor const&) = delete;
  cuda_executor& operator=(cuda_executor const&) = delete;

  // ---- a run, in three steps ----

  /// Uploads the mini-batch and the numbers of the run. The coefficients of a training run have
  /// been written to coefficients_to_send().
  void begin(job const& j) {
    job_ = j;
    begin_ = std::chrono::steady_clock::now();
    start_timelines();
    streams_.begin();
    upload();
  }
  /// Enqueues every action of the job.
  void enqueue() {
    job const& j = job_;
    for (int& position : position_) position = 0;
    if (has_timeline_) cuda::check(cudaEventRecord(start_, stream_of(0)), "record of an event");
    bool const trains = j.what == job::kind::train;
    for (int const r : trains ? order_.training : order_.evaluation) {
      rank_description const& plan = d_.rank[r];
      action const a = (trains ? plan.training : plan.evaluation)[position_[r]++];
      if (samples_in(d_, j, a.micro_batch) > 0) execute(r, a);
    }
  }

  /// Number of kernels that the actions of a step launch.
  [[gnu::cold]] long kernels_of_step() const {
    long sum = 0;
    job step;
    step.what = job::kind::train;
    step.samples = d_.samples * d_.micro_batches;
    auto const ignore = [](auto const&...) {};
    for (int r = 0; r < d_.ranks; ++r)
      for (int i = 0; i < d_.rank[r].training_count; ++i)
        pp::detail::run_action(
            d_, step, d_.rank[r].training[i],
            [&](program_set const& set, program p) {
              program_view const& view = set.programs[int(p)];
              for (int l = 0; l < view.trained; ++l) sum += groups_[view.launches[l].group].kernels;
            },
            ignore, ignore, ignore);
    return sum;
  }
  /// Whether the last run keeps times, or is watched: what comes between kernels is no part of a
  /// graph.
  bool is_observed() const { return has_timeline_; }

  pipeline_description const& description() const { return d_; }
  cuda::rank_streams& streams() { return streams_; }
  cuda::profiler_ranges const& ranges() const { return ranges_; }
  cuda::batch_upload& uploads() { return upload_; }
  /// Memory for the results of searches, `cuda::search_bytes` on the device.
  char* found() const { return found_; }
  cudaStream_t stream_of(int rank) const { return streams_.of(rank); }
  char* memory_of(int rank) const { return arenas_[rank].data(); }
  char* memory(int chunk) const { return memory_of(d_.chunk[chunk].rank); }
  long bytes(int rank) const { return arenas_[rank].bytes(); }
  /// Memory for `count` items in the rank's bookkeeping: copies of `items`, or zeros if null.
  template <class T>
  T* kept(int rank, T const* items, long count) {
    T* const p = bookkeeping_[rank].template take<T>(count);
    if (items != nullptr && count > 0)
      cuda::check(cudaMemcpy(p, items, sizeof(T) * std::size_t(count), cudaMemcpyHostToDevice),
                  "upload of a list");
    return p;
  }
  /// Losses by micro-batch, in device memory.
  double* losses() const {
    return reinterpret_cast<double*>(memory_of(last_rank()) + d_.rank[last_rank()].losses);
  }

  /// The numbers of the run in device memory.
  cuda::run_state const* run() const { return reinterpret_cast<cuda::run_state const*>(run_); }
  /// The optimizer's coefficients in device memory, and where the host writes them before a run.
  template <class T>
  T const* coefficients() const {
    return reinterpret_cast<T const*>(run_ + cuda::bytes_for<cuda::run_state>(1));
  }
  template <class T>
  T* coefficients_to_send() const {
    return reinterpret_cast<T*>(run_to_send_.data() + cuda::bytes_for<cuda::run_state>(1));
  }

  /// The state of loss scaling in device memory; null if the precision does not scale the loss.
  cuda::loss_scaling* scaling() const { return d_.scales_loss ? scaling_ : nullptr; }

  /// Copies the outputs of an inference to the caller, each micro-batch as soon as it is complete,
  /// and waits for the end.
  void deliver() {
    if (job_.output_is_on_device) return streams_.wait();
    long const each = d_.output_bytes / size_of(d_.value_type);
    for (int mb = 0; samples_in(d_, job_, mb) > 0; ++mb) {
      reached(d_.chunks - 1, milestone::forward, mb).wait();
      convert_to_float(d_.value_type, static_cast<float*>(job_.output) + mb * each,
                       outputs_.data() + mb * d_.output_bytes,
                       each / d_.samples * samples_in(d_, job_, mb));
    }
    streams_.wait();
  }

  // ---- after a run ----

  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

  /// The actions that rank r executed in the last run, with times of the device's clock.
  ///
  /// throws: error if the run recorded no timeline
  executed_action const* executed(int r) {
    read_clock();
    if (!has_timeline_)
      throw error(
          "executed(): the last run recorded no times; on a GPU, set settings.runtime.timeline");
    return timelines_[r].actions.data();
  }
  int executed_count(int r) const { return int(timelines_[r].actions.size()); }

  /// Fraction of idle time of the ranks' streams, from the first action to the end of the last. NaN
  /// without a timeline.
  double bubble() {
    if (!has_timeline_) return std::numeric_limits<double>::quiet_NaN();
    read_clock();
    long busy = 0, last = 0;
    for (rank_timeline const& of_rank : timelines_)
      for (executed_action const& e : of_rank.actions) {
        busy += e.end - e.start;
        last = e.end > last ? e.end : last;
      }
    return last > 0 ? 1 - double(busy) / (double(last) * d_.ranks) : 0;
  }

 private:
  static constexpr int milestones = int(milestone::release) + 1;
  using kernels = cuda::kernel_list<cuda::add_up_kernel, cuda::find_not_finite_kernel>;
  static_assert(cuda::fit_every_device(kernels{}));
  struct time_marks {
    cuda::event start{true}, end{true};
  };
  /// The executed actions of a rank in this run, and pairs of events around them, reused by later
  /// runs.
  struct rank_timeline {
    std::vector<executed_action> actions;
    std::vector<time_marks> marks;
  };

  cuda::event const& reached(int chunk, milestone m, int micro_batch) const {
    return reached_[(chunk * milestones + int(m)) * d_.micro_batches + micro_batch];
  }

  [[gnu::cold]] void allocate(int rank) {
    try {
      arenas_[rank] = cuda::device_buffer(d_.rank[rank].bytes);
    } catch (error const& e) {
      throw_error<error>({"rank ", rank, ": no memory for an arena of ", d_.rank[rank].bytes,
                          " bytes, of ", d_.bytes(), " that the plan needs in all: ", e.what()});
    }
  }
  int last_rank() const { return d_.chunk[d_.chunks - 1].rank; }
  double* row_losses() const {
    return reinterpret_cast<double*>(memory_of(last_rank()) + d_.rank[last_rank()].row_losses);
  }

  /// Staging for outputs. Pinned, because an asynchronous copy to pageable memory would block the
  /// host from enqueueing.
  char* downloaded_outputs() {
    if (outputs_.data() == nullptr)
      outputs_ = cuda::pinned_buffer(d_.output_bytes * d_.micro_batches);
    return outputs_.data();
  }

  /// Enqueues the staging of the mini-batch and the upload of the numbers of the run.
  void upload() {
    upload_.enqueue(job_);
    *run_to_send_.as<cuda::run_state>() = state_of(job_);
    cuda::check(cudaMemcpyAsync(run_, run_to_send_.data(), std::size_t(run_to_send_.bytes()),
                                cudaMemcpyHostToDevice, stream_of(0)),
                "upload of the numbers of a run");
    cuda::check(
        cudaMemsetAsync(losses(), 0, sizeof(double) * std::size_t(d_.micro_batches), stream_of(0)),
        "clearing of the losses");
  }
  cuda::run_state state_of(job const& j) const {
    cuda::run_state s;
    s.seed = j.seed;
    s.step = j.step;
    s.first_sample = j.first_sample;
    s.loss_scale = float(1 / j.gradient_terms);
    s.clip_value = float(j.clip_value / j.gradient_scale);
    // In the first step averages are the parameters.
    s.average_amount = j.step == 1 ? 1.0f : float(1 - d_.average_decay);
    s.loss_terms = j.loss_terms;
    s.gradient_scale = j.gradient_scale;
    s.clip_norm = j.clip_norm;
    s.samples = double(j.all_samples);
    return s;
  }
  void execute(int r, action const& a) {
    auto const shown = ranges_.of(a);
    for_each_need(d_, a, [&](int chunk, milestone m, int mb) { need(r, chunk, m, mb); });
    if (!has_timeline_) return run_action(r, a);
    rank_timeline& mine = timelines_[r];
    std::size_t const at = mine.actions.size();
    if (at == mine.marks.size()) mine.marks.emplace_back();
    cuda::check(cudaEventRecord(mine.marks[at].start, stream_of(r)), "record of an event");
    run_action(r, a);
    cuda::check(cudaEventRecord(mine.marks[at].end, stream_of(r)), "record of an event");
    mine.actions.push_back({a, 0, 0, 0});
    clock_is_read_ = false;
  }
  void start_timelines() {
    has_timeline_ = wants_timeline_ || job_.watch != nullptr;
    clock_is_read_ = true;
    for (rank_timeline& of_rank : timelines_) of_rank.actions.clear();
  }

  void need(int r, int chunk, milestone m, int micro_batch) {
    if (micro_batch < 0 || d_.chunk[chunk].rank == r) return;
    cuda::check(cudaStreamWaitEvent(stream_of(r), reached(chunk, m, micro_batch), 0),
                "a wait for an event");
  }

  void run_action(int r, action const& a) {
    int const c = a.chunk, mb = a.micro_batch;
    region_bases const at = bases_for(c, mb);
    pp::detail::run_action(
        d_, job_, a,
        [&](program_set const& set, program p) {
          streams_.enter(r, p);
          run_program(d_.chunk[c], set, p, at, r, mb);
        },
        [&](copied const* what, int count) {
          for (int i = 0; i < count; ++i)
            cuda::check(
                cudaMemcpyAsync(at.at(what[i].to), at.at(what[i].from), std::size_t(what[i].bytes),
                                cudaMemcpyDeviceToDevice, stream_of(r)),
                "copy of a value that is handed on");
        },
        [&](address const& output) {
          if (job_.output_is_on_device) return keep_on_device(at.at(output), mb, stream_of(r));
          cuda::check(
              cudaMemcpyAsync(downloaded_outputs() + mb * d_.output_bytes, at.at(output),
                              std::size_t(d_.output_bytes / d_.samples * samples_in(d_, job_, mb)),
                              cudaMemcpyDeviceToHost, stream_of(r)),
              "download of outputs");
        },
        [&](milestone m) {
          cuda::check(cudaEventRecord(reached(c, m, mb), stream_of(r)), "record of an event");
        });
  }

  /// Outputs of a micro-batch to the program's array in device memory.
  void keep_on_device(char const* from, int mb, cudaStream_t on) {
    long const each = d_.output_bytes / d_.samples / size_of(d_.value_type),
               count = each * samples_in(d_, job_, mb);
    float* const to = static_cast<float*>(job_.output) + mb * d_.samples * each;
    if (d_.value_type != dtype::f32) return upload_.conversions().to_floats(to, from, count, on);
    cuda::check(
        cudaMemcpyAsync(to, from, sizeof(float) * std::size_t(count), cudaMemcpyDeviceToDevice, on),
        "copy of outputs");
  }

  region_bases bases_for(int c, int mb) const {
    region_bases b = arena_bases(
        d_, c, mb, [this](int rank) { return memory_of(rank); },
        [this](transfer const& x) { return memory_of(x.from_rank) + x.from; });
    b.set(region::random, reinterpret_cast<char*>(streams_of_bits_));
    rank_description const& rank = d_.rank[d_.chunk[c].rank];
    for (int i = 0; i <= d_.inputs; ++i)
      if (rank.staging[i] >= 0)
        b.set(i < d_.inputs ? input_region(i) : region::label,
              memory_of(d_.chunk[c].rank) + rank.staging[i] + mb * d_.bytes_of(i));
    return b;
  }

  void run_program(chunk_description const& chunk, program_set const& set, program p,
                   region_bases const& at, int r, int mb) {
    program_view const& view = set.programs[int(p)];
    cuda::arguments a;
    set_context(a, d_, job_, mb);
    a.workspace = memory_of(r) + d_.rank[r].workspace;
    a.loss = row_losses();
    a.run = run();
    a.tickets = tickets_[r];
    a.first_sample = mb * d_.samples;
    a.scaling = scaling() != nullptr ? &scaling()->scale : nullptr;
    bool const is_last = &chunk == &d_.chunk[d_.chunks - 1];
    // The loss is the last launch; inference leaves it out.
    int const count = job_.what == job::kind::train
                          ? view.trained
                          : view.count - (job_.what == job::kind::infer && is_last);
    void* slots[most_operands];
    for (int i = 0; i < count; ++i) {
      launch const& l = view.launches[i];
      placed_operand const* const from = view.operands + l.first;
      for (int k = 0; k < l.count; ++k) slots[k] = at.at(from[k].at);
      if (job_.watch != nullptr)
        cuda::check(cudaEventRecord(watched_from_, stream_of(r)), "record of an event");
      groups_[l.group](a, slots, stream_of(r));
      if (job_.watch != nullptr)
        show(slots, {r, int(&chunk - d_.chunk), mb, p, i, 0, &l, from}, stream_of(r));
    }
    if (is_last && job_.what != job::kind::infer && p == program_of_loss(set))
      sum_row_losses(mb, stream_of(r));
  }

  /// The program that computes the losses of rows in this job.
  program program_of_loss(program_set const& set) const {
    program_view const& forward = set.programs[int(program::forward)];
    return job_.what == job::kind::train && forward.trained < forward.count ? program::backward
                                                                            : program::forward;
  }
  /// Waits for the launch and calls the watcher. No other rank is enqueued meanwhile.
  [[gnu::cold]] void show(void* const* slots, launch_seen seen, cudaStream_t on) {
    cuda::check(cudaEventRecord(watched_until_, on), "record of an event");
    cuda::check(cudaStreamSynchronize(on), "run of a kernel");
    float ms = 0;
    cuda::check(cudaEventElapsedTime(&ms, watched_from_, watched_until_), "time between events");
    seen.nanoseconds = long(double(ms) * 1e6);
    watched_launch w{slots, seen, d_.value_type, on, reinterpret_cast<int*>(found_)};
    seen.reader = w.reader();
    job_.watch(job_.watcher, seen);
  }

  /// losses[mb] = the sum of the micro-batch's row losses.
  void sum_row_losses(int mb, cudaStream_t on) {
    cuda::launch_body<cuda::add_up_kernel>({row_losses(), d_.loss_rows, nullptr, 1, losses() + mb},
                                           on);
  }

  [[gnu::cold]] void read_clock() {
    if (clock_is_read_) return;
    clock_is_read_ = true;
    auto const since = [&](cuda::event const& e) {
      float ms = 0;
      cuda::check(cudaEventElapsedTime(&ms, start_, e), "time between events");
      return long(double(ms) * 1e6);
    };
    for (rank_timeline& of_rank : timelines_)
      for (std::size_t i = 0; i < of_rank.actions.size(); ++i) {
        of_rank.actions[i].start = since(of_rank.marks[i].start);
        of_rank.actions[i].end = since(of_rank.marks[i].end);
      }
  }

  pipeline_description d_;
  cuda_group const* groups_;
  cuda_order order_;
  bool wants_timeline_;
  cuda::rank_streams streams_;
  heap_array<cuda::device_buffer> arenas_{d_.ranks};
  cuda::batch_upload upload_{d_, arenas_, streams_};
  heap_array<cuda::bump_allocator> bookkeeping_{d_.ranks};  // by rank: bookkeeping in its arena
  heap_array<unsigned*> tickets_{d_.ranks};                 // by rank, in device memory
  int* streams_of_bits_ = nullptr;
  cuda::loss_scaling* scaling_ = nullptr;
  char* run_ = nullptr;              // a run_state and the optimizer's coefficients, on the device
  cuda::pinned_buffer run_to_send_;  // the same, of the next run
  cuda::pinned_buffer outputs_;      // outputs of all micro-batches of an inference
  heap_array<cuda::event> reached_{milestones * d_.chunks * d_.micro_batches};
  cuda::event start_{true}, watched_from_{true}, watched_until_{true};
  char* found_ = nullptr;  // result of a search, in device memory
  heap_array<int> position_{d_.ranks};
  heap_array<rank_timeline> timelines_{d_.ranks};    // by rank
  bool has_timeline_ = true, clock_is_read_ = true;  // of the last run
  cuda::profiler_ranges const ranges_{d_, streams_};
  job job_;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace pp::detail
