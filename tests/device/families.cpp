// SPDX-License-Identifier: BSL-1.0
//
// Every schedule on several devices: values arrive at the right action, whatever the devices
// prefer, and every wait for an event is needed.
#include <algorithm>
#include <initializer_list>
#include <memory>
#include <vector>

#include "catch.hpp"

#include "device/meeting_links.hpp"
#include "device/schedule_on_devices.hpp"

using namespace pp;

namespace {

using fake_gpu::gpu;
using fake_gpu::preference;
using on_host::hashing_executor;
using on_host::pipeline_of_hashes;

/// Whether a trainer runs a family's tables: they end in a flush, and each chunk is on one rank.
bool is_for_trainers(schedules::family const& f, schedules::run_time_problem const& p) {
  return f.trains && !f.searches && replicas(f.where) == 1 && f.refuses(p) == nullptr &&
         detail::check_runs(schedules::make_dynamic_table(f, p)).ok();
}

/// use(pipeline, micro-batches) for each family on 1 to 8 ranks, of up to `most` devices.
template <class Use>
void for_every_schedule(int most, std::initializer_list<int> all_micro_batches, Use const& use) {
  int families = 0;
  for (schedules::family const& f : schedules::catalog) {
    bool is_one = false;
    for (int ranks = 1; ranks <= 8; ++ranks)
      for (int const micro_batches : all_micro_batches) {
        int const per_rank = f.chunks_per_rank == 0 ? 2 : f.chunks_per_rank;
        schedules::run_time_problem p;
        p.ranks = ranks, p.chunks = ranks * per_rank / replicas(f.where);
        p.micro_batches = micro_batches;
        p.costs.resize(std::size_t(p.chunks));
        if (!is_for_trainers(f, p)) continue;
        int const devices = 1 + (ranks * 7 + micro_batches) % std::min(ranks, most);
        INFO(f.name << ", " << ranks << " ranks on " << devices << " devices, " << micro_batches
                    << " micro-batches");
        use(pipeline_of_hashes(f, ranks, per_rank, micro_batches, devices), micro_batches);
        is_one = true;
      }
    families += is_one;
  }
  CHECK(families >= 12);
}

/// A pipeline, or replicas of it, in several processes, of which each has a device: all of them are
/// in this one.
struct processes_of_hashes {
  on_host::meeting_place meetings;
  std::vector<std::unique_ptr<on_host::meeting_link>> links;
  std::vector<std::unique_ptr<hashing_executor>> executors;

  /// edit(process, entries) changes the order of a process.
  template <class Edit>
  processes_of_hashes(pipeline_of_hashes const& made, Edit const& edit, int replicas = 1)
      : replicas_(replicas) {
    int const devices = made.d.devices.devices;
    for (int p = 0; p < replicas * devices; ++p) {
      detail::local_devices const local{made.d.devices, p % devices, 1, p / devices, replicas};
      detail::cuda_order order = made.order_in(local);
      edit(p, order.training);
      REQUIRE(cudaSetDevice(p) == cudaSuccess);
      links.push_back(std::make_unique<on_host::meeting_link>(meetings, p));
      executors.push_back(std::make_unique<hashing_executor>(
          made, detail::cuda_place{local, {p}, links.back().get()}, order));
    }
  }
  /// All replicas have as many samples but the last, which has none of one micro-batch, or no more
  /// than some.
  ///
  /// throws: pp::error if the processes wait for each other
  void run(int samples, on_host::hash seed) {
    parts_.clear();
    for (int r = 0; r < replicas_; ++r)
      parts_.push_back(
          {r > 0 && r + 1 == replicas_ ? samples / 2 : samples, seed + (on_host::hash(r) << 32)});
    for (int p = 0; p < int(executors.size()); ++p) {
      REQUIRE(cudaSetDevice(p) == cudaSuccess);
      auto const& part = parts_[std::size_t(p * replicas_) / executors.size()];
      executors[std::size_t(p)]->enqueue(part.samples, part.seed);
    }
    for (auto const& e : executors) e->wait();
  }
  /// Whether the last run has computed what it should.
  bool is_right() const {
    bool right = meetings.mismatches == 0;
    for (auto const& e : executors) right = right && e->is_right(parts_);
    return right;
  }

