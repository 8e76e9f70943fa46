// SPDX-License-Identifier: BSL-1.0
//
// The executor of a pipeline on the GPUs of a process. One host thread walks all actions in a
// topological order and enqueues each on its rank's stream, behind the events of the other ranks'
// actions on which it depends. Events replace the tokens of a transport that shares memory.
// Boundary values are read where they were written, or copied to a rank on another device. The host
// waits once, at the end of a run. The work between fork() and join() can be captured as a graph.
#pragma once

#include <climits>
#include <utility>
#include <vector>

#include <pipe/backend/cuda/core/arguments.hpp>
#include <pipe/backend/cuda/narrow_mlp/tile.hpp>
#include <pipe/backend/cuda/update/bookkeeping.hpp>
#include <pipe/backend/cuda/update/not_finite.hpp>
#include <pipe/backend/cuda/update/flat_parameters.hpp>
#include <pipe/backend/cuda/update/step_outcome.hpp>
#include <pipe/base/bytes.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/base/owner.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/runtime/actions.hpp>
#include <pipe/runtime/cuda/conversion.hpp>
#include <pipe/runtime/cuda/device_part.cuh>
#include <pipe/runtime/cuda/kernel_list.cuh>
#include <pipe/runtime/cuda/group_launch.cuh>
#include <pipe/runtime/cuda/loss_sums.cuh>
#include <pipe/runtime/cuda/profiler_ranges.cuh>
#include <pipe/runtime/cuda/rank_copies.cuh>
#include <pipe/runtime/cuda/rank_streams.cuh>
#include <pipe/runtime/cuda/resources.cuh>
#include <pipe/runtime/cuda/run_state_of.cuh>
#include <pipe/runtime/cuda/run_times.cuh>
#include <pipe/runtime/cuda/upload.cuh>
#include <pipe/runtime/cuda/watched_launch.cuh>
#include <pipe/runtime/description.hpp>
#include <pipe/runtime/job.hpp>
#include <pipe/runtime/shards.hpp>

namespace pp::detail {

/// The part of an executor that does not depend on the optimizer.
class cuda_executor {
 public:
  /// groups: the launches, by device. coefficient_bytes: bytes of the optimizer's coefficients for
  /// one range of parameters
  [[gnu::cold]] cuda_executor(pipeline_description const& d, cuda_place place,
                              std::vector<cuda_group const*> groups, cuda_order order,
                              long coefficient_bytes, bool wants_timeline)
      : d_(d), groups_(std::move(groups)), order_(std::move(order)),
        streams_(place.local, std::move(place.numbers), place.processes),
        copies_(d_, streams_, arenas_, place.processes), times_(d_, streams_, wants_timeline) {
    for (int r = place.local.first_rank(); r < place.local.end_rank(); ++r) {
      rank_description const& plan = d.rank[r];
      streams_.make_current(r);
      allocate(r);
      bookkeeping_[r] = cuda::bump_allocator(memory_of(r) + plan.device_bookkeeping,
                                             plan.device_bookkeeping_bytes);
      tickets_[r] = kept<unsigned>(r, nullptr, cuda::most_tickets);
    }
    for (int c = 0; c < d.chunks; ++c) {
      if (is_local(c)) streams_.make_current(d.chunk[c].rank);
      reached_.push_back(heap_array<cuda::event>(is_local(c) ? milestones * d.micro_batches : 0));
    }
    long const run_bytes = cuda::run_bytes(d.chunk, d.chunks, coefficient_bytes);
    run_to_send_ = cuda::pinned_buffer(run_bytes);
    for_each_device([&](int first) { make_part(first, run_bytes); });
  }
  cuda_executor(cuda_executor const&) = delete;
  cuda_executor& operator=(cuda_executor const&) = delete;

  // ---- a run, in three steps ----

