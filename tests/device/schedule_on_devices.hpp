// SPDX-License-Identifier: BSL-1.0
//
// A pipeline that is described at run time, for the executor of GPUs: any schedule on any number of
// ranks, devices and micro-batches, without a compilation for each. Its kernels compute hashes of
// what they read, so that a value that is not there, or not yet, or not any more, shows in the
// gradients.
#pragma once

#include <climits>
#include <cstdint>
#include <string>
#include <vector>

#include <cuda_runtime.h>

#include <pipe/pipe.hpp>
#include <pipe/plan/compiled/chunk_layout.hpp>
#include <pipe/plan/compiled/memory_map.hpp>
#include <pipe/runtime/cuda/engine.cuh>
#include <pipe/runtime/cuda/process_order.hpp>
#include <pipe/runtime/cuda/replica_sum.cuh>
#include <pipe/schedule/catalog/catalog.hpp>
#include <pipe/schedule/communication.hpp>
#include <pipe/schedule/in_flight.hpp>
#include <pipe/schedule/simulate.hpp>

namespace on_host {

using hash = std::uint64_t;
inline hash mix(hash a, hash b) {
  hash x = (a ^ (b * 0x9e3779b97f4a7c15u)) + 0x632be59bd9b4e019u;
  x ^= x >> 29, x *= 0xbf58476d1ce4e5b9u, x ^= x >> 32;
  return x;
}

/// A value at a boundary: of the chunk before, and one that passes by all chunks but the first and
/// the last.
struct boundary_value {
  hash made, passed;
};

/// The operands of a program's only launch, in this order. Null: the chunk has no such neighbour.
struct operands {
  boundary_value *in, *out;
  boundary_value *gradient_in, *gradient_out;
  hash *record, *pending, *gradient;
};
inline constexpr pp::detail::region regions[] = {pp::detail::region::boundary_in,
                                                 pp::detail::region::boundary_out,
                                                 pp::detail::region::gradient_in,
                                                 pp::detail::region::gradient_out,
                                                 pp::detail::region::record,
                                                 pp::detail::region::pending,
                                                 pp::detail::region::parameter_gradients};

/// What a chunk computes, on a device and, in the order of the model, on the host.
struct chunk_of_hashes {
  int number = 0, chunks = 1;
  bool is_last() const { return number == chunks - 1; }

  /// seed: of the run, so that no value is that of the run before
  void forward(operands const& o, int mb, hash seed, double* loss) const {
    hash const x = number > 0 ? o.in->made : mix(hash(mb), seed);
    o.record[0] = x;
    if (number == 0 && !is_last()) o.out->passed = mix(hash(mb), ~seed);
    if (!is_last()) o.out->made = mix(x, hash(number));
    if (is_last()) *loss = double(mix(x, number > 0 ? o.in->passed : 0) >> 40);
  }
  void backward_input(operands const& o, int mb) const {
    hash const g = is_last() ? mix(o.record[0], 3) : o.gradient_in->made;
    o.pending[0] = g;
    if (number == 0) return;
    o.gradient_out->made = mix(g, o.record[0]);
    if (is_last()) o.gradient_out->passed = mix(o.in->passed, hash(mb));
  }
  /// Reads again what the slots of the neighbours have, which are the chunk's until its end.
  void backward_weight(operands const& o, int, bool accumulates) const {
    hash const again = mix(number > 0 ? o.in->made : 0, is_last() ? 0 : o.gradient_in->made),
               skip = number == 0 && !is_last() ? o.gradient_in->passed : 0;
    hash const mine = mix(mix(o.pending[0], o.record[0]), mix(again, skip));
    o.gradient[0] = mix(accumulates ? o.gradient[0] : 0, mine);
  }
};

/// A schedule's pipeline, in the memory plan of a trainer.
struct pipeline_of_hashes {
  pp::schedules::run_time_problem problem;
  pp::schedules::dynamic_table table;
  std::vector<pp::detail::slot_count> slots;
  std::vector<chunk_of_hashes> made;
  std::vector<pp::detail::launch> launches;                // by chunk, then program
  std::vector<pp::detail::placed_operand> operand_places;  // the same for all
  std::vector<pp::detail::cuda_group> groups;
  std::vector<pp::detail::chunk_description> chunks;
  std::vector<pp::detail::chunk_holder> holders;  // one of each chunk
  std::vector<pp::detail::rank_description> ranks;
  pp::detail::copied passed_value{}, passed_gradient{};
  pp::detail::pipeline_description d;

