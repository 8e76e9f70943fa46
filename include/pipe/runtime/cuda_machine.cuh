// SPDX-License-Identifier: BSL-1.0
//
// Runs a pipeline on one GPU. Every rank has a stream; one host thread walks all actions in an order in which everything comes after what
// it needs, and enqueues each on its rank's stream, behind events of the actions of other ranks that it waits for. Boundary values are
// read where they were written. The host waits once, at the end of a run.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include <pipe/backend/cuda/arguments.hpp>
#include <pipe/backend/cuda/launch.cuh>
#include <pipe/backend/cuda/narrow_tile.hpp>
#include <pipe/backend/cuda/pieces.hpp>
#include <pipe/backend/cuda/verdict.hpp>
#include <pipe/base/bytes.hpp>
#include <pipe/runtime/actions.hpp>
#include <pipe/runtime/conversion.hpp>
#include <pipe/runtime/cuda_resources.cuh>
#include <pipe/runtime/description.hpp>
#include <pipe/runtime/job.hpp>

namespace pp {

/// Launches the kernels of a group, with what was made for it at construction.
struct cuda_group {
  void (*launch)(void const* made, cuda::arguments const&, cudaStream_t) = nullptr;
  void const* made = nullptr;
  void operator()(cuda::arguments const& a, cudaStream_t on) const { launch(made, a, on); }
};

/// Launches of a program that run as one kernel, from `first` on.
struct cuda_run {
  launch const* first = nullptr;
  int count = 0;
  void (*run)(cuda::arguments const* each, cudaStream_t) = nullptr;
};

/// Which rank takes its next action: a list for training and one for evaluation.
struct cuda_order {
  std::vector<int> training, evaluation;
};

/// The part of a machine that does not depend on the optimizer.
class cuda_machine {
 public:
  cuda_machine(pipeline_description const& d, cuda_group const* groups, std::vector<cuda_run> runs, cuda_order order)
      : d_(d), groups_(groups), runs_(std::move(runs)), order_(std::move(order)), streams_(std::size_t(d.ranks)),
        row_losses_(long(sizeof(double)) * d.loss_rows), losses_(long(sizeof(double)) * d.micro_batches),
        position_(std::size_t(d.ranks)), done_(std::size_t(d.ranks)), run_of_(std::size_t(d.ranks)) {
    for (int r = 0; r < d.ranks; ++r) {
      arenas_.emplace_back(d.rank[r].bytes);
      rank_description const& plan = d.rank[r];
      int const most = plan.training_count > plan.evaluation_count ? plan.training_count : plan.evaluation_count;
      run_of_[std::size_t(r)].resize(std::size_t(most));
      for (int i = 0; i < most; ++i) marks_.push_back(time_marks{cuda::event(true), cuda::event(true)});
      first_mark_.push_back(long(marks_.size()) - most);
    }
    for (int i = 0; i < milestones * d.chunks * d.micro_batches; ++i) reached_.emplace_back();
    long at = 0;
    for (int i = 0; i <= d.inputs; ++i) {
      batch_at_.push_back(at);
      at += align_up(batch_bytes(i) * d.micro_batches);
    }
    batch_ = cuda::device_buffer(at);
    staging_ = cuda::pinned_buffer(at);
    streams_of_bits_ = cuda::device_buffer(long(sizeof(int)) * (d.stream_count > 0 ? d.stream_count : 1));
    if (d.stream_count > 0)
      cuda::check(cudaMemcpy(streams_of_bits_.data(), d.streams, sizeof(int) * std::size_t(d.stream_count),
                             cudaMemcpyHostToDevice),
                  "copy of stream numbers");
    if (d.scales_loss) {
      scaling_ = cuda::device_buffer(long(sizeof(cuda::loss_scaling)));
      cuda::loss_scaling const start{};
      cuda::check(cudaMemcpy(scaling_.data(), &start, sizeof start, cudaMemcpyHostToDevice), "copy of the loss scale");
    }
  }
  cuda_machine(cuda_machine const&) = delete;
  cuda_machine& operator=(cuda_machine const&) = delete;

  // ---- a run, in three steps ----

  /// Uploads the mini-batch and enqueues every action of the job.
  void enqueue(job const& j) {
    job_ = j;
    begin_ = std::chrono::steady_clock::now();
    upload();
    std::fill(position_.begin(), position_.end(), 0);
    std::fill(done_.begin(), done_.end(), 0);
    bool const trains = j.what == job::kind::train;
    for (int const r : trains ? order_.training : order_.evaluation) {
      rank_description const& plan = d_.rank[r];
      action const a = (trains ? plan.training : plan.evaluation)[position_[std::size_t(r)]++];
      if (samples_in(d_, j, a.micro_batch) > 0) execute(r, a);
    }
  }

