// SPDX-License-Identifier: BSL-1.0
//
// Virtual workers: each process trains a copy of a model on its own mini-batches, as its own
// pipeline, and they add each other's changes of the weights some waves later. None waits for
// another one within the clock distance, so slow ones, or those of other machines, delay no step.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/base/hash.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/schedule/families/wave_clock.hpp>
#include <pipe/transport/process/process_transport.hpp>
#include <pipe/transport/process/wave_exchange.hpp>
#include <pipe/weights/parameter_hash.hpp>
#include <pipe/weights/parameter_view.hpp>

namespace pp {

/// Settings of a virtual_worker.
struct wave_settings {
  /// How many waves of each other worker a wave may begin without: see wave_clock. The same in all
  /// processes.
  int clock_distance = 0;
  transports::patience waiting{};  ///< for waves of other workers; a deadline of 0: there is none
};

/// A process as a virtual worker (HetPipe): a trainer whose ranks all live in this process, and the
/// waves of all processes of By, which is Tcp or Mpi. Workers may have other stages, schedules,
/// mini-batches and numbers of steps in a wave; the model, the precision and the first weights are
/// those of all.
///
/// law: wave c of worker i begins with (((w + u[0, 0]) + u[1, 0]) + ... + u[0, 1]) ..., the changes
///      of all workers in the waves before n = wave_clock::waves_of_others(c), wave by wave and in
///      each by worker; then come u[i, n], ..., u[i, c - 1]. A change is the weights after the wave
///      less those before it. So the run has the same bits whatever the speeds
/// law: a wave waits for those that it begins with, and for nothing else
/// law: after settle() the trained parameters of all workers have the same bits
///
/// Buffers (running statistics), optimizer state and averages are a worker's own. The trainer must
/// live as long, in its place; between waves it must not change its parameters.
template <class Trainer, class By>
class virtual_worker {
  using T = typename Trainer::element;
  static_assert(!Trainer::compiled::transport::copies &&
                    !Trainer::compiled::backend::has_own_memory,
                "a virtual worker is a pipeline on the Host, whose ranks are threads");

 public:
  /// In all processes. The trainer's weights at this moment are those that changes are added to.
  ///
  /// throws: data_error for a distance below 0; error if workers differ in the model, the distance
  ///         or the weights; rank_error if a process has failed
  explicit virtual_worker(Trainer& trainer, wave_settings const& s = {})
      : trainer_(trainer), clock_{checked(s).clock_distance} {
    detail::fnv_hash plan;
    for (auto const& p : trainer.parameters()) {
      if (p.gradients.empty()) continue;
      plan.add(std::uint64_t(p.rows)), plan.add(std::uint64_t(p.columns));
      trained_.push_back(p.values);
      base_.insert(base_.end(), p.values.begin(), p.values.end());
    }
    plan.add(sizeof(T)), plan.add(std::uint64_t(s.clock_distance));
    exchange_ = std::make_unique<exchange>(plan.value, long(base_.size() * sizeof(T)),
                                           clock_.kept(), s.waiting);
    std::uint64_t const hash =
        detail::hash_of_bytes(base_.data(), base_.size() * sizeof(T), plan.value);
    if (!exchange_->is_same(long(hash >> 1)))
      throw error(
          "virtual workers begin with different weights: give all the same seed, or load "
          "weights that were saved after settle()");
  }
  virtual_worker(virtual_worker const&) = delete;
  virtual_worker& operator=(virtual_worker const&) = delete;

  /// A wave: waits for the waves that it begins with, calls steps(), which trains the trainer, and
  /// sends the change while the program goes on. Returns what steps() does.
  ///
  /// throws: what steps() throws, after which the next call goes on with the same wave; rank_error
  ///         if a process has failed
  template <class Steps>
  decltype(auto) wave(Steps&& steps) {
    if (!std::exchange(is_begun_, true)) begin();
    if constexpr (std::is_void_v<std::invoke_result_t<Steps&>>) {
      steps();
      end();
    } else {
      decltype(auto) result = steps();
      end();
      return result;
    }
  }
  /// Waits for all waves that others have as this worker, and puts them into the weights, which are
  /// then those of all workers: for evaluation and for checkpoints. A run that is resumed from here
  /// has the bits of one that goes on.
  ///
  /// throws: error in a wave that has thrown; rank_error if a process has failed
  void settle() {
    if (is_begun_) throw error("settle(): a wave has begun and not ended, since its steps threw");
    add_before(waves_);
    write();
  }

  /// Waves that have ended.
  long waves() const { return waves_; }
  /// The number of this worker, and how many there are.
  int worker() const { return exchange_->process(); }
  int workers() const { return exchange_->processes(); }
  schedules::wave_clock clock() const { return clock_; }
  /// Bytes beside the trainer's: for each trained parameter of n workers 1 + n (D + 1) elements.
  long allocated_bytes() const {
    return exchange_->allocated_bytes() + long(base_.size() * sizeof(T));
  }

 private:
  using exchange = detail::wave_exchange<typename By::transport>;

  static wave_settings const& checked(wave_settings const& s) {
    if (s.clock_distance < 0 || s.clock_distance > 1000)
      detail::throw_error<data_error>(
          {"clock_distance: expected a number in [0, 1000], got ", s.clock_distance});
    return s;
  }
  T* changes(long wave, int worker) { return reinterpret_cast<T*>(exchange_->slot(wave, worker)); }
  /// Adds the waves before n to the base, which has those before added_.
  void add_before(long n) {
    if (n > added_) exchange_->arrived(n);
    for (; added_ < n; ++added_)
      for (int worker = 0; worker < workers(); ++worker) {
        T const* const change = changes(added_, worker);
        for (std::size_t i = 0; i < base_.size(); ++i) base_[i] += change[i];
      }
  }
  /// Makes the trainer's weights the base and the own waves that it has not.
  void write() {
    std::size_t at = 0;
    for (auto const& values : trained_)
      for (T& value : values) {
        value = base_[at];
        for (long w = added_; w < waves_; ++w) value += changes(w, worker())[at];
        ++at;
      }
    trainer_.parameters_changed();
  }
  void begin() {
    add_before(clock_.waves_of_others(waves_));
    write();
    // The slot of the change has the weights before the wave meanwhile.
    T* before = changes(waves_, worker());
    for (auto const& values : trained_)
      for (T const& value : values) *before++ = value;
  }
  void end() {
    T* change = changes(waves_, worker());
    for (auto const& values : trained_)
      for (T const& value : values) *change = value - *change, ++change;
    ++waves_;
    is_begun_ = false;
    exchange_->post();
  }

  Trainer& trainer_;
  schedules::wave_clock clock_;
  std::vector<std::span<T>> trained_;  // in the order of the model
  std::vector<T> base_;
  long waves_ = 0, added_ = 0;
  bool is_begun_ = false;
  std::unique_ptr<exchange> exchange_;
};

}  // namespace pp