  /// Uploads the mini-batch and the numbers of the run. The coefficients of a training run have
  /// been written to coefficients_to_send() before.
  void begin(job const& j) {
    job_ = j;
    times_.begin(j.watch.see != nullptr);
    streams_.begin();
    upload();
  }
  /// Enqueues every action of the job. add_up(chunk, drops, launch) is called when gradients of a
  /// chunk are complete: those that launches up to number `launch` write last, in the weight
  /// program that drops values or keeps them; INT_MAX: all gradients of the chunk.
  template <class AddUp>
  void enqueue(AddUp const& add_up) {
    if (times_.is_on()) times_.start();
    bool const trains = job_.what == job::kind::train;
    add_up_ = {&add_up, [](void const* use, int chunk, bool drops, int launch) {
                 (*static_cast<AddUp const*>(use))(chunk, drops, launch);
               }};
    for (cuda_entry const& entry : trains ? order_.training : order_.evaluation) {
      if (entry.kind != cuda_entry::kinds::exchange) exchange();
      is_added_up_ = entry.adds_up;
      if (entry.kind == cuda_entry::kinds::sum)
        add_up(entry.of.chunk, false, INT_MAX);
      else if (samples_in(d_, job_, entry.of.micro_batch) > 0)
        entry.kind == cuda_entry::kinds::run ? execute(entry.rank, entry.of)
                                             : prepare_exchange(entry.of);
    }
    exchange();
    copies_.join();
  }

  /// Whether the run keeps times or is watched. Such a run is no graph, as it has other work
  /// between kernels.
  bool is_observed() const { return times_.is_on(); }

  pipeline_description const& description() const { return d_; }
  cuda::rank_streams& streams() { return streams_; }
  cuda::rank_copies& copies() { return copies_; }
  cuda::profiler_ranges const& ranges() const { return ranges_; }
  /// Whether this process has a chunk.
  bool is_local(int chunk) const { return streams_.local().has(d_.chunk[chunk].rank); }
  /// The first rank of this process.
  int root() const { return streams_.root(); }
  /// use(first rank) for each device of this process, which is current meanwhile.
  template <class Use>
  void for_each_device(Use const& use) const {
    local_devices const& local = streams_.local();
    for (int k = local.first; k < local.first + local.count; ++k) {
      streams_.make_current(local.all.first_rank(k));
      use(local.all.first_rank(k));
    }
  }
  /// The upload of mini-batches to the device of a rank.
  cuda::batch_upload& uploads(int rank) const { return part_of(rank).upload; }
  /// Memory for the results of searches, `cuda::search_bytes` on the first device.
  char* found() const { return part_of(root()).found; }
  /// The stream for the rank's next work. The rank's device is current from now on.
  cudaStream_t stream_of(int rank) const { return streams_.of(rank); }
  /// After a failure: see rank_streams::drain.
  void drain() const noexcept {
    for (owner<cuda::device_part> const& part : parts_) part->upload.drain();
    copies_.drain();
    streams_.drain();
  }
  char* memory_of(int rank) const { return arenas_[rank].data(); }
  char* memory(int chunk) const { return memory_of(d_.chunk[chunk].rank); }
  long bytes(int rank) const { return arenas_[rank].bytes(); }
  /// Memory for `count` items in the rank's bookkeeping: copies of `items`, or zeros if it is null.
  template <class T>
  T* kept(int rank, T const* items, long count) {
    T* const p = bookkeeping_[rank].template take<T>(count);
    if (items != nullptr && count > 0)
      cuda::check(cudaMemcpy(p, items, sizeof(T) * std::size_t(count), cudaMemcpyHostToDevice),
                  "upload of a list");
    return p;
  }
  /// Each loss by micro-batch, in device memory; null in a process without the last chunk.
  double* losses() const { return at<double>(last_rank(), d_.rank[last_rank()].losses); }

  /// The losses in the memory of rank 0's device, which judges the step.
  double* judged_losses() const {
    return d_.devices.share(last_rank(), 0) ? losses() : at<double>(0, d_.rank[0].losses);
  }
  /// Address of an offset in a rank's arena; null in another process.
  template <class T>
  T* at(int rank, long offset) const {
    return streams_.local().has(rank) ? reinterpret_cast<T*>(memory_of(rank) + offset) : nullptr;
  }

  /// The numbers of the run in the memory of a rank's device.
  cuda::run_state const* run(int rank) const {
    return reinterpret_cast<cuda::run_state const*>(part_of(rank).run);
  }
  /// The optimizer's coefficients in the memory of a rank's device; coefficients_to_send: the
  /// memory to which the host writes them before a run.
  template <class T>
  T const* coefficients(int rank) const {
    return reinterpret_cast<T const*>(part_of(rank).run + cuda::bytes_for<cuda::run_state>(1));
  }
  template <class T>
  T* coefficients_to_send() const {
    return reinterpret_cast<T*>(run_to_send_.data() + cuda::bytes_for<cuda::run_state>(1));
  }

