// SPDX-License-Identifier: BSL-1.0
//
// Replicas that apply their gradients a step late: each process computes those of its part of a
// mini-batch, and they travel while the next step computes. An exchange that takes no longer than a
// step costs no time; what it costs is one update of staleness.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/base/libm.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/optim/setting_check.hpp>
#include <pipe/runtime/fingerprint.hpp>
#include <pipe/runtime/host/core/common_kernels.hpp>
#include <pipe/runtime/host/core/rank_link.hpp>
#include <pipe/runtime/job.hpp>
#include <pipe/runtime/sum_tree.hpp>
#include <pipe/schedule/families/wave_clock.hpp>
#include <pipe/train/parts/accumulation_runs.hpp>
#include <pipe/train/parts/batch.hpp>
#include <pipe/train/parts/hash_rows.hpp>
#include <pipe/train/parts/lengths.hpp>
#include <pipe/train/parts/replica_check.hpp>
#include <pipe/train/parts/setting_checks.hpp>
#include <pipe/train/parts/training.hpp>
#include <pipe/transport/process/call_ring.hpp>
#include <pipe/transport/process/process_transport.hpp>
#include <pipe/transport/process/wave_exchange.hpp>
#include <pipe/weights/parameter_hash.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp {

namespace detail {

/// A step of a trainer in two: the gradients of a part of its mini-batch, and an update by the
/// gradients that are in memory then, of whatever step.
template <class Trainer>
struct training_of<Trainer>::halves {
  Trainer& trainer;

  /// Mutual exclusion with the trainer's calls, while the result lives.
  auto enter() const { return trainer.engine_.enter(); }
  /// The next step but `pending` on a mini-batch of several accumulations.
  ///
  /// throws: data_error for a batch or a learning rate out of range; error while accumulated
  ///         gradients are pending, or averages stand in for the parameters
  ///
  /// dense: keeps the rows of a mini-batch with Lengths until its run
  template <class Dense>
  job prepare(typename Trainer::batch const& b, batch_accumulations const& share, int pending,
              [[maybe_unused]] Dense& dense) const {
    if (trainer.accumulated_.count() > 0)
      throw_error<error>({"step(): ", trainer.accumulated_.count(),
                          " accumulated mini-batches are pending; call step() of the trainer"});
    job j;
    j.what = job::kind::train;
    if constexpr (compiled::lengths::block > 0) {
      dense.take(b, j);
      hash_rows<compiled>(j, share.accumulations * share.micro_batches);
    } else {
      take_inputs(b, share.accumulations * share.samples, j);
      take_labels(b, Trainer::labels_per_sample, j);
      hash_labels<typename Trainer::model, typename Trainer::element>(j);
    }
    require_terms(j.loss.has_terms());
    begin_job<compiled>(j, job::kind::train);
    begin(j, trainer.steps_ + 1 + pending);
    return j;
  }
  /// The only ones, as the trainer has chosen them alone.
  kernel_sets kernels() const {
    kernel_sets own;
    own.add(trainer.engine_->instruction_set());
    return own;
  }
  /// Compares replicas, one in each process, after every n-th step: see trainer_settings.
  template <class World>
  void compare(World& world) const {
    if (long const every = trainer.settings_.compare_replicas;
        every > 0 && trainer.steps_ % every == 0)
      compare_hashes(world, hash_of_own<typename Trainer::compiled>(trainer.parameter_places()), 1,
                     trainer.steps_);
  }
  process_call call(job const& j) const {
    return call_of(process_call::kinds::step, j, hash_of(trainer.settings_.optimizer));
  }
  /// This process's accumulation.
  job own_part(job const& whole, batch_accumulations const& share) const {
    return share.part_of<typename Trainer::model, typename Trainer::element>(whole,
                                                                             share.number_of(0), 1);
  }
  /// Runs this process's accumulation, which may have no sample. Returns its result, with the sums
  /// of each loss's terms as losses.
  step_result run(job const& own) const {
    job j = own;
    if (j.batch.samples == 0) return {};
    j.loss.terms = 1;
    for (further_loss& f : j.loss.further.items) f.counted = 1;
    j.update.applies = false;
    j.part.is_continued = true;  // shared parameters are summed in the update
    return trainer.run(j);
  }
  /// The update by the gradients in memory, of a job whose run is over.
  step_result update(job const& whole) const {
    job j;
    j.what = job::kind::train;
    j.loss.gradient_terms = whole.loss.gradient_terms;
    j.part.continues = true;
    begin(j, trainer.steps_ + 1);
    j.update.samples = whole.update.samples;
    step_result const r = trainer.run(j);
    trainer.steps_ += libm::isfinite(r.gradient_norm);
    return r;
  }
  /// use(memory, elements) for the gradients of each stage, and the sums of its buffers.
  template <class Use>
  void for_each_gradient(Use const& use) const {
    using T = typename Trainer::element;
    trainer.parameter_places().for_each_chunk([&](char* memory, chunk_description const& chunk) {
      use(reinterpret_cast<T*>(memory + chunk.gradients), chunk.summed_bytes() / long(sizeof(T)));
    });
  }
  /// use(mean, elements, momentum) for each running mean: its sum is of differences from it.
  template <class Use>
  void for_each_running_mean(Use const& use) const {
    using T = typename Trainer::element;
    trainer.parameter_places().for_each_chunk([&](char* memory, chunk_description const& chunk) {
      for (parameter_place const& p : chunk.parameters)
        if (p.is_committed() && p.commit.of == commit_rule::statistic::mean_of_differences)
          use(reinterpret_cast<T*>(memory + chunk.buffers + p.offset), p.elements(),
              T(p.commit.momentum));
    });
  }

