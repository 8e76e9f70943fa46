// SPDX-License-Identifier: BSL-1.0
//
// What processes cost, and what replicas bring. Started by mpirun with two processes, which compare
// themselves with one: while one works alone the other sleeps. See bench/processes.py.
//
//     processes hand_off|stages|replicas|shares|allreduce      process 0 prints: figure NAME VALUE
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include <pipe/mpi.hpp>
#include <pipe/pipe.hpp>

#include "../peer/turns.hpp"

using namespace pp;

namespace {

/// All processes wait for each other, asleep.
void meet() {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  for (int is_done = 0; is_done == 0;) {
    MPI_Test(&request, &is_done, MPI_STATUS_IGNORE);
    if (is_done == 0) usleep(200);
  }
}

/// Seconds of two functions that take turns, of process 0's clock: medians, and the median ratio of
/// the first over the second. `alone`: only process 0 runs the second.
struct comparison {
  double first = 0, second = 0, ratio = 0;
};
comparison take_turns(std::function<void()> const& first, std::function<void()> const& second,
                      bool alone, int rounds, int calls = 1) {
  std::vector<double> seconds[2], ratios;
  for (int round = -1; round < rounds; ++round) {  // the first warms up
    double took[2];
    for (int i = 0; i < 2; ++i) {
      meet();
      took[i] = i == 0 || !alone || Mpi::process() == 0
                    ? bench::seconds_of(i == 0 ? first : second, calls)
                    : 0;
    }
    if (round < 0) continue;
    for (int i = 0; i < 2; ++i) seconds[i].push_back(took[i]);
    ratios.push_back(took[0] / took[1]);
  }
  meet();
  return {bench::median(seconds[0]), bench::median(seconds[1]), bench::median(ratios)};
}
void row(char const* name, double value) {
  if (Mpi::process() == 0) std::printf("figure %s %.4g\n", name, value);
}

/// A mini-batch of zeros and ones, as many as a trainer takes.
template <class Trainer>
struct numbers {
  std::vector<typename Trainer::input_type> inputs;
  std::vector<typename Trainer::label_type> labels;
  numbers()
      : inputs(std::size_t(Trainer::samples * Trainer::inputs_per_sample)),
        labels(std::size_t(Trainer::samples * Trainer::labels_per_sample)) {
    for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i] = typename Trainer::input_type(i % 2);
    for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = typename Trainer::label_type(i % 2);
  }
  template <class Other>
  typename Other::batch of() const {
    return {inputs, labels};
  }
};

/// Two equal stages that take about a millisecond for a micro-batch.
struct Even : Model<Input<512>, Repeat<4, Seq<Linear<512>, Tanh>>, MSE> {};
template <class... More>
using Two = Pipeline<Even, Stages<2>, ByCount, MicroBatches<8>, MicroBatchSize<64>, AdamW, More...>;

void two_stages() {
  Two<> together;
  Two<Mpi> apart;
  numbers<Two<>> const data;
  auto const all = data.of<Two<>>();
  auto const parts = data.of<Two<Mpi>>();
  auto const r = take_turns([&] { apart.step(parts); }, [&] { together.step(all); }, true, 60, 3);
  row("in_process_2_ms", r.second * 1e3);
  row("mpi_2_over_in_process", r.ratio);
}

/// A GPT of 3.3 million parameters.
struct GPT : Model<Tokens<256, 128>, Embedding<256>, Positions,
                   Repeat<4, Residual<LayerNorm, Attention<4>>,
                          Residual<LayerNorm, Linear<1024>, GELUTanh, Linear<256>>>,
                   LayerNorm, Linear<256>, CrossEntropy> {};
template <class... More>
using Replica =
    Pipeline<GPT, MicroBatches<4>, MicroBatchSize<4>, AdamW, GradientAccumulation<2>, More...>;

void two_replicas() {
  Replica<> one;
  Replica<Mpi> two;
  numbers<Replica<>> const data;
  auto const all = data.of<Replica<>>();
  auto const same = data.of<Replica<Mpi>>();
  auto const s = take_turns([&] { two.step(same); }, [&] { one.step(all); }, true, 15);
  row("replicas_1_ms", s.second * 1e3);
  row("replicas_2_speedup", 1 / s.ratio);
}

/// Passes values on after a while, asleep, so that the time of an accumulation is that of a machine
/// which is as slow as is said, whatever else runs on this one.
struct Pause {
  static inline unsigned microseconds = 0;
  static constexpr shape result(shape in) { return in; }
  template <class T>
  static void forward(custom::forward<T> const& a) {
    for (int i = 0; i < a.samples * a.in.elements(); ++i) a.y[i] = a.x[i];
    usleep(microseconds);
  }
  template <class T>
  static void input_gradient(custom::input_gradient<T> const& a) {
    for (int i = 0; i < a.samples * a.in.elements(); ++i) a.dx[i] = a.dy[i];
  }
};
struct Pausing : Model<Input<64>, Linear<64>, Tanh, Custom<Pause>, Linear<64>, MSE> {};
template <class Sum>
using Shared = Pipeline<Pausing, MicroBatches<1>, MicroBatchSize<8>, AdamW, Sum, Mpi>;