  /// The state of loss scaling in the memory of a rank's device; null if the precision does not
  /// scale the loss, or for a rank of another process.
  cuda::loss_scaling* scaling(int rank) const {
    return d_.scales_loss && streams_.local().has(rank) ? part_of(rank).scaling : nullptr;
  }
  /// The outcome of the last step in the memory of a rank's device; null in another process.
  cuda::step_outcome* outcome(int rank) const {
    return streams_.local().has(rank) ? part_of(rank).outcome : nullptr;
  }

  /// Copies the outputs of an inference to the caller, each micro-batch as soon as it is complete,
  /// and waits for the end of the run. Only the process of the last chunk has outputs.
  void deliver() {
    // A wait for one event would never end if a process were lost.
    if (copies_.processes() != nullptr) streams_.wait();
    if (job_.batch.output_is_on_device || !is_local(d_.chunks - 1)) return streams_.wait();
    for (int mb = 0; samples_in(d_, job_, mb) > 0; ++mb) {
      reached(d_.chunks - 1, milestone::forward, mb).wait();
      for_each_output(d_, job_, [&](int output) {
        long const each = d_.output[output].bytes / size_of(d_.value_type);
        convert_to_float(d_.value_type, static_cast<float*>(job_.batch.output[output]) + mb * each,
                         downloaded(output, mb), each / d_.samples * samples_in(d_, job_, mb));
      });
    }
    streams_.wait();
  }

  // ---- after a run ----

  /// The times of the actions in the last run.
  cuda::run_times& times() { return times_; }

 private:
  static constexpr int milestones = int(milestone::release) + 1;
  using kernels = cuda::kernel_list<cuda::sum_rows_kernel, cuda::find_not_finite_kernel>;
  static_assert(cuda::fit_every_device(kernels{}));

  cuda::event const& reached(int chunk, milestone m, int micro_batch) const {
    return reached_[std::size_t(chunk)][int(m) * d_.micro_batches + micro_batch];
  }

  [[gnu::cold]] void allocate(int rank) {
    local_devices const& local = streams_.local();
    long const bytes =
        end_of_arena(d_, long(sizeof(float)), rank, local.replicas, local.replica).end;
    try {
      arenas_[rank] = cuda::device_buffer(bytes);
    } catch (error const& e) {
      throw_error<error>({"rank ", rank, ": no memory for an arena of ", bytes, " bytes, of ",
                          d_.bytes(), " that the plan needs in all: ", e.what()});
    }
  }
  /// Prepares the current device, whose first rank is `first`.
  [[gnu::cold]] void make_part(int first, long run_bytes) {
    cuda::prepare_kernels(kernels{});
    parts_.push_back(owner<cuda::device_part>(new cuda::device_part{
        first, cuda::batch_upload(d_, d_.devices.of(first), arenas_, streams_)}));
    cuda::device_part& part = *parts_.back();
    part.streams_of_bits = kept<int>(first, d_.streams.items, d_.streams.count);
    cuda::loss_scaling const start{};
    part.scaling = kept(first, &start, 1);
    part.outcome = kept<cuda::step_outcome>(first, nullptr, 1);
    part.found = kept<char>(first, nullptr, cuda::search_bytes);
    part.run = kept<char>(first, nullptr, run_bytes);
  }
  /// The resources of a rank's device.
  cuda::device_part& part_of(int rank) const {
    return *parts_[std::size_t(streams_.local().number(rank))];
  }
  int last_rank() const { return d_.chunk[d_.chunks - 1].rank; }
  double* row_losses() const { return at<double>(last_rank(), d_.rank[last_rank()].row_losses); }

  /// Staging for an output of a micro-batch. Pinned, because an asynchronous copy to pageable
  /// memory would block the host from enqueueing.
  char* downloaded(int output, int micro_batch) {
    cuda::pinned_buffer& all = outputs_[output];
    long const bytes = d_.output[output].bytes;
    if (all.data() == nullptr) all = cuda::pinned_buffer(bytes * d_.micro_batches);
    return all.data() + micro_batch * bytes;
  }