  pipeline_of_hashes(pp::schedules::family const& f, int rank_count, int chunks_per_rank,
                     int micro_batches, int devices)
      : problem(problem_of(rank_count, chunks_per_rank, micro_batches)),
        table(pp::schedules::make_dynamic_table(f, problem)) {
    int const n = problem.chunks;
    describe_programs(f.splits_backward);
    auto const when = pp::schedules::simulate(problem, table);
    for (int c = 0; c + 1 < n; ++c)
      slots.push_back(pp::detail::spare_slots(
          pp::schedules::boundary_slots(problem, table, when, c), micro_batches));
    d.devices = {devices, rank_count};
    d.ranks = rank_count, d.chunks = n, d.micro_batches = micro_batches;
    d.inputs = 0, d.loss_rows = 1;
    ranks.resize(std::size_t(rank_count));
    for (int c = 0; c < n; ++c) lay_out(c);
    for (int r = 0; r < rank_count; ++r) lay_out_rank(r);
    d.chunk = chunks.data(), d.rank = ranks.data(), d.holder = holders.data();
  }
  pipeline_of_hashes(pipeline_of_hashes const&) = delete;

  pp::detail::cuda_order order() const { return {pp::cuda::order_of(problem, table, slots), {}}; }
  /// That of a process of those that have a device each.
  pp::detail::cuda_order order_in(pp::detail::local_devices const& process) const {
    auto const steps = pp::schedules::communicate(problem, table, slots);
    std::vector<pp::detail::rank_instructions> of_ranks;
    for (int r = 0; r < d.ranks; ++r)
      of_ranks.push_back({std::data(steps.row(r)), steps.size(r), nullptr, 0});
    return {
        pp::cuda::entries_of(pp::cuda::merge_instructions(of_ranks.data(), d.ranks, true), process),
        {}};
  }

  /// The gradient of every chunk and the losses, computed one micro-batch after the other.
  std::vector<hash> expected(int micro_batches, hash seed, std::vector<double>& losses) const {
    std::vector<hash> gradients(made.size());
    losses.assign(std::size_t(d.micro_batches), 0);
    for (int mb = 0; mb < micro_batches; ++mb) {
      std::vector<boundary_value> values(made.size() + 1), of_gradients(made.size() + 1);
      std::vector<hash> records(made.size());
      auto const at = [&](std::size_t c) {
        return operands{&values[c],  &values[c + 1], &of_gradients[c + 1], &of_gradients[c],
                        &records[c], nullptr,        &gradients[c]};
      };
      for (std::size_t c = 0; c < made.size(); ++c) {
        made[c].forward(at(c), mb, seed, &losses[std::size_t(mb)]);
        if (c > 0) values[c + 1].passed = values[c].passed;
      }
      for (std::size_t c = made.size(); c-- > 0;) {
        hash pending = 0;
        operands o = at(c);
        o.pending = &pending;
        made[c].backward_input(o, mb);
        if (!made[c].is_last()) of_gradients[c].passed = of_gradients[c + 1].passed;
        made[c].backward_weight(o, mb, mb > 0);
      }
    }
    return gradients;
  }

 private:
  static pp::schedules::run_time_problem problem_of(int ranks, int chunks_per_rank,
                                                    int micro_batches) {
    pp::schedules::run_time_problem p;
    p.ranks = ranks, p.chunks = ranks * chunks_per_rank, p.micro_batches = micro_batches;
    for (int c = 0; c < p.chunks; ++c) p.costs.push_back({20 + c % 3, 20 + c % 2, 15});
    return p;
  }

  template <pp::detail::program P>
  static void launch(void const* of, pp::cuda::arguments const& a, void* const* places,
                     cudaStream_t on) {
    using pp::detail::program;
    if (fake_gpu::gpu.answer_current(on->device) != cudaSuccess)
      throw pp::error("a launch on a device that is not current");
    operands o{};
    void** const each[] = {
        reinterpret_cast<void**>(&o.in),          reinterpret_cast<void**>(&o.out),
        reinterpret_cast<void**>(&o.gradient_in), reinterpret_cast<void**>(&o.gradient_out),
        reinterpret_cast<void**>(&o.record),      reinterpret_cast<void**>(&o.pending),
        reinterpret_cast<void**>(&o.gradient)};
    for (int i = 0; i < int(std::size(each)); ++i) *each[i] = places[i];
    auto const& c = *static_cast<chunk_of_hashes const*>(of);
    on->put([=] {
      if (P == program::forward) c.forward(o, a.first_sample, a.run->seed, a.loss);
      if (P == program::backward || P == program::backward_input)
        c.backward_input(o, a.first_sample);
      if (P == program::backward || P == program::backward_weight)
        c.backward_weight(o, a.first_sample, a.accumulate);
    });
  }