 private:
  void begin(job& j, long step) const {
    trainer.averages_.require_out(step);
    begin_step(j, trainer.settings_, step, learning_rate_of(trainer.settings_, step));
  }
};

}  // namespace detail

/// A process as a replica of a pipeline whose ranks all live in it, as the trainer's do; By, which
/// is Tcp or Mpi, connects the replicas. All make the same calls, with the same mini-batches of
/// batch_samples() samples: replica i computes the gradients of the i-th part of
/// `Trainer::samples`, and reads the inputs of no other.
///
/// law: step n, from 0 on, reads the weights after the updates of the steps before n - 1, so those
///      after clock().waves_of_others(n): one update is missing, clock().staleness() = 1, but for
///      the first step and one after settle(), which miss none
/// law: gradients and losses of n replicas have the bits of GradientAccumulation<n> at these
///      weights, if n is a power of two. In one process the run has the bits of PipeDream2BW up to
///      the first settle()
/// law: a call waits for the exchange of the step before, which has had the time of this step's run
///      of the schedule, and for nothing else
/// law: the weights of all replicas have the same bits between calls
/// law: an update moves running statistics towards those of its step's mini-batch, from where the
///      update before has left them
///
/// The trainer must live as long, in its place, and only settle() leaves it so that it may be
/// saved, or trained otherwise.
template <class Trainer, class By>
class delayed_replica {
  using T = typename Trainer::element;
  using compiled = typename Trainer::compiled;
  static_assert(!compiled::transport::copies && !compiled::backend::has_own_memory,
                "a delayed replica is a pipeline on the Host, whose ranks are threads");
  static_assert(compiled::overlap == detail::step_overlap::none,
                "a delayed replica has a schedule with a flush: its steps do not overlap");
  static_assert(
      compiled::sum::accumulations == 1,
      "a delayed replica is one accumulation of a mini-batch: it has no GradientAccumulation");

