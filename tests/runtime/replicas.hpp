// SPDX-License-Identifier: BSL-1.0
//
// Replicas in one process, a thread each, for tests of what a rank does with its parameters: a
// description by hand, and a transport between them.
#pragma once

#include <pipe/runtime/host/core/accumulation_sums.hpp>
#include <pipe/runtime/host/replicas/replicas.hpp>
#include <pipe/transport/process/process_watch.hpp>

#include <chrono>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "transport/silent.hpp"

namespace replicas {

using namespace pp::detail;
using pp::transports::waited;

/// Lanes as strict as MPI's: a message is taken where it lies when both sides have met, in order,
/// and has the length that is expected. Waits end after 20 s.
class lanes_between : public silent::replicas {
 public:
  using silent::replicas::replicas;
  /// What replicas have sent, and others have not taken.
  struct post {
    char const* data = nullptr;
    long bytes = 0;
    bool is_taken = false;
  };
  struct office {
    std::mutex calls;
    std::map<std::tuple<int, int, int>, std::deque<std::shared_ptr<post>>> sent;  // from, to, lane
  };

  lanes_between(office& all, int me) : all_(&all), me_(me) {}
  void send_to(int, int replica, int lane, char const* data, long bytes) {
    std::lock_guard const lock(all_->calls);
    auto const sent = std::make_shared<post>(post{data, bytes});
    all_->sent[{me_, replica, lane}].push_back(sent);
    sends_[lane].push_back(sent);
  }
  void receive_from(int, int replica, int lane, char* data, long bytes) {
    receives_[lane].push_back({replica, data, bytes});
  }
  bool has_met(int, int lane) {
    std::lock_guard const lock(all_->calls);
    auto& awaited = receives_[lane];
    for (auto r = awaited.begin(); r != awaited.end();) {
      auto& queue = all_->sent[{r->from, me_, lane}];
      if (queue.empty()) return false;
      post& p = *queue.front();
      if (p.bytes != r->bytes) throw std::logic_error("a message has another length");
      std::memcpy(r->to, p.data, std::size_t(p.bytes));
      p.is_taken = true;
      queue.pop_front();
      r = awaited.erase(r);
    }
    for (auto const& p : sends_[lane])
      if (!p->is_taken) return false;
    sends_[lane].clear();
    return true;
  }
  template <class Condition>
  waited until(Condition const& is_so, pp::transports::failure_flag const& failed) {
    auto const end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!is_so()) {
      if (failed) return waited::failed;
      if (std::chrono::steady_clock::now() > end) return waited::too_long;
      std::this_thread::yield();
    }
    return waited::done;
  }

 private:
  struct expected {
    int from = 0;
    char* to = nullptr;
    long bytes = 0;
  };
  office* all_ = nullptr;
  int me_ = 0;
  std::vector<std::shared_ptr<post>> sends_[lanes];
  std::vector<expected> receives_[lanes];
};
static_assert(pp::transports::replica_transport<lanes_between>);

/// One chunk of `count` matrices that replicas divide, each of three blocks, and a vector that they
/// do not: forward reads one after the other, backward the transposed copies the other way round,
/// and writes gradients.
struct matrices {
  static constexpr long width = sizeof(float);
  std::vector<parameter_place> places;
  std::vector<launch> launches;
  std::vector<placed_operand> operands;
  update_range range;
  chunk_description chunk;
  rank_description rank;
  chunk_holder holder;
  pp::schedules::action training[2]{{pp::schedules::action_kind::forward, 0, 0},
                                    {pp::schedules::action_kind::backward, 0, 0}};
  pipeline_description d;
  long bytes = 0;  ///< of parameters

  matrices(int count, int zero, int accumulations = 1) {
    for (int i = 0; i <= count; ++i) {
      parameter_place p;
      p.index = p.layer = i;
      p.rows = i < count ? 256 : 1, p.columns = i < count ? 260 + i : 40;
      p.offset = bytes;
      p.transposed = i < count ? bytes : -1;
      places.push_back(p);
      bytes += align_up(p.elements() * width);
      if (i < count && zero > 1) chunk.sizes.divided = chunk.sizes.divided_transposed = bytes;
    }
    program_set& set = chunk.keeping;
    auto const begin = [&](program p) {
      set.programs[int(p)].launches = launches.data() + launches.size();
    };
    auto const add = [&](std::vector<placed_operand> const& of) {
      launches.push_back({0, int(operands.size()), int(of.size()), 0});
      operands.insert(operands.end(), of.begin(), of.end());
    };
    launches.reserve(std::size_t(2 * count)), operands.reserve(std::size_t(4 * count));
    begin(program::forward);
    for (int i = 0; i < count; ++i)
      add({{{region::scratch, 0}}, {{region::parameters, place(i).offset}}});
    begin(program::backward);
    for (int i = count; i-- > 0;)
      add({{{region::transposed, place(i).transposed}},
           {{region::parameter_gradients, place(i).offset}, place(i).elements()}});
    launches.back().count += 1;
    operands.push_back({{region::parameter_gradients, place(count).offset}, 40});
    for (program p : {program::forward, program::backward})
      set.programs[int(p)].operands = operands.data(), set.programs[int(p)].count = count;
    chunk.parameters = {places.data(), count + 1};
    range.end = range.shape.columns = bytes / width, range.shape.rows = 1;
    range.state_size = 2 * range.end;
    chunk.updates = {&range, 1};
    chunk.gradients = bytes, chunk.transposed = 2 * bytes;
    chunk.sums = chunk.state = 2 * bytes;
    chunk.sizes.trained = chunk.sizes.parameters = bytes;
    rank.replica_room = 3 * bytes;
    rank.replica_room_bytes = zero == 0 ? room_for_replicas(bytes) : 0;
    rank.fixed_bytes = rank.replica_room + rank.replica_room_bytes, rank.level_bytes = bytes;
    rank.training = {training, 2};
    for (parameter_place const& p : places) rank.block_count += blocks_of(p);
    d.zero = zero, d.accumulations = accumulations, d.divides_gradients = zero > 1;
    d.chunk = &chunk, d.rank = &rank, d.holder = &holder;
  }
  matrices(matrices const&) = delete;
  parameter_place const& place(int i) const { return places[std::size_t(i)]; }
  std::vector<gradient_block> blocks() const {
    std::vector<gradient_block> all;
    for (parameter_place const& p : places)
      for (long k = 0; k < blocks_of(p); ++k)
        all.push_back({&chunk, &p, k * gradient_block::most_elements});
    return all;
  }
};