  /// A launch for each program of each chunk.
  void describe_programs(bool splits) {
    using pp::detail::program;
    using pp::detail::region;
    passed_value = {{region::boundary_in, 8}, {region::boundary_out, 8}, 8};
    passed_gradient = {{region::gradient_in, 8}, {region::gradient_out, 8}, 8};
    for (region const r : regions) operand_places.push_back({{r, 0}, 0, false, 0});
    int const n = problem.chunks, operand_count = int(std::size(regions));
    for (int c = 0; c < n; ++c) made.push_back({c, n});
    for (int c = 0; c < n; ++c) {
      void const* const of = &made[std::size_t(c)];
      groups.push_back({&launch<program::forward>, of, 1});
      groups.push_back({&launch<program::backward>, of, 1});
      groups.push_back({&launch<program::backward_input>, of, 1});
      groups.push_back({&launch<program::backward_weight>, of, 1});
      for (int p = 0; p < 4; ++p) launches.push_back({4 * c + p, 0, operand_count, c, false});
    }
    chunks.resize(std::size_t(n));
    for (int c = 0; c < n; ++c) {
      pp::detail::program_set& set = chunks[std::size_t(c)].keeping;
      auto const view = [&](program p, int which) {
        set.programs[int(p)] = {&launches[std::size_t(4 * c + which)], operand_places.data(), 1, 1};
      };
      view(program::forward, 0);
      if (!splits) view(program::backward, 1);
      if (splits) view(program::backward_input, 2), view(program::backward_weight, 3);
    }
  }

  void lay_out(int number) {
    pp::detail::chunk_description& c = chunks[std::size_t(number)];
    int const n = problem.chunks;
    c.rank = pp::schedules::rank_of(table.where, d.ranks, number);
    c.first_holder = number;
    holders.push_back({number, c.rank, 0});
    if (number > 0 && number + 1 < n) {
      c.passed_values = {&passed_value, 1};
      c.keeping.passed_gradients = {&passed_gradient, 1};
    }
    pp::detail::chunk_facts f;
    f.keeping.bytes.trained = f.keeping.bytes.parameters = sizeof(hash);
    f.keeping.bytes.record = f.keeping.bytes.pending = sizeof(hash);
    f.keeping.bytes.boundary = f.keeping.bytes.gradient = sizeof(boundary_value);
    f.keeping_micro_batches = d.micro_batches;
    f.in_flight = pp::schedules::peak_in_flight(table, c.rank, number);
    f.pending_slots = std::max(1, pp::detail::peak_pending(table, number));
    auto const is_far = [&](int other) {
      return !d.devices.share(pp::schedules::rank_of(table.where, d.ranks, other), c.rank);
    };
    f.has_entered = number > 0, f.has_left = number + 1 < n;
    if (f.has_entered)
      f.entered = slots[std::size_t(number) - 1], f.copies_value = is_far(number - 1);
    if (f.has_left) f.left = slots[std::size_t(number)], f.copies_gradient = is_far(number + 1);
    f.received_bytes = f.received_gradient_bytes = sizeof(boundary_value);
    pp::detail::lay_out_chunk(f, c);
  }

  void lay_out_rank(int r) {
    using optimizer = pp::SGD;
    pp::detail::rank_description& rank = ranks[std::size_t(r)];
    for (pp::detail::chunk_description& c : chunks) {
      if (c.rank != r) continue;
      pp::detail::shift(c, rank.bytes);
      rank.bytes += c.sizes.weights;
      holders[std::size_t(c.first_holder)].values = rank.bytes;
      rank.bytes += c.sizes.values;
    }
    auto const take = [&](long bytes) {
      long const at = rank.bytes;
      rank.bytes += pp::detail::align_up(bytes);
      return at;
    };
    rank.scratch = rank.workspace = rank.bytes;
    rank.row_losses = take(sizeof(double));
    rank.losses = take(d.micro_batches * long(sizeof(double)));
    rank.device_bookkeeping_bytes = pp::cuda::bookkeeping_bytes<optimizer>(
        chunks.data(), problem.chunks, r, d.devices.is_first(r), 0, 0);
    rank.device_bookkeeping = take(rank.device_bookkeeping_bytes);
    rank.fixed_bytes = rank.bytes;
    rank.training = {table.row(r).data(), table.size(r)};
  }
};

/// The part of a mini-batch that a replica has.
struct run_of_hashes {
  int samples = 0;
  hash seed = 0;
};

/// The executor of such a pipeline, and what it has computed.
class hashing_executor {
 public:
  explicit hashing_executor(pipeline_of_hashes const& of)
      : hashing_executor(of, place_of(of.d.devices), of.order()) {}
  /// One of several, on the device that is current.
  hashing_executor(pipeline_of_hashes const& of, pp::detail::cuda_place const& place,
                   pp::detail::cuda_order const& groups)
      : of_(of), executor_(of.d, place, std::vector(place.numbers.size(), of.groups.data()), groups,
                           0, false),
        sums_(place.processes, place.local),
        room_(std::size_t(place.local.replicas) * pp::cuda::replica_sum::line) {}