  pipeline_description const& description() const { return d_; }
  cudaStream_t stream_of(int rank) const { return streams_[std::size_t(rank)]; }
  char* memory_of(int rank) const { return arenas_[std::size_t(rank)].data(); }
  char* memory(int chunk) const { return memory_of(d_.chunk[chunk].rank); }
  long bytes(int rank) const { return arenas_[std::size_t(rank)].bytes(); }
  /// By micro-batch, on the device.
  double* losses() const { return losses_.as<double>(); }

  /// On the device; null: the loss is not scaled.
  cuda::loss_scaling* scaling() const { return scaling_.as<cuda::loss_scaling>(); }

  /// Waits for an inference, and gives the user its outputs.
  void deliver() {
    wait_for_all();
    if (d_.value_type == dtype::f32) return;  // they were downloaded to where the user wants them
    long const count = d_.output_bytes / size_of(d_.value_type) / d_.samples * job_.samples;
    convert_to_float(d_.value_type, job_.output, outputs_.data(), count);
  }

  /// Waits for a stream: what it was given has been done, and had no error.
  void wait_for(int rank) const { cuda::check(cudaStreamSynchronize(stream_of(rank)), "run of the pipeline"); }
  void wait_for_all() const {
    for (int r = 0; r < d_.ranks; ++r) wait_for(r);
  }
  /// After a failure: returns when nothing is under way on the device that reads or writes the caller's or the host's memory.
  void drain() const noexcept {
    for (int r = 0; r < d_.ranks; ++r) (void)cudaStreamSynchronize(stream_of(r));
  }
  /// Rank `waiting` goes on when `other` has done what it was given so far.
  void meet(int waiting, int other, cuda::event const& at) const {
    if (waiting == other) return;
    cuda::check(cudaEventRecord(at, stream_of(other)), "an event");
    cuda::check(cudaStreamWaitEvent(stream_of(waiting), at, 0), "a wait for an event");
  }

  // ---- after it ----

  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }

  /// What rank r did in the last run, by the device's clock.
  executed_action const* executed(int r) {
    read_clock();
    return run_of_[std::size_t(r)].data();
  }
  int executed_count(int r) const { return done_[std::size_t(r)]; }

  /// Share of the ranks' time, from the first action to the end of the last, in which they had nothing to do.
  double bubble() {
    read_clock();
    long busy = 0, last = 0;
    for (int r = 0; r < d_.ranks; ++r)
      for (int i = 0; i < executed_count(r); ++i) {
        executed_action const& e = run_of_[std::size_t(r)][std::size_t(i)];
        busy += e.end - e.start;
        last = e.end > last ? e.end : last;
      }
    return last > 0 ? 1 - double(busy) / (double(last) * d_.ranks) : 0;
  }

 private:
  static constexpr int milestones = int(milestone::release) + 1;
  struct time_marks {
    cuda::event start, end;
  };

  cuda::event const& reached(int chunk, milestone m, int micro_batch) const {
    return reached_[std::size_t((chunk * milestones + int(m)) * d_.micro_batches + micro_batch)];
  }

  long batch_bytes(int which) const { return which < d_.inputs ? d_.input_bytes[which] : d_.label_bytes; }

  /// Where the outputs of an inference go: to the user, or, where they are no floats yet, to memory of their own.
  char* downloaded_outputs() {
    if (d_.value_type == dtype::f32) return static_cast<char*>(job_.output);
    outputs_.resize(std::size_t(d_.output_bytes * d_.micro_batches));
    return outputs_.data();
  }

  /// What the user's numbers become: labels, ids and what the loss reads stay as they are.
  dtype type_of(int which) const {
    return which < d_.inputs && d_.input_is_converted[which] ? d_.value_type : dtype::f32;
  }
  /// Everything that the user gave, in pinned memory, filled up with zeros, and from there to the device.
  void upload() {
    long end = 0;
    for (int i = 0; i <= d_.inputs; ++i) {
      void const* const users = i < d_.inputs ? job_.input[i] : job_.label;
      long const all = batch_bytes(i) * d_.micro_batches, given = batch_bytes(i) / d_.samples * job_.samples;
      if (users == nullptr) continue;
      char* const to = staging_.data() + batch_at_[std::size_t(i)];
      convert_from_float(type_of(i), to, users, given / size_of(type_of(i)));
      std::memset(to + given, 0, std::size_t(all - given));
      end = batch_at_[std::size_t(i)] + all;
    }
    cuda::check(cudaMemcpyAsync(batch_.data(), staging_.data(), std::size_t(end), cudaMemcpyHostToDevice, stream_of(0)),
                "upload of the mini-batch");
    cuda::check(cudaMemsetAsync(losses_.data(), 0, std::size_t(losses_.bytes()), stream_of(0)),
                "clearing of the losses");
    cuda::check(cudaEventRecord(uploaded_, stream_of(0)), "an event");
    for (int r = 1; r < d_.ranks; ++r)
      cuda::check(cudaStreamWaitEvent(stream_of(r), uploaded_, 0), "a wait for an event");
  }