 private:
  int replicas_;
  std::vector<on_host::run_of_hashes> parts_;  // of the last run
};
void as_derived(int, std::vector<detail::cuda_entry>&) {}
bool is_exchange(detail::cuda_entry const& t) {
  return t.kind == detail::cuda_entry::kinds::exchange;
}
bool is_sum(detail::cuda_entry const& t) { return t.kind == detail::cuda_entry::kinds::sum; }
/// The entries of a process that have a kind.
template <class Kind>
std::vector<std::size_t> those(std::vector<detail::cuda_entry> const& entries, Kind const& is_of) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (is_of(entries[i])) found.push_back(i);
  return found;
}

/// after[i][j]: node j comes after node i. Nodes are in an order that edges allow.
using relation = std::vector<std::vector<bool>>;
relation closure_of(fake_gpu::graph const& g) {
  relation after(g.nodes.size(), std::vector<bool>(g.nodes.size()));
  for (fake_gpu::node const& n : g.nodes)
    for (int const before : n.after) {
      auto const to = std::size_t(n.number);
      after[std::size_t(before)][to] = true;
      for (relation::value_type& row : after)
        if (row[std::size_t(before)]) row[to] = true;
    }
  return after;
}

}  // namespace

TEST_CASE("every schedule on several devices", "[cuda]") {
  fake_gpu::several_devices const machine(4);
  long runs = 0;
  for_every_schedule(4, {1, 2, 3, 5, 8, 17},
                     [&](pipeline_of_hashes const& made, int micro_batches) {
                       hashing_executor executor(made);
                       gpu.prefers = preference(runs / 4 % 3);
                       for (int const samples : {micro_batches, std::max(1, micro_batches - 2)}) {
                         executor.enqueue(samples, on_host::hash(++runs));
                         executor.wait();
                         CHECK(executor.is_right(samples));
                         executor.replay(samples, on_host::hash(++runs));
                         CHECK(executor.is_right(samples));
                       }
                     });
  gpu.prefers = preference::awaited;
  CHECK(gpu.foreign == 0);
  CHECK(runs > 1000);
}

TEST_CASE("a wait that is left out shows, unless others imply it", "[cuda]") {
  fake_gpu::several_devices const machine(4);
  long needed = 0, implied = 0;
  for (char const* name : {"1f1b", "zb-h1", "gpipe", "interleaved", "zb-v"}) {
    INFO(name);
    schedules::family const* const f = schedules::find_family(name);
    REQUIRE(f != nullptr);
    // Each rank is alone on its device: all waits are for other ranks, or for copies.
    int const micro_batches = 6, per_rank = f->chunks_per_rank == 0 ? 2 : f->chunks_per_rank;
    pipeline_of_hashes const made(*f, 4, per_rank, micro_batches, 4);
    hashing_executor executor(made);
    gpu.waits = 0;
    executor.replay(micro_batches, 1);
    REQUIRE(executor.is_right(micro_batches));
    relation const whole = closure_of(executor.captured);
    for (long left_out = 0, count = gpu.waits; left_out < count; ++left_out) {
      gpu.waits = 0, gpu.left_out = left_out;
      bool is_refused = false;
      try {
        executor.replay(micro_batches, on_host::hash(left_out) + 2);
      } catch (pp::error const&) {
        is_refused = true;  // the capture has work that nothing waits for
      }
      bool const is_right = !is_refused && executor.is_right(micro_batches),
                 is_implied = !is_refused && closure_of(executor.captured) == whole;
      INFO("wait " << left_out);
      CHECK(is_right == is_implied);
      ++(is_implied ? implied : needed);
      gpu.left_out = -1, gpu.held_back.clear();
    }
  }
  CHECK(needed > 100);
  CHECK(implied > 0);
}