  /// Enqueues the staging of the mini-batch and the upload of the numbers of the run.
  void upload() {
    *run_to_send_.as<cuda::run_state>() = run_state_of(d_, job_);
    for_each_device([&](int first) {
      cuda::device_part& part = part_of(first);
      part.upload.enqueue(job_);
      cuda::check(cudaMemcpyAsync(part.run, run_to_send_.data(), std::size_t(run_to_send_.bytes()),
                                  cudaMemcpyHostToDevice, stream_of(first)),
                  "upload of the numbers of a run");
    });
    if (is_local(d_.chunks - 1))
      clear_losses(d_, losses(), stream_of(part_of(last_rank()).first_rank));
  }
  void execute(int r, action const& a) {
    auto const shown = ranges_.of(a);
    for_each_need(d_, a, [&](int chunk, milestone m, int mb) { need(r, a, chunk, m, mb); });
    if (!times_.is_on()) return run_action(r, a);
    times_.record(r, a, [&] { run_action(r, a); });
  }

  void need(int r, action const& a, int chunk, milestone m, int micro_batch) {
    int const other = d_.chunk[chunk].rank;
    if (micro_batch < 0 || other == r) return;
    cuda::event const& awaited = d_.devices.share(other, r) ? reached(chunk, m, micro_batch)
                                 // The copy reads the slot last, not the reader of the copy.
                                 : m == milestone::release
                                     ? copies_.arrived(pp::detail::stream_of(a), micro_batch)
                                     : received(a, chunk, m, micro_batch);
    cuda::check(cudaStreamWaitEvent(stream_of(r), awaited, 0), "a wait for an event");
  }
  /// Enqueues the copy of a value that an action reads from a chunk on another device; returns the
  /// event of its arrival. The rank has already enqueued the reader of the slot's value before,
  /// since it has as many slots as its order needs.
  ///
  /// A value from another process has been exchanged in its own entry.
  cuda::event const& received(action const& a, int chunk, milestone m, int micro_batch) {
    int const number = m == milestone::forward ? values_stream(a.chunk) : gradients_stream(a.chunk);
    if (is_local(chunk))
      copies_.copy(number, micro_batch, reached(chunk, m, micro_batch),
                   released(a.chunk, micro_batch - copies_.slots(number)));
    return copies_.arrived(number, micro_batch);
  }
  /// The release of a slot by micro-batch `micro_batch`; null if it is negative.
  cuda::event const* released(int chunk, int micro_batch) const {
    return micro_batch < 0 ? nullptr : &reached(chunk, milestone::release, micro_batch);
  }
  /// Adds the exchange of an action's result to the next group.
  void prepare_exchange(action const& made) {
    int const number = pp::detail::stream_of(made), mb = made.micro_batch;
    bool const is_forward = made.kind == action_kind::forward;
    int const reader = is_forward ? made.chunk + 1 : made.chunk - 1;
    group_.push_back(
        {number, mb,
         is_local(made.chunk)
             ? &reached(made.chunk, is_forward ? milestone::forward : milestone::input_gradient, mb)
             : released(reader, mb - copies_.slots(number))});
  }
  /// Makes all exchanges since the last action at once: none needs another's result.
  void exchange() {
    if (!group_.empty()) copies_.exchange_all(group_);
    group_.clear();
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
        [&](view<copied> const& all) {
          for (copied const& what : all)
            cuda::check(cudaMemcpyAsync(at.at(what.to), at.at(what.from), std::size_t(what.bytes),
                                        cudaMemcpyDeviceToDevice, stream_of(r)),
                        "copy of a value that is handed on");
        },
        [&](address const& from, int output) {
          if (job_.batch.output_is_on_device)
            return uploads(r).give_output(job_, output, mb, at.at(from), stream_of(r));
          long const each = d_.output[output].bytes / d_.samples;
          cuda::check(cudaMemcpyAsync(downloaded(output, mb), at.at(from),
                                      std::size_t(each * samples_in(d_, job_, mb)),
                                      cudaMemcpyDeviceToHost, stream_of(r)),
                      "download of outputs");
        },
        [&](milestone m) {
          cuda::check(cudaEventRecord(reached(c, m, mb), stream_of(r)), "record of an event");
        });
  }