  void execute(int r, action const& a) {
    for_each_need(d_, a, [&](int chunk, milestone m, int mb) { need(r, chunk, m, mb); });
    std::size_t const mark = std::size_t(first_mark_[std::size_t(r)] + done_[std::size_t(r)]);
    cuda::check(cudaEventRecord(marks_[mark].start, stream_of(r)), "an event");
    run_action(r, a);
    cuda::check(cudaEventRecord(marks_[mark].end, stream_of(r)), "an event");
    run_of_[std::size_t(r)][std::size_t(done_[std::size_t(r)]++)] = executed_action{a, 0, 0, 0};
    clock_is_read_ = false;
  }

  void need(int r, int chunk, milestone m, int micro_batch) {
    if (micro_batch < 0 || d_.chunk[chunk].rank == r) return;
    cuda::check(cudaStreamWaitEvent(stream_of(r), reached(chunk, m, micro_batch), 0), "a wait for an event");
  }

  void run_action(int r, action const& a) {
    int const c = a.chunk, mb = a.micro_batch;
    region_bases const at = bases_for(c, mb);
    pp::run_action(
        d_, job_, a, [&](program_set const& set, program p) { run_program(d_.chunk[c], set, p, at, r, mb); },
        [&](copied const* what, int count) {
          for (int i = 0; i < count; ++i)
            cuda::check(cudaMemcpyAsync(at.at(what[i].to), at.at(what[i].from), std::size_t(what[i].bytes),
                                        cudaMemcpyDeviceToDevice, stream_of(r)),
                        "copy of a value that is handed on");
        },
        [&](address const& output) {
          cuda::check(cudaMemcpyAsync(downloaded_outputs() + mb * d_.output_bytes, at.at(output),
                                      std::size_t(d_.output_bytes / d_.samples * samples_in(d_, job_, mb)),
                                      cudaMemcpyDeviceToHost, stream_of(r)),
                      "download of outputs");
        },
        [&](milestone m) { cuda::check(cudaEventRecord(reached(c, m, mb), stream_of(r)), "an event"); });
  }

  region_bases bases_for(int c, int mb) const {
    region_bases b = bases_in_arenas(d_, c, mb, [this](int chunk) { return memory(chunk); });
    b.set(region::random, streams_of_bits_.data());
    for (int i = 0; i < d_.inputs; ++i)
      b.set(input_region(i), batch_.data() + batch_at_[std::size_t(i)] + mb * d_.input_bytes[i]);
    b.set(region::label, batch_.data() + batch_at_[std::size_t(d_.inputs)] + mb * d_.label_bytes);
    return b;
  }

  void run_program(chunk_description const& chunk, program_set const& set, program p, region_bases const& at, int r,
                   int mb) {
    program_view const& view = set.programs[int(p)];
    cuda::arguments a;
    a.workspace = memory_of(r) + d_.rank[r].workspace;
    a.loss = row_losses_.as<double>();
    a.loss_scale = 1 / job_.gradient_terms;
    a.scaling = scaling() != nullptr ? &scaling()->scale : nullptr;
    a.accumulate = mb > 0 || job_.continues;
    a.wants_gradient = a.training = job_.what == job::kind::train;
    a.valid_samples = samples_in(d_, job_, mb);
    a.seed = job_.seed;
    a.step = job_.step;
    a.first_sample = job_.first_sample + long(mb) * d_.samples;
    bool const is_last = &chunk == &d_.chunk[d_.chunks - 1];
    int const count = view.count - (job_.what == job::kind::infer && is_last ? 1 : 0);  // the loss is the last launch
    auto const place = [&](launch const& l) {
      for (int k = 0; k < l.count; ++k) a.slot[k] = at.at(view.operands[l.first + k].at);
    };
    for (int i = 0; i < count; ++i) {
      if (cuda_run const* const run = run_from(view.launches + i); run != nullptr) {
        cuda::arguments each[cuda::most_in_run];
        for (int k = 0; k < run->count; ++k) {
          place(view.launches[i + k]);
          each[k] = a;
        }
        run->run(each, stream_of(r));
        i += run->count - 1;
        continue;
      }
      launch const& l = view.launches[i];
      placed_operand const* const from = view.operands + l.first;
      place(l);
      if (job_.watch != nullptr) cuda::check(cudaEventRecord(watched_from_, stream_of(r)), "an event");
      groups_[l.group](a, stream_of(r));
      if (job_.watch != nullptr)
        show(l, from, a, {r, int(&chunk - d_.chunk), mb, p, i, 0, &l, from, nullptr}, stream_of(r));
    }
    if (p == program::forward && is_last && job_.what != job::kind::infer) sum_row_losses(mb, stream_of(r));
  }

