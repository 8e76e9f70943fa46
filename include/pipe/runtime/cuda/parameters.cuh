// SPDX-License-Identifier: BSL-1.0
//
// The operations of runtime/step_end.hpp on GPUs. Each rank's stream works on its own chunks. One
// kernel, on the device of rank 0, decides whether the step is sound. Later kernels read the
// decision in the memory of their own device, and the host reads it once all work is done.
#pragma once

#include <span>
#include <type_traits>
#include <vector>

#include <pipe/backend/cuda/update/step_outcome.hpp>
#include <pipe/backend/cuda/update/update.hpp>
#include <pipe/optim/optimizer.hpp>
#include <pipe/runtime/cuda/accumulation_sums.cuh>
#include <pipe/runtime/cuda/executor.cuh>
#include <pipe/runtime/cuda/kernel_list.cuh>
#include <pipe/runtime/cuda/optimizer_states.cuh>
#include <pipe/runtime/cuda/rank_updates.cuh>
#include <pipe/runtime/cuda/replica_work.cuh>
#include <pipe/runtime/cuda/spectral_updates.cuh>
#include <pipe/runtime/cuda/whole_updates.cuh>
#include <pipe/runtime/step_end.hpp>

namespace pp::detail {

/// The end-of-step operations of compiled pipeline P.
///
/// law:   work is enqueued only; the public renew_copies() also waits for it
/// needs: the executor and the optimizer outlive this object
template <class P>
class cuda_parameter_operations {
 public:
  using optimizer = typename P::optimizer;
  using value = typename P::value;

  /// Makes the work lists, in memory from the bookkeeping of the ranks, and uploads them.
  [[gnu::cold]] cuda_parameter_operations(cuda_executor& executor, optimizer const& o)
      : executor_(executor), d_(executor.description()), optimizer_(o),
        read_(long(sizeof(cuda::step_outcome))), sums_(executor), replicas_(executor),
        whole_(executor, optimizer_, own_, states_) {
    executor_.for_each_device([&](int first) {
      cuda::prepare_kernels(kernels{});
      cuda::prepare_kernels(typename whole_updates::kernels{});
      squares_.push_back(kept<double>(first, d_.parameter_count));
      clamped_.push_back(kept<double>(first, d_.parameter_count));
    });
    long ranges = 0;
    for (int c = 0; c < d_.chunks; ++c) {
      lists_.push_back(executor_.is_local(c) ? lists_of(d_.chunk[c]) : lists{});
      lists_.back().first_update = ranges;
      ranges += d_.chunk[c].updates.count;
    }
  }

  cuda_rank_updates<P> const& own() const { return own_; }
  cuda_optimizer_states<P> const& states() const { return states_; }
  /// Writes the optimizer's coefficients for job j to coefficients_to_send().
  void prepare(job const& j) {
    if (j.what != job::kind::train || !j.update.applies) return;
    long number = 0;
    for (int c = 0; c < d_.chunks; ++c)
      for (update_range const& u : d_.chunk[c].updates) {
        // Factor 1: the kernel multiplies gradients by the factor of the outcome.
        custom::update_context const context{j.step, j.update.learning_rate * u.rate_scale, 1,
                                             u.decay_scale};
        if constexpr (custom::two_pass_optimizer<optimizer>)
          if (u.whole) send(number, optimizer_.template prepare_tensor<float>(context));
        if constexpr (spectral_optimizer<optimizer>)
          if (u.whole) send(number, optimizer_.template prepare_matrix<float>(context, u.shape));
        if constexpr (custom::element_optimizer<optimizer>)
          if (!u.whole) send(number, optimizer_.template prepare<float>(context));
        ++number;
      }
  }

  /// Adds gradients of a chunk that are complete in this process (see cuda_executor::enqueue) to
  /// those of the other replicas, if job j is the last run of a step.
  void complete(int chunk, bool drops, int launch, job const& j) {
    if (!exchanges(j)) return;
    replicas_.add_up(chunk, drops, launch, [&](gradient_bucket const& p) {
      sums_.join(d_.chunk[chunk], p.begin, p.end, j);
    });
  }
  /// Enqueues the end of job j, after all actions of the job. A step that is not sound changes no
  /// parameter. Sets `failed_update` to the step's number before the first launch that writes state
  /// of the next step.
  void enqueue_end(job const& j, long& failed_update) {
    bool const clamps = j.what == job::kind::train && j.update.applies && j.update.clip_value > 0;
    unsigned const known = run_lines(step_end, facts_of(d_, j), [&](step_op op, unsigned facts) {
      // step_op::judge counts the step, and may change the loss scale of the next step.
      if (op == step_op::judge && (facts & run_fact::updates)) failed_update = j.step;
      execute(op, j, clamps);
      // Only the device knows whether the step is sound: every update kernel checks this there.
      return op == step_op::judge ? facts | run_fact::is_sound : facts;
    });
    if (known & run_fact::updates) renew_copies(known, j);
    if (!(known & run_fact::is_last)) return;
    int const root = executor_.root();
    cuda::check(cudaMemcpyAsync(read_.data(), executor_.outcome(root), sizeof(cuda::step_outcome),
                                cudaMemcpyDeviceToHost, streams_.of(root)),
                "download of the outcome");
  }
  cuda_accumulation_sums<P>& sums() { return sums_; }
  /// The outcome of a step whose last run has ended.
  cuda::step_outcome const& outcome() const { return *read_.as<cuda::step_outcome>(); }

