// SPDX-License-Identifier: BSL-1.0
//
// The communicator over processes, each with a device of its own and the stand-in for NCCL, which
// runs one kernel at a time on it.
#include "catch.hpp"

#include <pipe/runtime/sum_tree.hpp>
#include <pipe/transport/nccl/nccl.cuh>

#include "nccl/processes.hpp"

#include <vector>

using namespace pp;
using namespace pp::cuda;
using detail::tcp_world;
using std::chrono_literals::operator""s;

namespace {

struct device_stream {
  device_stream() { check(cudaStreamCreateWithFlags(&get, cudaStreamNonBlocking), "a stream"); }
  ~device_stream() { cudaStreamDestroy(get); }
  cudaStream_t get{};
};

/// Before the processes are there, which share its memory.
void start(int kernels_at_once = 1, int most_asks = 3) {
  fake_nccl::start_anew();
  fake_nccl::kernels_at_once = kernels_at_once;
  fake_nccl::most_asks = most_asks;
}
std::vector<std::string> same(int n, char const* text) {
  return std::vector<std::string>(std::size_t(n), text);
}

}  // namespace

TEST_CASE("processes exchange data by NCCL") {
  for (int const n : {1, 2, 4}) {
    start(1, n == 4 ? 20 : 3);
    CHECK(processes::run(n, [](tcp_world& world) -> std::string {
            nccl_communicator c(world);
            device_stream s;
            int const p = c.process(), size = c.processes();
            for (long const bytes : {1L, 1000L, 50'000L}) {
              std::vector<std::vector<char>> sent, got;
              for (int q = 0; q < size; ++q) {
                sent.emplace_back(std::size_t(bytes + q), char('a' + p * size + q));
                got.emplace_back(std::size_t(bytes + p));
              }
              c.group([&] {
                for (int q = 0; q < size; ++q) {
                  if (q == p) continue;
                  c.send(q, sent[std::size_t(q)].data(), bytes + q, s.get);
                  c.receive(q, got[std::size_t(q)].data(), bytes + p, s.get);
                }
              });
              c.wait(s.get);
              for (int q = 0; q < size; ++q)
                for (char const x : got[std::size_t(q)])
                  if (q != p && x != 'a' + q * size + p) return "wrong data";
            }
            return "right";
          }) == same(n, "right"));
  }
}

TEST_CASE("the sum does not depend on where it is kept") {
  for (int n = 1; n <= 9; ++n)
    for (int own = 0; own < n; ++own) {
      std::vector<std::string> by_tree, here;
      for (int i = 0; i < n; ++i) by_tree.push_back(std::to_string(i));
      here = by_tree;
      auto const join = [](std::string const& a, std::string const& b) {
        return a < b ? "(" + a + " " + b + ")" : "(" + b + " " + a + ")";
      };
      detail::join_tree(n, [&](int to, int from) {
        by_tree[std::size_t(to)] = join(by_tree[std::size_t(to)], by_tree[std::size_t(from)]);
      });
      detail::join_tree_into(own, n, [&](int to, int from) {
        here[std::size_t(to)] = join(here[std::size_t(to)], here[std::size_t(from)]);
      });
      CHECK(here[std::size_t(own)] == by_tree[0]);
    }
}

TEST_CASE("a process that is killed at any operation ends the others' waits") {
  for (int at = 0; at < 5; ++at) {
    start();
    std::vector<std::string> const said = processes::run(3, [at](tcp_world& world) -> std::string {
      nccl_communicator c(world);
      device_stream s;
      std::vector<char> data(8), got(8);
      for (int i = 0; i < 5; ++i) {
        if (c.process() == 1 && i == at) kill(getpid(), SIGKILL);
        c.group([&] {
          c.send((c.process() + 1) % 3, data.data(), 8, s.get);
          c.receive((c.process() + 2) % 3, got.data(), 8, s.get);
        });
        c.wait(s.get);
      }
      return "right";
    });
    CHECK(said[1] == "ended by signal 9");
    for (std::size_t const p : {0u, 2u})
      CHECK(said[p].find("rank_error: process 1 was lost: killed, while process 0 was") == 0);
  }
}

TEST_CASE("an error of NCCL in one process reaches all") {
  for (long at = 0; at < 12; ++at) {
    start();
    std::vector<std::string> const said = processes::run(2, [at](tcp_world& world) -> std::string {
      // The first are those of the warm-up.
      if (world.process() == 1) fake_nccl::operations_to_failure = at;
      nccl_communicator c(world);
      device_stream s;
      std::vector<char> data(8), got(8);
      for (int i = 0; i < 6; ++i) {
        c.group([&] {
          c.send(1 - c.process(), data.data(), 8, s.get);
          c.receive(1 - c.process(), got.data(), 8, s.get);
        });
        c.wait(s.get);
      }
      return "right";
    });
    // Both see it: who tells it first, tells the other.
    for (std::string const& text : said) {
      INFO(text);
      CHECK(text.find("NCCL, ") != std::string::npos);
      CHECK(text.find("remote process exited or there was a network error") != std::string::npos);
    }
    CHECK((said[0].find("error: NCCL") == 0 || said[1].find("error: NCCL") == 0));
  }
}

TEST_CASE("groups in other orders are found to hang") {
  start();
  std::vector<std::string> const said = processes::run(2, [](tcp_world& world) -> std::string {
    nccl_communicator c(world);
    device_stream s;
    std::vector<char> data(8), got(8);
    c.group([&] { c.send(1 - c.process(), data.data(), 8, s.get); });
    c.group([&] { c.receive(1 - c.process(), got.data(), 8, s.get); });
    c.wait(s.get);
    return "right";
  });
  for (std::string const& text : said)
    CHECK(text.find("unhandled system error") != std::string::npos);
  CHECK(std::string(fake_nccl::all().hang).find("has not begun, behind send 1 of") !=
        std::string::npos);
}

TEST_CASE("a process that does not come to a group is missed at the deadline") {
  start();
  std::vector<std::string> const said = processes::run(2, [](tcp_world& world) -> std::string {
    nccl_communicator c(world, 1s);
    if (c.process() == 1) {
      world.barrier();
      return "right";
    }
    device_stream s;
    std::vector<char> data(8);
    c.group([&] { c.send(1, data.data(), 8, s.get); });
    detail::process_watch::doing const trains(world.watch(), {"training"});
    c.wait(s.get);
    return "right";
  });
  for (std::string const& text : said)
    CHECK(text ==
          "rank_error: process 0: timed out after 1 s in a wait for another process by NCCL");
}

TEST_CASE("an exception in a group leaves nothing on the device") {
  start();
  std::vector<std::string> const said = processes::run(2, [](tcp_world& world) -> std::string {
    nccl_communicator c(world);
    device_stream s;
    std::vector<char> data(8);
    try {
      c.group([&] {
        c.send(1 - c.process(), data.data(), 8, s.get);
        throw error("broken");
      });
    } catch (error const& e) {
      if (std::string(e.what()) != "broken") return e.what();
    }
    if (fake_nccl::group_depth != 0) return "a group is open";
    cudaStreamSynchronize(s.get);
    c.group([&] {});
    return "right";
  });
  for (std::string const& text : said)
    CHECK(text == "rank_error: this communicator of NCCL was aborted");
}

TEST_CASE("what NCCL refuses is an error with its text") {
  start();
  std::vector<std::string> const said = processes::run(1, [](tcp_world& world) -> std::string {
    nccl_communicator c(world);
    device_stream s;
    char byte = 0;
    c.group([&] { c.send(7, &byte, 1, s.get); });
    return "right";
  });
  CHECK(said[0] ==
        "error: NCCL, a group of sends and receives: invalid argument (no such rank, or "
        "no such type)");
}