  /// The run that begins with a launch, or null. A watcher sees every launch on its own.
  cuda_run const* run_from(launch const* first) const {
    if (job_.watch != nullptr) return nullptr;
    for (cuda_run const& run : runs_)
      if (run.first == first) return &run;
    return nullptr;
  }

  /// A watcher sees what a launch has written in the host's memory, as floats; meanwhile everybody waits.
  void show(launch const& l, placed_operand const* from, cuda::arguments const& a, launch_seen seen, cudaStream_t on) {
    cuda::check(cudaEventRecord(watched_until_, on), "an event");
    cuda::check(cudaStreamSynchronize(on), "run of a kernel");
    float ms = 0;
    cuda::check(cudaEventElapsedTime(&ms, watched_from_, watched_until_), "time between events");
    seen.nanoseconds = long(double(ms) * 1e6);
    std::vector<std::vector<float>> numbers(std::size_t(l.count));
    std::vector<void*> slots(std::size_t(l.count));
    std::vector<char> copy;
    for (int k = 0; k < l.count; ++k) {
      long const count = from[k].elements;
      dtype const type = from[k].is_wide ? dtype::f32 : d_.value_type;
      copy.resize(std::size_t(count * size_of(type)));
      numbers[std::size_t(k)].resize(std::size_t(count));
      slots[std::size_t(k)] = numbers[std::size_t(k)].data();
      if (count == 0) continue;
      cuda::check(cudaMemcpy(copy.data(), a.slot[k], copy.size(), cudaMemcpyDeviceToHost), "download for a watcher");
      convert_to_float(type, slots[std::size_t(k)], copy.data(), count);
    }
    seen.slots = slots.data();
    job_.watch(job_.watcher, seen);
  }

  /// losses[mb] = the sum of the micro-batch's row losses.
  void sum_row_losses(int mb, cudaStream_t on) {
    cuda::launch_body<cuda::add_up_kernel>({row_losses_.as<double>(), d_.loss_rows, nullptr, 1, losses() + mb}, on);
  }

  void read_clock() {
    if (clock_is_read_) return;
    clock_is_read_ = true;
    auto const since = [&](cuda::event const& e) {
      float ms = 0;
      cuda::check(cudaEventElapsedTime(&ms, uploaded_, e), "time between events");
      return long(double(ms) * 1e6);
    };
    for (int r = 0; r < d_.ranks; ++r)
      for (int i = 0; i < executed_count(r); ++i) {
        time_marks const& m = marks_[std::size_t(first_mark_[std::size_t(r)] + i)];
        executed_action& e = run_of_[std::size_t(r)][std::size_t(i)];
        e.start = since(m.start);
        e.end = since(m.end);
      }
  }

  pipeline_description d_;
  cuda_group const* groups_;
  std::vector<cuda_run> runs_;
  cuda_order order_;
  std::vector<cuda::stream> streams_;
  std::vector<cuda::device_buffer> arenas_;
  cuda::device_buffer batch_, streams_of_bits_, row_losses_, losses_, scaling_;
  cuda::pinned_buffer staging_;
  std::vector<char> outputs_;   // of an inference, of all micro-batches
  std::vector<long> batch_at_;  // of each input and of the labels, in both
  std::vector<cuda::event> reached_;
  cuda::event uploaded_{true}, watched_from_{true}, watched_until_{true};
  std::vector<time_marks> marks_;  // of each rank's actions, one after the other
  std::vector<long> first_mark_;
  std::vector<int> position_, done_;
  std::vector<std::vector<executed_action>> run_of_;
  bool clock_is_read_ = true;
  job job_;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace pp