  /// Renews all copies of parameters after a write from outside, and waits for the end.
  void renew_copies() {
    shorten();
    renew_copies(facts_of(d_, job{}) | run_fact::was_written, job{});
    streams_.wait();
  }

 private:
  using whole_updates = std::conditional_t<spectral_optimizer<optimizer>, cuda_spectral_updates<P>,
                                           cuda_whole_updates<P>>;
  /// The update of an optimizer that has a formula for single elements.
  using step_type =
      cuda::optimizer_step<optimizer, std::conditional_t<P::passes::has_copies, value, void>>;
  template <class F>
  using over_flat = cuda::flat_kernel<F>;
  /// The kernels of every pipeline. Kernels of 16-bit copies and of buffers are added if needed.
  using always =
      cuda::kernel_list<cuda::judge_kernel, cuda::sum_squares_kernel, cuda::add_up_kernel,
                        over_flat<cuda::clamp_elements>, over_flat<cuda::add_elements<float>>,
                        over_flat<cuda::approach_elements>>;
  /// The kernels that pipeline P launches here: the kernels of every pipeline, and those that its
  /// optimizer, buffers and 16-bit copies need. The kernels of whole tensors are in whole_updates.
  static constexpr auto all_kernels() {
    constexpr auto with_buffers =
        cuda::maybe_before<P::has_buffers, over_flat<cuda::commit_elements>>(always{});
    constexpr auto with_copies =
        cuda::maybe_before<P::passes::has_copies, over_flat<cuda::convert_elements<value>>>(
            with_buffers);
    return cuda::maybe_before<custom::element_optimizer<optimizer>, over_flat<step_type>>(
        with_copies);
  }
  using kernels = decltype(all_kernels());
  static_assert(cuda::fit_every_device(kernels{}));
  static_assert(cuda::fit_every_device(typename whole_updates::kernels{}));

  /// The work lists of a chunk's launches, in device memory.
  ///
  /// units: elements from the start of the rank's arena
  struct lists {
    cuda::flat_range const* ranges = nullptr;
    /// By parameter, the number of its first range in `ranges`; one item more, the end.
    cuda::extent const* first_ranges = nullptr;
    /// By range, the sum of its squares, written in every step.
    double* sums = nullptr;
    cuda::flat_range const* buffers = nullptr;  // counted from the start of the region of buffers
    /// By number of the committed buffer in the chunk, which is the group of the buffer's ranges.
    cuda::buffer_rule const* rules = nullptr;
    long range_count = 0, buffer_count = 0;
    long first_update = 0;  // number of the chunk's first update range among all chunks
  };

  /// `count` zeros in the rank's bookkeeping.
  template <class T>
  T* kept(int rank, long count) {
    return executor_.kept<T>(rank, nullptr, count);
  }
  /// Writes the coefficients of update range `number` of all chunks to coefficients_to_send().
  template <class Set>
  void send(long number, Set const& set) {
    cuda::coefficients_at<optimizer, Set>(executor_.coefficients_to_send<unsigned char>(), number) =
        set;
  }
  /// A number of bytes as a number of floats, the type of parameters.
  static long element(long bytes) { return bytes / long(sizeof(float)); }
  /// Whether the norm counts a parameter: trained, at its first place.
  static bool is_measured(parameter_place const& p) { return p.trained && !p.shared; }
  float* floats(int rank) const { return executor_.at<float>(rank, 0); }
  /// Start of the values that kernels read as parameters: the 16-bit copies, or the parameters
  /// themselves. In elements of `value`, from the start of the arena.
  static long read_at(chunk_description const& c) {
    return P::passes::has_copies ? c.copies / long(sizeof(value)) : element(c.values);
  }
  value* values(int rank) const { return executor_.at<value>(rank, 0); }
  value* copies(chunk_description const& c) const { return values(c.rank) + read_at(c); }