/// Element k of layer i's parameter: numbers whose sums are exact.
inline float number(int i, long k) { return float(1000 * i + k % 997); }

inline backend_calls<float> calls() {
  backend_calls<float> c;
  c.add = [](std::ptrdiff_t n, float* to, float const* from) {
    for (std::ptrdiff_t i = 0; i < n; ++i) to[i] += from[i];
  };
  c.transpose = [](float const* in, std::ptrdiff_t rows, std::ptrdiff_t columns,
                   std::ptrdiff_t in_stride, void* to, std::ptrdiff_t out_stride) {
    auto* const out = static_cast<float*>(to);
    for (std::ptrdiff_t r = 0; r < rows; ++r)
      for (std::ptrdiff_t k = 0; k < columns; ++k) out[k * out_stride + r] = in[r * in_stride + k];
  };
  return c;
}

/// A rank of one replica, with its arena, whose divided values are there.
struct replica {
  matrices const& of;
  pp::transports::process_place place;
  arena_end end;
  std::vector<double> memory;
  std::vector<gradient_block> blocks;
  rank_shards<float> shards;
  lanes_between transport;
  backend_calls<float> functions = calls();
  std::vector<int> shares;  // accumulations of each replica
  job now;
  team threads{1, std::chrono::nanoseconds(0), -1};
  pp::transports::failure_flag failed{false};
  accumulation_sums<float, lanes_between> sums;

  replica(matrices const& model, lanes_between::office& office, int me, int all)
      : of(model), place{0, 1, 1, 0, me, all},
        end(end_of_arena(model.d, matrices::width, 0, all, me)),
        memory(std::size_t(end.end) / sizeof(double)), blocks(model.blocks()),
        transport(office, me), shares(std::size_t(all)) {
    for (int r = 0; r < all; ++r) shares[std::size_t(r)] = even_share(of.d.accumulations, all, r);
    shards.assemble(of.d, 0, start(), place, end, blocks.data(), int(blocks.size()));
    for (int i = 0; of.d.zero > 2 && i + 1 < int(of.places.size()); ++i)
      for_each_own(i, [&](long k, float& own, float&) { own = number(i, k); });
    now.what = job::kind::train;
    now.part.replicas = all;
    now.part.shares = shares.data();
    sums.assemble({of.d, functions, transport, place, 0, start(), end, threads, failed}, shards);
  }
  replica(replica const&) = delete;
  char* start() { return reinterpret_cast<char*>(memory.data()); }
  /// use(k, value, gradient) for the elements of a divided parameter that are here; with ZeRO<3>.
  template <class Use>
  void for_each_own(int i, Use const& use) {
    parameter_place const& p = of.place(i);
    shard_cuts{of.chunk, matrices::width, place.replicas}.for_each_divided_shard(
        place.replica, [&](int, long begin, long finish) {
          for (long at = begin; at < finish; at += matrices::width)
            if (at >= p.offset && at < p.offset + p.elements() * matrices::width)
              use((at - p.offset) / matrices::width, *shards.own_values(0, at),
                  *shards.own_gradients(0, at));
        });
  }
};

/// What `count` replicas return, each of use(replica) on a thread of its own.
template <class Use>
std::vector<std::string> of_all(matrices const& model, int count, Use const& use) {
  lanes_between::office office;
  std::vector<std::string> results{std::size_t(count)};
  std::deque<replica> all;
  for (int r = 0; r < count; ++r) all.emplace_back(model, office, r, count);
  std::vector<std::thread> threads;
  for (int r = 0; r < count; ++r)
    threads.emplace_back([&, r] {
      try {
        results[std::size_t(r)] = use(all[std::size_t(r)]);
      } catch (std::exception const& e) {
        results[std::size_t(r)] = e.what();
      }
    });
  for (std::thread& t : threads) t.join();
  return results;
}

}  // namespace replicas