TEST_CASE("every schedule in several processes", "[cuda][long]") {
  fake_gpu::several_devices const machine(8);
  long runs = 0, groups = 0, operations = 0;
  for_every_schedule(8, {1, 2, 5, 17}, [&](pipeline_of_hashes const& made, int micro_batches) {
    if (made.d.devices.devices == 1) return;
    processes_of_hashes all(made, &as_derived);
    gpu.prefers = preference(runs / 2 % 3);
    for (int const samples : {micro_batches, std::max(1, micro_batches - 2)}) {
      all.run(samples, on_host::hash(++runs));
      CHECK(all.is_right());
    }
    groups += all.meetings.groups, operations += all.meetings.operations;
  });
  gpu.prefers = preference::awaited;
  CHECK(gpu.foreign == 0);
  CHECK(runs > 500);
  CHECK(operations > groups);
}

TEST_CASE("exchanges in another order are caught", "[cuda]") {
  fake_gpu::several_devices const machine(4);
  long swaps = 0;
  for (char const* name : {"1f1b", "gpipe", "zb-v"}) {
    INFO(name);
    schedules::family const* const f = schedules::find_family(name);
    pipeline_of_hashes const made(*f, 4, f->chunks_per_rank, 5, 4);
    auto const entries = made.order_in({made.d.devices, 1, 1}).training;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (!is_exchange(entries[i])) continue;
      // The next value of the same stream.
      std::size_t j = i + 1;
      while (j < entries.size() &&
             !(is_exchange(entries[j]) &&
               detail::stream_of(entries[j].of) == detail::stream_of(entries[i].of)))
        ++j;
      if (j == entries.size()) continue;
      processes_of_hashes all(made, [&](int p, std::vector<detail::cuda_entry>& order) {
        if (p == 1) std::swap(order[i].of, order[j].of);
      });
      bool is_right = true;
      try {
        all.run(5, 1);
        is_right = all.is_right();
      } catch (pp::error const&) {
        is_right = false;
      }
      INFO("exchanges " << i << " and " << j);
      CHECK_FALSE(is_right);
      ++swaps;
      (void)cudaGetLastError();
    }
  }
  CHECK(swaps > 40);
}

TEST_CASE("every schedule in replicas of several processes", "[cuda][long]") {
  fake_gpu::several_devices const machine(9);
  long runs = 0, begun_by_launches = 0;
  for_every_schedule(3, {1, 5}, [&](pipeline_of_hashes const& made, int micro_batches) {
    int const replicas = std::min(4, 9 / made.d.devices.devices);
    processes_of_hashes all(made, &as_derived, replicas);
    gpu.prefers = preference(runs / 2 % 3);
    for (int const samples : {micro_batches, std::max(1, micro_batches - 2)}) {
      all.run(samples, on_host::hash(++runs));
      CHECK(all.is_right());
    }
    for (auto const& e : all.executors) begun_by_launches += e->added_while_running;
  });
  gpu.prefers = preference::awaited;
  CHECK(gpu.foreign == 0);
  CHECK(runs > 200);
  CHECK(begun_by_launches > runs);
}