  /// Makes the work lists of a chunk and uploads them, once, at construction.
  [[gnu::cold]] lists lists_of(chunk_description const& c) {
    std::vector<cuda::flat_range> ranges, buffers;
    std::vector<cuda::buffer_rule> rules;
    std::vector<cuda::extent> first;
    for (parameter_place const& p : c.parameters) {
      first.push_back(cuda::extent(ranges.size()));
      if (is_measured(p))
        cuda::cut_into_ranges(element(c.gradients + p.offset), p.elements(), 0,
                              [&](cuda::flat_range const& x) { ranges.push_back(x); });
      if (p.is_committed()) {
        cuda::cut_into_ranges(element(c.sums + p.offset), p.elements(), 1,
                              [&](cuda::flat_range const& x) { ranges.push_back(x); });
        cuda::cut_into_ranges(element(p.offset), p.elements(), int(rules.size()),
                              [&](cuda::flat_range const& x) { buffers.push_back(x); });
        // The sums of a variance follow those of its mean.
        rules.push_back({p.commit, p.commit.is_variance() ? padded<float>(p.elements()) : 0});
      }
    }
    first.push_back(cuda::extent(ranges.size()));
    lists l;
    l.ranges = executor_.kept(c.rank, ranges.data(), long(ranges.size()));
    l.first_ranges = executor_.kept(c.rank, first.data(), long(first.size()));
    l.sums = kept<double>(c.rank, long(ranges.size()));
    l.buffers = executor_.kept(c.rank, buffers.data(), long(buffers.size()));
    l.rules = executor_.kept(c.rank, rules.data(), long(rules.size()));
    l.buffer_count = long(buffers.size());
    l.range_count = long(ranges.size());
    return l;
  }

  /// Enqueues an operation of the end of a run. `clamps`: whether gradients are clipped by value.
  void execute(step_op op, job const& j, bool clamps) {
    auto const each = [&](auto const& use) {
      for (int c = 0; c < d_.chunks; ++c)
        if (executor_.is_local(c)) use(c);
    };
    switch (op) {
      case step_op::accumulate: return sums_.add(j), replicas_.finish(j);
      case step_op::share:
        if constexpr (P::zero::level > 0) own_.share(), shorten();
        return;
      // A barrier: the root after all ranks, then all ranks after the root.
      case step_op::barrier: return streams_.join(), streams_.fork();
      case step_op::sum_ties: return sum_ties();
      case step_op::measure: return each([&](int c) { measure(c, clamps); });
      case step_op::gather: return streams_.join(), gather(j, clamps);
      case step_op::judge: return judge(j, clamps), spread(), streams_.fork();
      case step_op::update: return each([&](int c) { update(c); });
      case step_op::average: return each([&](int c) { average(d_.chunk[c]); });
      case step_op::commit: return each([&](int c) { commit(c); });
      case step_op::transpose: return;  // products read parameters themselves
      case step_op::copy_ties: return copy_ties();
    }
  }
  /// Enqueues the renewal of all 16-bit copies, if there are any.
  void shorten() {
    if constexpr (P::passes::has_copies)
      for (chunk_description const& c : std::span(d_.chunk, std::size_t(d_.chunks))) {
        if (!streams_.local().has(c.rank)) continue;
        cuda::convert_elements<value> const shorten{copies(c), floats(c.rank) + element(c.values)};
        cuda::launch_body<cuda::flat_kernel<cuda::convert_elements<value>>>(
            {cuda::flat_ranges::over(element(c.sizes.parameters)), shorten}, streams_.of(c.rank));
      }
  }
  /// Enqueues the operations of copies_follow, after a change of parameters.
  void renew_copies(unsigned facts, job const& j) {
    run_lines(copies_follow, facts, [&](step_op op, unsigned known) {
      execute(op, j, false);
      return known;
    });
  }