 public:
  /// In all processes. waiting: for gradients of other replicas; a deadline of 0: there is none
  ///
  /// throws: error if replicas differ in the pipeline, the arithmetic of their kernels, the weights
  ///         or the number of steps;
  ///         rank_error if a process has failed
  explicit delayed_replica(Trainer& trainer, transports::patience const& waiting = {})
      : of_{trainer},
        exchange_(detail::fingerprint(compiled::description()), bytes_of_slot(), 1, waiting,
                  {"waiting for the gradients of other replicas", "step", "replica",
                   trainer.steps() + 1}),
        dense_(exchange_.processes()) {
    detail::common_kernels<typename By::transport>(of_.kernels(), waiting.deadline);
    int const n = replicas();
    share_ = {n, Trainer::samples,          compiled::micro_batches, replica(),
              n, detail::heap_array<int>(n)};
    for (int& accumulations : share_.counts) accumulations = 1;
    long means = 0;
    of_.for_each_running_mean([&](T*, long elements, T) { means += elements; });
    for (auto* of_step : {&found_, &found_before_}) *of_step = detail::heap_array<T>(means);
    if (!exchange_.is_same(long((parameter_hash(trainer) + std::uint64_t(trainer.steps())) >> 1)))
      throw error(
          "replicas begin with different weights: give all the same seed, or load one checkpoint");
  }
  delayed_replica(delayed_replica const&) = delete;
  delayed_replica& operator=(delayed_replica const&) = delete;

  /// Begins a step: computes this replica's gradients, which travel while the program goes on, and
  /// ends the one before it. Returns the result of that, if there is one.
  ///
  /// throws: data_error for a batch out of range, and what a run throws, after which it is as if
  ///         the step had not begun; not_finite for the step before, which is then left out in all
  ///         replicas, while this one has begun; rank_error if a process has failed, or makes
  ///         another call
  std::optional<step_result> step(typename Trainer::batch const& b) {
    auto const access = of_.enter();
    under_way next{of_.prepare(b, share_, is_under_way_ ? 1 : 0, dense_), {}};
    detail::job const own = of_.own_part(next.whole, share_);
    next.ran = of_.run(own);
    if (is_under_way_) add_up();
    letter const sums = std::exchange(letter_of(replica()), letter_on(next));
    trade_gradients(own.batch.samples > 0);
    exchange_.post();
    ++posted_;
    note_means();
    bool const ends = std::exchange(is_under_way_, true);
    under_way const before = std::exchange(last_, next);
    if (!ends) return std::nullopt;
    return end(before, sums);
  }
  /// Ends the step that is under way, if there is one, and returns its result: for evaluation and
  /// checkpoints. A run that is resumed from here has the bits of one that goes on.
  ///
  /// throws: not_finite, as step(); rank_error if a process has failed
  std::optional<step_result> settle() {
    auto const access = of_.enter();
    if (!is_under_way_) return std::nullopt;
    add_up();
    is_under_way_ = false;
    trade_gradients(false);
    note_means();
    return end(last_, letter_of(replica()));
  }

  /// The number of this replica, and how many there are.
  int replica() const { return exchange_.process(); }
  int replicas() const { return exchange_.processes(); }
  /// The most samples of a mini-batch.
  int batch_samples() const { return share_.accumulations * share_.samples; }
  /// Which updates a step reads.
  static constexpr schedules::wave_clock clock() { return {1}; }
  /// Bytes beside the trainer's: for n replicas n times the gradients, and 96 bytes each; twice the
  /// running means of batch norms.
  long allocated_bytes() const {
    return exchange_.allocated_bytes() + 2 * found_.size() * long(sizeof(T));
  }

 private:
  /// Sent with a replica's gradients.
  struct letter {
    double losses[detail::losses_in<typename Trainer::model::loss>]{};  ///< sums of their terms
    detail::process_call call;
  };
  /// A step whose gradients are on their way.
  struct under_way {
    detail::job whole;
    step_result ran;
  };
  letter letter_on(under_way const& s) const {
    letter made{{}, of_.call(s.whole)};
    for (int i = 0; i < s.ran.losses.size(); ++i) made.losses[i] = s.ran.losses[i];
    return made;
  }