  region_bases bases_for(int c, int mb) const {
    region_bases b = arena_bases(
        d_, c, mb, [this](int rank) { return memory_of(rank); },
        [this](transfer const& x) {
          return d_.devices.share(x.from_rank, x.to_rank) ? memory_of(x.from_rank) + x.from
                                                          : memory_of(x.to_rank) + x.to;
        });
    b.set(region::random, reinterpret_cast<char*>(part_of(d_.chunk[c].rank).streams_of_bits));
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
    a.run = run(r);
    a.tickets = tickets_[r];
    a.first_sample = mb * d_.samples;
    a.scaling = scaling(r) != nullptr ? &scaling(r)->scale : nullptr;
    bool const is_last = &chunk == &d_.chunk[d_.chunks - 1];
    // The loss is the last launch; inference leaves it out.
    int const count = job_.what == job::kind::train
                          ? view.trained
                          : view.count - (job_.what == job::kind::infer && is_last);
    void* operands[most_operands];
    cuda_group const* const groups = groups_[std::size_t(streams_.local().number(r))];
    for (int i = 0; i < count; ++i) {
      launch const& l = view.launches[i];
      placed_operand const* const from = view.operands + l.first;
      for (int k = 0; k < l.count; ++k) operands[k] = at.at(from[k].at);
      if (job_.watch.see != nullptr)
        cuda::check(cudaEventRecord(part_of(r).watched_from, stream_of(r)), "record of an event");
      groups[l.group](a, operands, stream_of(r));
      if (is_added_up_ && &view == &set.weight_program())
        add_up_.call(add_up_.use, int(&chunk - d_.chunk), &set == &chunk.dropping, i);
      if (job_.watch.see != nullptr)
        show(operands,
             {r, int(&chunk - d_.chunk), job_.part.first_micro_batch + mb, p, i, 0, &l, from},
             stream_of(r));
    }
    if (is_last && job_.what != job::kind::infer && p == program_of_loss(set))
      sum_losses(d_, job_, mb, row_losses(), losses(), tickets_[r], stream_of(r));
  }

  /// The program that computes the losses of rows in this job.
  program program_of_loss(program_set const& set) const {
    program_view const& forward = set.programs[int(program::forward)];
    return job_.what == job::kind::train && forward.trained < forward.count ? program::backward
                                                                            : program::forward;
  }
  /// Waits for the launch and calls the watcher. No work of other ranks is enqueued meanwhile.
  [[gnu::cold]] void show(void* const* operands, launch_seen seen, cudaStream_t on) {
    cuda::device_part const& part = part_of(seen.rank);
    cuda::check(cudaEventRecord(part.watched_until, on), "record of an event");
    streams_.wait_for(on, "run of a kernel");
    float ms = 0;
    cuda::check(cudaEventElapsedTime(&ms, part.watched_from, part.watched_until),
                "time between events");
    seen.nanoseconds = long(double(ms) * 1e6);
    watched_launch w{operands, seen, d_.value_type, on, reinterpret_cast<int*>(part.found)};
    seen.reader = w.reader();
    job_.watch.see(job_.watch.of, seen);
  }

  pipeline_description d_;
  std::vector<cuda_group const*> groups_;  // by device
  cuda_order order_;
  cuda::rank_streams streams_;
  heap_array<cuda::device_buffer> arenas_{d_.ranks};
  cuda::rank_copies copies_;
  std::vector<cuda::rank_copies::exchange> group_;          // exchanges since the last action
  std::vector<owner<cuda::device_part>> parts_;             // by device
  heap_array<cuda::bump_allocator> bookkeeping_{d_.ranks};  // by rank: bookkeeping in its arena
  heap_array<unsigned*> tickets_{d_.ranks};                 // by rank, in device memory
  cuda::pinned_buffer run_to_send_;                         // device_part::run, of the next run
  cuda::pinned_buffer outputs_[most_losses];      // by output: all micro-batches of an inference
  std::vector<heap_array<cuda::event>> reached_;  // by chunk; then milestone and micro-batch
  /// The function add_up of enqueue(). is_added_up_: whether it is called after launches of the
  /// current action.
  struct {
    void const* use = nullptr;
    void (*call)(void const*, int, bool, int) = nullptr;
  } add_up_;
  bool is_added_up_ = false;
  cuda::run_times times_;
  cuda::profiler_ranges const ranges_{d_, streams_};
  job job_;
};

}  // namespace pp::detail