  /// The number of values of a loss that are judged: one for each micro-batch, or one if
  /// accumulations have been added up.
  long losses_of(job const& j) const { return has_accumulations(j) ? 1 : d_.micro_batches; }
  /// Copies what rank 0 judges to its device, in the order of the model: losses and squared norms
  /// of chunks on other devices.
  void gather(job const& j, bool clamps) {
    int const last = d_.chunk[d_.chunks - 1].rank;
    if (!d_.devices.share(last, 0))
      move(last, executor_.losses(), 0, executor_.judged_losses(),
           (d_.losses - 1) * d_.micro_batches + losses_of(j), 0);
    if (j.what != job::kind::train) return;
    for (int c = 0; c < d_.chunks; ++c) {
      chunk_description const& chunk = d_.chunk[c];
      if (d_.devices.share(chunk.rank, 0) || chunk.parameters.count == 0) continue;
      int const first = chunk.parameters[0].index, count = chunk.parameters.count;
      for (auto const* of : {&squares_, &clamped_})
        if (of == &squares_ || clamps)
          move(chunk.rank, squares_at(*of, chunk.rank, first), 0, squares_at(*of, 0, first), count,
               0);
    }
  }
  /// Copies the outcome, and the state of loss scaling, from rank 0's device to the other devices.
  void spread() {
    for (int k = 1; k < d_.devices.devices; ++k) {
      int const other = d_.devices.first_rank(k);
      move(0, executor_.outcome(0), other, executor_.outcome(other), 1, 0);
      if (d_.scales_loss) move(0, executor_.scaling(0), other, executor_.scaling(other), 1, 0);
    }
  }
  /// See rank_copies::move.
  template <class T>
  void move(int from_rank, T const* from, int to_rank, T* to, long count, int on) {
    executor_.copies().move(from_rank, from, to_rank, to, count * long(sizeof(T)), on);
  }
  /// The squared norms on a rank's device, from a parameter on; null in another process.
  double* squares_at(std::vector<double*> const& of, int rank, int parameter) const {
    local_devices const& local = streams_.local();
    return local.has(rank) ? of[std::size_t(local.number(rank))] + parameter : nullptr;
  }

  /// Enqueues the kernel on rank 0 that computes loss, norm and clipping factor, and decides
  /// whether the step is sound. Since the host does not decide, it need not wait before it enqueues
  /// the updates.
  void judge(job const& j, bool clamps) {
    if (!streams_.local().has(0)) return;
    bool const trains = j.what == job::kind::train;
    cuda::launch_body<cuda::judge_kernel>(
        {squares_[0], clamps ? clamped_[0] : nullptr, trains ? d_.parameter_count : 0,
         executor_.judged_losses(), losses_of(j), d_.micro_batches, executor_.run(0),
         trains ? executor_.scaling(0) : nullptr, j.update.applies, executor_.outcome(0)},
        streams_.of(0));
  }

  /// Enqueues the squared norms of chunk c's gradients and, with clipping by value, the clipping
  /// and the squared norms after it.
  void measure(int c, bool clamps) {
    add_squares(c, squares_);
    if (!clamps) return;
    int const rank = d_.chunk[c].rank;
    cuda::launch_body<cuda::flat_kernel<cuda::clamp_elements>>(
        {where(c), {floats(rank), executor_.run(rank), executor_.scaling(rank)}},
        streams_.of(rank));
    add_squares(c, clamped_);
  }
  /// The ranges of a chunk's gradients (group 0), and of the sums of its buffers (group 1).
  cuda::flat_ranges where(int c) const {
    lists const& l = lists_[std::size_t(c)];
    return {l.ranges, l.range_count, 0};
  }
  /// Enqueues the squared norms of chunk c's gradients: of[device][number of the parameter].
  void add_squares(int c, std::vector<double*> const& of) {
    chunk_description const& chunk = d_.chunk[c];
    if (chunk.parameters.count == 0) return;
    lists const& l = lists_[std::size_t(c)];
    cudaStream_t const on = streams_.of(chunk.rank);
    cuda::launch_body<cuda::sum_squares_kernel>({where(c), floats(chunk.rank), l.sums}, on);
    cuda::launch_body<cuda::add_up_kernel>({l.sums, 0, l.first_ranges, chunk.parameters.count,
                                            squares_at(of, chunk.rank, chunk.parameters[0].index)},
                                           on);
  }