  long bytes_of_slot() const {
    long bytes = sizeof(letter);
    of_.for_each_gradient([&](T*, long n) { bytes += n * long(sizeof(T)); });
    return bytes;
  }
  letter& letter_of(int replica) { return *reinterpret_cast<letter*>(exchange_.slot(0, replica)); }
  T* gradients_of(int replica) {
    return reinterpret_cast<T*>(exchange_.slot(0, replica) + sizeof(letter));
  }
  /// Waits for the step that is under way, and adds it up in the own slot, in the tree's order.
  void add_up() {
    exchange_.arrived(posted_);
    int const me = replica();
    for (int r = 0; r < replicas(); ++r)
      if (detail::process_call const &there = letter_of(r).call, &here = letter_of(me).call;
          !(there == here))
        exchange_.fail({"process ", r, " makes another call than process ", me, ": ",
                        std::string_view(detail::difference(there, here))});
    long const n = (bytes_of_slot() - long(sizeof(letter))) / long(sizeof(T));
    detail::join_tree_into(me, replicas(), [&](int to, int from) {
      for (double const* added = letter_of(from).losses; double& sum : letter_of(to).losses)
        sum += *added++;
      T* const sum = gradients_of(to);
      T const* const added = gradients_of(from);
      for (long i = 0; i < n; ++i) sum[i] += added[i];
    });
  }
  /// Exchanges the gradients in the trainer's memory, or zeros if it has none, and the own slot.
  void trade_gradients(bool has_some) {
    T* slot = gradients_of(replica());
    of_.for_each_gradient([&](T* here, long n) {
      for (long i = 0; i < n; ++i, ++slot) {
        T const own = has_some ? here[i] : T(0);
        here[i] = *slot;
        *slot = own;
      }
    });
  }
  /// Notes the running means as they are, beside those that the step under way has found.
  void note_means() {
    std::swap(found_, found_before_);
    T* to = found_.begin();
    of_.for_each_running_mean([&](T const* mean, long n, T) {
      for (long i = 0; i < n; ++i) *to++ = mean[i];
    });
  }
  /// Corrects running means after an update, whose sums are of differences from them as its step
  /// found them, for what the update before has moved.
  void shift_means() {
    T const *now = found_.begin(), *then = found_before_.begin();
    of_.for_each_running_mean([&](T* mean, long n, T momentum) {
      for (long i = 0; i < n; ++i) mean[i] += momentum * (*then++ - *now++);
    });
  }
  /// The update of a step by the gradients in the trainer's memory. sums: of each loss's terms
  step_result end(under_way const& s, letter const& sums) {
    loss_values const losses = s.whole.loss.means_of(sums.losses);
    double const loss = s.whole.loss.further.sum_of(losses.items);
    step_result r;
    bool const is_sound = libm::isfinite(loss);
    if (is_sound) r = of_.update(s.whole);
    if (!is_sound || !libm::isfinite(r.gradient_norm))
      detail::throw_error<not_finite>(
          {"step ", s.whole.step,
           " left out: its loss or a gradient is not finite, in one replica or several"});
    shift_means();
    of_.compare(By::transport::world());
    double const waited = s.ran.bubble * s.ran.seconds + r.bubble * r.seconds;
    r.loss = loss, r.losses = losses;
    r.seconds += s.ran.seconds;
    r.bubble = waited / r.seconds;
    return r;
  }

  typename detail::training_of<Trainer>::halves of_;
  detail::wave_exchange<typename By::transport> exchange_;
  [[no_unique_address]] detail::dense_batches_of<compiled> dense_;
  detail::batch_accumulations share_;  // of all replicas: an accumulation for each
  long posted_ = 0;
  bool is_under_way_ = false;
  under_way last_;
  /// Running means as the last step that has begun found them, and the one before it; at the end,
  /// as the last update finds them, and its step.
  detail::heap_array<T> found_, found_before_;
};

}  // namespace pp
PIPE_OPTIMIZED_END
