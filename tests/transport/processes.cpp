// SPDX-License-Identifier: BSL-1.0
//
// One process per rank, which share sockets and nothing else. Every process constructs the same
// pipeline and makes the same calls; it allocates, initialises and updates the parameters of its
// own rank alone, and sees the losses and norms of one stage.
#include "catch.hpp"

#include "transport/models.hpp"

#include <pipe/schedule/communication.hpp>

#include "laws/bit_law.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>

using namespace pp;
using test_transports::Shared, test_transports::Small;

namespace {

constexpr int ranks = 3;

/// Streams between every two processes, opened before they part. One that ends closes its streams,
/// by which the others fail.
class sockets {
 public:
  static constexpr bool copies = true;
  static inline int own_rank = 0, stream[ranks][ranks]{};  // [rank][the other one]

  /// Before the fork.
  static bool open() {
    for (int a = 0; a < ranks; ++a)
      for (int b = a + 1; b < ranks; ++b) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return false;
        stream[a][b] = pair[0], stream[b][a] = pair[1];
      }
    return true;
  }
  /// After it, in the process of this rank.
  static void be(int rank) {
    own_rank = rank;
    for (int a = 0; a < ranks; ++a)
      for (int b = 0; b < ranks; ++b)
        if (a != b && a != rank) close(stream[a][b]);
  }
  static void part() {
    for (int b = 0; b < ranks; ++b)
      if (b != own_rank) close(stream[own_rank][b]);
  }

  sockets(int, int, transports::patience const&) {}
  static transports::process_place place(int) { return {own_rank, 1}; }
  void set_memory(int, char* arena) { arena_ = arena; }
  void reset() { met_ = 0; }
  void wake_all() {}

  transports::waited share(int rank, transports::transfer const& x,
                           transports::failure_flag const& failed) {
    if (x.from_rank == x.to_rank) return transports::waited::done;
    if (rank == x.from_rank) return send_all(x.to_rank, arena_ + x.from, x.bytes, failed);
    if (rank == x.to_rank) return receive_all(x.from_rank, arena_ + x.to, x.bytes, failed);
    return transports::waited::done;
  }
  char* at(transports::transfer const& x) const {
    return arena_ + (x.from_rank == x.to_rank ? x.from : x.to);
  }

  /// Every rank tells rank 0, which tells every rank.
  transports::waited arrive_and_wait(int rank, int number, transports::failure_flag const& failed) {
    char token = 1;
    auto const with_all = [&](auto const& use) {
      for (int other = rank == 0 ? 1 : 0; other < (rank == 0 ? ranks : 1); ++other)
        if (use(other) != transports::waited::done) return false;
      return true;
    };
    auto const tell = [&] {
      return with_all([&](int other) { return send_all(other, &token, 1, failed); });
    };
    auto const hear = [&] {
      return with_all([&](int other) { return receive_all(other, &token, 1, failed); });
    };
    if (rank == 0 ? hear() && tell() : tell() && hear()) met_ = number;
    return met_ == number ? transports::waited::done : transports::waited::failed;
  }
  /// Fail-stop: a process that gives up ends, and without it no other passes the barrier.
  bool cancel_barrier(int number) { return met_ < number; }

 private:
  /// Repeats some(stream, data, bytes) until all bytes have moved, the run has failed or the other
  /// process has ended.
  template <class Some>
  transports::waited move(int other, short event, char* data, long bytes,
                          transports::failure_flag const& failed, Some some) {
    int const on = stream[own_rank][other];
    while (bytes > 0) {
      if (failed.load()) return transports::waited::failed;
      pollfd ready{on, event, 0};
      if (poll(&ready, 1, 20) <= 0) continue;
      ssize_t const n = some(on, data, std::size_t(bytes));
      if (n <= 0) return transports::waited::failed;
      data += n, bytes -= n;
    }
    return transports::waited::done;
  }
  transports::waited send_all(int other, char* data, long bytes,
                              transports::failure_flag const& failed) {
    return move(other, POLLOUT, data, bytes, failed, [](int on, char const* p, std::size_t n) {
      return send(on, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);
    });
  }
  transports::waited receive_all(int other, char* data, long bytes,
                                 transports::failure_flag const& failed) {
    return move(other, POLLIN, data, bytes, failed,
                [](int on, char* p, std::size_t n) { return recv(on, p, n, 0); });
  }