/// Two replicas, one of which takes twice as long for an accumulation: as many accumulations, and
/// accumulations by speed.
void shares() {
  using even_trainer = Shared<GradientAccumulation<16>>;
  using trainer_by_speed = Shared<GradientAccumulationBySpeed<16>>;
  even_trainer even;
  trainer_by_speed balanced;
  numbers<even_trainer> const data;
  auto const same = data.of<even_trainer>();
  auto const others = data.of<trainer_by_speed>();
  Pause::microseconds = Mpi::process() == 0 ? 10'000 : 20'000;
  for (int i = 0; i < 2 * detail::replica_speeds::period; ++i) balanced.step(others);
  auto const s = take_turns([&] { balanced.step(others); }, [&] { even.step(same); }, false, 15);
  row("shares_even_ms", s.second * 1e3);
  row("shares_by_speed_ms", s.first * 1e3);
  row("shares_by_speed_speedup", 1 / s.ratio);
  row("shares_leaves_of_fast", balanced.own_accumulations());
}

/// The sum over replicas of as many numbers as GPT-2 has parameters.
void allreduce() {
  constexpr long n = 124'439'808;
  detail::mpi transport(1, 1, {});
  transports::process_place const place = detail::mpi::place(1);
  long const room_bytes = detail::room_for_replicas(n * long(sizeof(float)));
  std::vector<char> room(std::size_t(room_bytes) + 64);
  char* const aligned =
      room.data() + (64 - reinterpret_cast<std::uintptr_t>(room.data()) % 64) % 64;
  std::vector<float> data(std::size_t(n), 0.5f);
  detail::replica_sum<float, detail::mpi> sum;
  constexpr long each = detail::most_bucket_bytes / long(sizeof(float));
  constexpr int count = int((n + each - 1) / each);
  sum.assemble(transport, place, 0, aligned, room_bytes, count);
  for (int b = 0; b < count; ++b) sum.describe(b, b + 1 < count ? each : n - b * each);
  detail::team alone;
  alone.assemble(1, std::chrono::microseconds(20), -1);
  auto const add = [](std::ptrdiff_t elements, float* to, float const* from) {
    for (std::ptrdiff_t i = 0; i < elements; ++i) to[i] += from[i];
  };
  transports::failure_flag const never{false};
  transport.reset();
  int const one_leaf[]{1, 1};
  auto const ours = [&] {
    sum.begin({one_leaf, 2});
    for (int b = 0; b < count; ++b) sum.give(data.data() + b * each, nullptr, 0);
    sum.until_done(count, alone, add, never, [] {});
  };
  // MPI's own, in calls of at most `most` numbers.
  auto const theirs = [&](long most) {
    for (long at = 0; at < n; at += most)
      MPI_Allreduce(MPI_IN_PLACE, data.data() + at, int(n - at < most ? n - at : most), MPI_FLOAT,
                    MPI_SUM, MPI_COMM_WORLD);
  };
  // Numbers grow to infinity, which costs nothing.
  auto const whole = take_turns(ours, [&] { theirs(n); }, false, 15);
  auto const buckets =
      take_turns(ours, [&] { theirs((25L << 20) / long(sizeof(float))); }, false, 15);
  row("allreduce_ms", whole.first * 1e3);
  row("mpi_allreduce_ms", whole.second * 1e3);
  row("mpi_allreduce_25MiB_ms", buckets.second * 1e3);
  row("allreduce_over_mpi", whole.ratio);
  row("allreduce_over_mpi_25MiB", buckets.ratio);
}

/// Half a round trip of a boundary value between two ranks in two processes.
void hand_off(char const* name, long bytes) {
  detail::mpi transport(2, 2, {});
  int const rank = detail::mpi::place(2).first_rank;
  std::vector<char> memory(std::size_t(2 * bytes));
  transport.set_memory(rank, memory.data());
  transports::boundary_stream there{{0, 1, 0, 0, bytes}, 0, 0, 1, 1},
      back{{1, 0, bytes, bytes, bytes}, 0, 0, 1, 1};
  transport.open(0, there);
  transport.open(1, back);
  transport.reset();
  transports::failure_flag const never{false};
  int const sends = rank, receives = 1 - rank;  // streams: 0 from rank 0, 1 from rank 1
  int next = 0;
  auto const round_trip = [&] {
    transport.expect(receives, next);
    if (rank == 0) transport.send(sends, next);
    transport.receive(receives, next, never);
    if (rank == 1) transport.send(sends, next);
    transport.sent(sends, next, never);
    ++next;
  };
  auto const r = take_turns(round_trip, [] {}, false, 50, 200);
  row(name, r.first / 2 * 1e6);
}

}  // namespace

int main(int count, char** arguments) {
  if (Mpi::processes() != 2) return std::fputs("start two processes\n", stderr), 2;
  std::string_view const what = count > 1 ? arguments[1] : "";
  if (what == "hand_off") {
    hand_off("mpi_hand_off_4KiB_us", 4 << 10);
    hand_off("mpi_hand_off_1MiB_us", 1 << 20);
  } else if (what == "stages") {
    two_stages();
  } else if (what == "replicas") {
    two_replicas();
  } else if (what == "shares") {
    shares();
  } else if (what == "allreduce") {
    allreduce();
  } else {
    return std::fputs("processes hand_off|stages|replicas|shares|allreduce\n", stderr), 2;
  }
}