  /// Enqueues the optimizer step on a chunk's parameters, which does nothing if it is not sound.
  void update(int chunk) {
    if constexpr (custom::element_optimizer<optimizer>) update_elements(chunk);
    whole_.update(chunk);
  }
  /// Enqueues the update of the chunk's ranges of single elements that this replica updates.
  void update_elements(int chunk) {
    using coefficients = typename optimizer::template coefficients<float>;
    chunk_description const& c = d_.chunk[chunk];
    cudaStream_t const on = streams_.of(c.rank);
    float* const memory = floats(c.rank);
    own_.for_each(chunk, [&](update_range const& u, int i) {
      if (u.whole) return;
      step_type step;
      step.of_group = &cuda::coefficients_at<optimizer, coefficients const>(
          executor_.coefficients<unsigned char>(c.rank),
          lists_[std::size_t(chunk)].first_update + i);
      step.weights = memory + element(c.values) + u.begin;
      step.gradients = memory + element(c.gradients) + u.begin;
      // The states of the range. The second is read only if the optimizer has two.
      step.first = states_.of(c) + u.state;
      step.second = step.first + (u.end - u.begin);
      step.judged = executor_.outcome(c.rank);
      if constexpr (P::passes::has_copies) step.copy = copies(c) + u.begin;
      cuda::launch_body<cuda::flat_kernel<step_type>>(
          {cuda::flat_ranges::over(u.end - u.begin), step}, on);
    });
  }
  /// Enqueues the averages of a chunk's trained parameters.
  void average(chunk_description const& c) {
    cudaStream_t const on = streams_.of(c.rank);
    float* const memory = floats(c.rank);
    cuda::approach_elements const average{memory + element(c.average), memory + element(c.values),
                                          executor_.run(c.rank), executor_.outcome(c.rank)};
    cuda::launch_body<cuda::flat_kernel<cuda::approach_elements>>(
        {cuda::flat_ranges::over(element(c.sizes.trained)), average}, on);
  }

  /// Enqueues the update of a chunk's buffers from their sums over all samples since the last step.
  void commit([[maybe_unused]] int c) {
    if constexpr (P::has_buffers) {
      chunk_description const& chunk = d_.chunk[c];
      lists const& l = lists_[std::size_t(c)];
      if (l.buffer_count == 0) return;
      float* const memory = floats(chunk.rank);
      cuda::commit_elements const follow{memory + element(chunk.buffers),
                                         memory + element(chunk.sums), l.rules,
                                         executor_.run(chunk.rank), executor_.outcome(chunk.rank)};
      cuda::launch_body<cuda::flat_kernel<cuda::commit_elements>>(
          {{l.buffers, l.buffer_count, 0}, follow}, streams_.of(chunk.rank));
    }
  }

  /// Adds the gradients of a shared parameter's later places to that of its first place.
  ///
  /// law: sums are in the order of the model
  void sum_ties() {
    for (tie const& t : d_.ties) {
      if (!t.place.trained) continue;
      chunk_description const &place = d_.chunk[t.chunk], &owner = d_.chunk[t.owner_chunk];
      float* added = executor_.at<float>(place.rank, place.gradients + t.place.offset);
      if (!d_.devices.share(place.rank, owner.rank)) {
        float* const received = executor_.at<float>(owner.rank, d_.rank[owner.rank].received_tie);
        move(place.rank, added, owner.rank, received, t.place.elements(), owner.rank);
        added = received;
      }
      if (!executor_.is_local(t.owner_chunk)) continue;
      cuda::add_elements<float> const add{
          executor_.at<float>(owner.rank, owner.gradients + t.owner.offset), added};
      cuda::launch_body<cuda::flat_kernel<cuda::add_elements<float>>>(
          {cuda::flat_ranges::over(t.owner.elements()), add}, streams_.of(owner.rank));
    }
  }
  /// Copies shared parameters from their first place to the later ones.
  void copy_ties() {
    for (tie const& t : d_.ties) {
      chunk_description const &place = d_.chunk[t.chunk], &owner = d_.chunk[t.owner_chunk];
      auto const copy = [&]<class T>(T const*, long to, long from) {
        move(owner.rank, executor_.at<T>(owner.rank, from), place.rank,
             executor_.at<T>(place.rank, to), t.owner.elements(), place.rank);
      };
      copy(static_cast<float const*>(nullptr), place.values + t.place.offset,
           owner.values + t.owner.offset);
      constexpr long each = sizeof(value), wide = sizeof(float);
      if constexpr (P::passes::has_copies)
        copy(static_cast<value const*>(nullptr), place.copies + t.place.offset / wide * each,
             owner.copies + t.owner.offset / wide * each);
    }
  }

  cuda_executor& executor_;
  cuda::rank_streams& streams_ = executor_.streams();
  pipeline_description const& d_;
  optimizer const& optimizer_;
  cuda_rank_updates<P> own_{executor_};
  cuda_optimizer_states<P> states_{executor_, own_};
  std::vector<lists> lists_;  // by chunk
  // By device, then by parameter, in device memory: of the device's chunks and, on the first
  // device, of all chunks.
  std::vector<double*> squares_, clamped_;
  cuda::pinned_buffer read_;
  cuda_accumulation_sums<P> sums_;
  cuda_replica_work<P> replicas_;
  whole_updates whole_;
};

}  // namespace pp::detail