  char* arena_ = nullptr;
  std::atomic<int> met_{0};
};
static_assert(transports::transport<sockets>);

struct Sockets {
  using transport = sockets;
};

using One = Small<Shared>;
using Many = Small<Shared, Sockets, Stages<ranks>>;

/// Runs body(rank) in a process for each rank, and returns how many say true.
template <class Body>
int in_processes(Body body) {
  if (!sockets::open()) return -1;
  std::vector<pid_t> children;
  for (int r = 0; r < ranks; ++r) {
    pid_t const child = fork();
    if (child == 0) {
      alarm(120);
      sockets::be(r);
      bool good = false;
      try {
        good = body(r);
      } catch (std::exception const& e) {
        std::fprintf(stderr, "rank %d: %s\n", r, e.what());
      }
      _exit(good ? 0 : 1);
    }
    children.push_back(child);
  }
  for (auto& of_rank : sockets::stream)
    for (int& s : of_rank)
      if (s != 0) close(s), s = 0;
  int good = 0;
  for (pid_t const child : children) {
    int status = 1;
    waitpid(child, &status, 0);
    good += WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  return good;
}

/// The number of parameters that a process has; -1 if one, or a gradient, is not that of one stage.
int same_parameters(One& one, Many& many) {
  auto const all = one.parameters(), some = many.parameters();
  int here = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (some[i].values.empty()) continue;
    if (!laws::same_numbers(all[i].values, some[i].values) ||
        !laws::same_numbers(all[i].gradients, some[i].gradients))
      return -1;
    ++here;
  }
  return here;
}

bool trains_like_one(int rank) {
  One one({.seed = 3, .clip_norm = 0.1});
  Many many({.seed = 3, .clip_norm = 0.1});
  int const own = same_parameters(one, many);
  bool good = own >= 0 && own < int(one.parameters().size());  // the last has a copy only
  for (int step = 0; step < 3; ++step) {
    laws::sample_batch<One> const data(step);
    long const samples = One::samples - 3 * step;
    auto const ours = data.view(samples);
    auto const theirs = data.view<Many>(samples);
    auto const a = one.step(ours), b = many.step(theirs);
    good = good && laws::same_bits(a.loss, b.loss) &&
           laws::same_bits(a.gradient_norm, b.gradient_norm) && same_parameters(one, many) == own;
    good = good && laws::same_bits(one.evaluate(ours), many.evaluate(theirs));
    std::vector<float> x(std::size_t(samples * One::outputs_per_sample)), y(x.size());
    one.forward(ours, x);
    many.forward(theirs, y);
    if (rank == ranks - 1) good = good && laws::same_numbers(x, y);  // the last stage has them
  }
  return good;
}

/// The last rank's process ends in the middle of a step; the others say so and change nothing.
bool survives_the_last(int rank) {
  Many many({.seed = 3});
  laws::sample_batch<Many> const data(1);
  many.step(data.view());
  auto const before = laws::snapshot(many).values;
  try {
    many.watch(data.view(), [&](launch_seen const& seen) {
      if (rank == ranks - 1 && seen.micro_batch == 2) _exit(0);
    });
  } catch (rank_error const&) {
    sockets::part();  // as its end would
    return laws::same_numbers(before, laws::snapshot(many).values);
  }
  return false;
}

}  // namespace

TEST_CASE("ranks in processes of their own give the bits of one stage", "[transport]") {
  CHECK(in_processes(trains_like_one) == ranks);
}
TEST_CASE("a process that ends fails the run of the others", "[transport]") {
  CHECK(in_processes(survives_the_last) == ranks);
}