TEST_CASE("sums of replicas at other places are caught", "[cuda]") {
  fake_gpu::several_devices const machine(4);
  long early = 0;
  auto const is_caught = [&](pipeline_of_hashes const& made, auto const& edit) {
    bool is_right = true;
    for (preference const p : {preference::awaited, preference::last, preference::first}) {
      gpu.prefers = p;
      processes_of_hashes all(made, edit, 2);
      try {
        all.run(4, 1);
        is_right = is_right && all.is_right();
      } catch (pp::error const&) {
        is_right = false;
      }
      (void)cudaGetLastError();
    }
    gpu.prefers = preference::awaited;
    return !is_right;
  };
  for (char const* name : {"interleaved", "zb-v"}) {
    INFO(name);
    schedules::family const* const f = schedules::find_family(name);
    pipeline_of_hashes const made(*f, 2, 2, 4, 2);
    CHECK_FALSE(is_caught(made, &as_derived));
    // Two chunks of one process in the other order.
    CHECK(is_caught(made, [](int p, std::vector<detail::cuda_entry>& entries) {
      for (detail::cuda_entry& t : entries) t.adds_up = false;
      auto const sums = those(entries, is_sum);
      if (p == 2) std::swap(entries[sums.at(0)], entries[sums.at(1)]);
    }));
    // One chunk, in all processes, before its last action. Some streams are then late by chance.
    for (int c = 0; c < made.d.chunks; ++c)
      early += is_caught(made, [&](int, std::vector<detail::cuda_entry>& entries) {
        auto const sum =
            std::find_if(entries.begin(), entries.end(),
                         [&](detail::cuda_entry const& t) { return is_sum(t) && t.of.chunk == c; });
        if (sum == entries.end()) return;
        auto const action = std::find_if(entries.begin(), sum, [&](detail::cuda_entry const& t) {
          return !is_exchange(t) && t.of == sum->of;
        });
        std::rotate(action, sum, sum + 1);
      });
  }
  CHECK(early > 3);
}

TEST_CASE("a sum of replicas is behind all that adds to it, and overlaps with other chunks",
          "[cuda]") {
  long last = 0, overlapping = 0, first_chunk = 0, pipelines = 0;
  for_every_schedule(8, {1, 5}, [&](pipeline_of_hashes const& made, int) {
    ++pipelines;
    for (int p = 0; p < made.d.devices.devices; ++p) {
      auto const entries = made.order_in({made.d.devices, p, 1, 1, 2}).training;
      std::vector<int> sums(made.chunks.size());
      bool runs_later = false;
      for (std::size_t i = entries.size(); i-- > 0;) {
        detail::cuda_entry const& t = entries[i];
        int& of_chunk = sums[std::size_t(t.of.chunk)];
        // The first chunk's last result goes nowhere; no process waits for one behind a sum.
        if (t.adds_up)
          CHECK((!is_exchange(t) && !is_sum(t) && is_sum(entries.at(i + 1)) &&
                 entries[i + 1].of == t.of));
        first_chunk += t.adds_up && t.of.chunk == 0;
        if (is_sum(t)) ++of_chunk, ++(runs_later ? overlapping : last);
        if (is_sum(t) || is_exchange(t)) continue;
        runs_later = true;
        CHECK((of_chunk == 1 || !detail::makes_weight_gradient(t.of.kind)));
      }
    }
  });
  CHECK(last > 0);
  CHECK(overlapping > 0);
  CHECK(first_chunk == pipelines);
}

TEST_CASE("two processes that send first wait for ever, unless they send and receive at once",
          "[cuda]") {
  fake_gpu::several_devices const machine(2);
  for (bool const at_once : {true, false}) {
    on_host::meeting_place meetings;
    cudaStream_t streams[2];
    long values[2] = {3, 4}, received[2] = {};
    for (int p : {0, 1}) {
      on_host::meeting_link link(meetings, p);
      REQUIRE(cudaSetDevice(p) == cudaSuccess);
      REQUIRE(cudaStreamCreateWithFlags(&streams[p], cudaStreamNonBlocking) == cudaSuccess);
      cuda::message const send{1 - p, true, &values[p], sizeof(long)},
          receive{1 - p, false, &received[p], sizeof(long)};
      if (at_once)
        link.exchange({send, receive}, streams[p]);
      else
        link.exchange({send}, streams[p]), link.exchange({receive}, streams[p]);
    }
    CHECK(cudaStreamSynchronize(streams[0]) == (at_once ? cudaSuccess : cudaErrorLaunchTimeout));
    CHECK(received[0] == (at_once ? 4 : 0));
    for (cudaStream_t s : streams) REQUIRE(cudaStreamDestroy(s) == cudaSuccess);
  }
  (void)cudaGetLastError();
}