  /// Puts a step on streams.
  void enqueue(int samples, hash seed) {
    begin(samples, seed);
    enqueue();
  }
  void wait() { executor_.streams().wait(); }

  /// A step, as a graph.
  void replay(int samples, hash seed) {
    begin(samples, seed);
    executor_.streams().join();
    auto const g = pp::cuda::graph::capture(executor_.stream_of(0), [&] { enqueue(); });
    captured = *fake_gpu::gpu.last_captured;
    g.launch(executor_.stream_of(0));
    wait();
  }
  fake_gpu::graph captured;     // of the last run that was one
  int added_while_running = 0;  // sums that a launch has begun, in all runs

  /// Whether gradients and losses are those of one micro-batch after the other.
  bool is_right(int samples) const { return is_right(std::vector{run_of_hashes{samples, seed_}}); }
  /// The same of one of several replicas, whose gradients have been added up.
  bool is_right(std::vector<run_of_hashes> const& replicas) const {
    std::vector<double> losses;
    std::vector<hash> expected(of_.made.size());
    for (std::size_t r = 0; r < replicas.size(); ++r) {
      std::vector<double> own;
      auto const part = of_.expected(replicas[r].samples, replicas[r].seed, own);
      for (std::size_t c = 0; c < part.size(); ++c) expected[c] += part[c];
      if (int(r) == executor_.streams().local().replica) losses = own;
    }
    for (std::size_t c = 0; c < expected.size(); ++c) {
      if (!executor_.is_local(int(c))) continue;
      char const* const at = executor_.memory(int(c)) + of_.chunks[c].gradients;
      if (*reinterpret_cast<hash const*>(at) != expected[c]) return false;
    }
    for (std::size_t mb = 0; mb < losses.size() && executor_.losses() != nullptr; ++mb)
      if (executor_.losses()[mb] != losses[mb]) return false;
    return true;
  }

 private:
  void begin(int samples, hash seed) {
    seed_ = seed, samples_ = samples;
    pp::detail::job j;
    j.what = pp::detail::job::kind::train;
    j.batch.samples = samples;
    j.seed = seed;
    executor_.begin(j);
  }
  void enqueue() {
    executor_.streams().fork();
    std::vector<bool> is_added(of_.made.size());
    executor_.enqueue([&](int chunk, bool, int launch) {
      if (is_added[std::size_t(chunk)]) return;  // each program is one launch
      is_added[std::size_t(chunk)] = true;
      added_while_running += launch < INT_MAX;
      add_up(chunk);
    });
    executor_.streams().join();
  }
  void add_up(int chunk) {
    int const rank = of_.chunks[std::size_t(chunk)].rank;
    hash* const gradient =
        reinterpret_cast<hash*>(executor_.memory(chunk) + of_.chunks[std::size_t(chunk)].gradients);
    if (samples_ == 0) executor_.stream_of(rank)->put([=] { *gradient = 0; });
    sums_.add_up<hash>(
        gradient, 1, room_.data(), long(room_.size()), executor_.copies().exchanges_behind(rank),
        [](long, hash* to, hash const* from, cudaStream_t on) { on->put([=] { *to += *from; }); });
  }
  static pp::detail::cuda_place place_of(pp::detail::device_blocks all) {
    return {{all, 0, all.devices}, pp::cuda::use_devices(0, all.devices).numbers, nullptr};
  }
  pipeline_of_hashes const& of_;
  mutable pp::detail::cuda_executor executor_;
  pp::cuda::replica_sum sums_;
  std::vector<char> room_;  // for what other replicas send
  hash seed_ = 0;
  int samples_ = 0;
};

}  // namespace on_host
