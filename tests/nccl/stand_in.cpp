// SPDX-License-Identifier: BSL-1.0
//
// The stand-in for NCCL itself: it moves what it should, and finds every fault that NCCL may let
// pass. All ranks are in this process, with a device each.
#include "catch.hpp"

#include "nccl/ranks.hpp"

#include <string>
#include <thread>
#include <vector>

namespace {

std::vector<char> text(long size, int first) {
  std::vector<char> v(std::size_t(size), 0);
  for (long i = 0; i < size; ++i) v[std::size_t(i)] = char(first + i * i % 101);
  return v;
}

}  // namespace

TEST_CASE("the stand-in for NCCL moves what is sent") {
  for (long size : {1L, 4095L, 4096L, 4097L, 100'000L}) {
    machine_of_ranks m(3);
    std::vector<std::vector<char>> sent, got;
    for (int r = 0; r < 3; ++r) sent.push_back(text(size, r)), got.emplace_back(std::size_t(size));
    std::vector<cudaStream_t> on{m.stream(0), m.stream(1), m.stream(2)};
    for (std::size_t r = 0; r < 3; ++r)
      CHECK(m.group(int(r), [&] {
        m.send(int(r), sent[r], int(r + 1) % 3, on[r]);
        m.receive(int(r), got[r], int(r + 2) % 3, on[r]);
      }) == ncclSuccess);
    for (cudaStream_t const s : on) cudaStreamSynchronize(s);
    for (std::size_t r = 0; r < 3; ++r) CHECK((got[r] == sent[(r + 2) % 3]));
    CHECK(m.hang().empty());
  }
}

TEST_CASE("messages of a pair match in their order") {
  machine_of_ranks m(2);
  cudaStream_t const a = m.stream(0), b = m.stream(1);
  std::vector<char> one(1, 'x'), two(1, 'y'), first(1), second(1);
  m.group(0, [&] { m.send(0, one, 1, a), m.send(0, two, 1, a); });
  m.receive(1, first, 0, b), m.receive(1, second, 0, b);
  cudaStreamSynchronize(b);
  CHECK(first[0] == 'x');
  CHECK(second[0] == 'y');
}

TEST_CASE("a send waits for its receive, and a cycle is printed") {
  machine_of_ranks m(2);
  cudaStream_t const a = m.stream(0), b = m.stream(1);
  std::vector<char> data(1);
  m.send(0, data, 1, a), m.receive(0, data, 1, a);
  m.send(1, data, 0, b), m.receive(1, data, 0, b);
  cudaStreamSynchronize(a);
  CHECK(m.state(0) == ncclSystemError);
  CHECK(m.state(1) == ncclSystemError);
  CHECK(m.hang() ==
        "hang of NCCL:\n"
        "  send 0 of communicator 0 by rank 0 to rank 1 waits for receive 0 of communicator 0 by "
        "rank 1 from rank 0\n"
        "  receive 0 of communicator 0 by rank 1 from rank 0 has not begun, behind send 0 of "
        "communicator 0 by rank 1 to rank 0\n"
        "  send 0 of communicator 0 by rank 1 to rank 0 waits for receive 0 of communicator 0 by "
        "rank 0 from rank 1\n"
        "  receive 0 of communicator 0 by rank 0 from rank 1 has not begun, behind send 0 of "
        "communicator 0 by rank 0 to rank 1\n");
}

TEST_CASE("a receive that is never called is named") {
  machine_of_ranks m(2);
  std::vector<char> data(1);
  cudaStream_t const a = m.stream(0);
  m.send(0, data, 1, a);
  cudaStreamSynchronize(a);
  CHECK(m.hang() ==
        "hang of NCCL:\n"
        "  send 0 of communicator 0 by rank 0 to rank 1 waits for receive 0 of communicator 0 by "
        "rank 1 from rank 0, which is not called\n");
}

TEST_CASE("communicators in other orders hang on a device that runs too few kernels at once") {
  // Four communicators, of which two devices begin with the other halves.
  for (int at_once : {1, 2, 3, 4, 100}) {
    machine_of_ranks m(2, 4, at_once);
    std::vector<char> data(1);
    std::vector<cudaStream_t> last;
    for (int i = 0; i < 4; ++i) m.send(0, data, 1, last.emplace_back(m.stream(0)), i);
    for (int i = 0; i < 4; ++i) m.receive(1, data, 0, last.emplace_back(m.stream(1)), (i + 2) % 4);
    for (cudaStream_t const s : last) cudaStreamSynchronize(s);
    CHECK(m.hang().empty() == (at_once > 2));
    CHECK((m.state(0) == ncclSuccess) == (at_once > 2));
    if (at_once == 1) CHECK(m.hang().find("has not begun, as its device has") != std::string::npos);
  }
}

TEST_CASE("a kernel of NCCL that waits keeps other kernels from its device") {
  for (int at_once : {1, 2}) {
    machine_of_ranks m(2, 2, at_once);
    std::vector<char> data(1);
    cudaStream_t const first = m.stream(0), second = m.stream(0), other = m.stream(1);
    bool has_run = false;
    m.send(0, data, 1, first, 0);
    second->put([&] { has_run = true; });
    m.send(0, data, 1, second, 1);
    m.receive(1, data, 0, other, 1);  // needs the kernel
    m.receive(1, data, 0, other, 0);
    cudaStreamSynchronize(first);
    CHECK(m.hang().empty() == (at_once == 2));
    cudaStreamSynchronize(second);
    CHECK(has_run);
  }
}

TEST_CASE("a group ends as a whole") {
  machine_of_ranks m(3);
  std::vector<char> data(1), got(1);
  cudaStream_t const a = m.stream(0), b = m.stream(1), c = m.stream(2);
  bool is_over = false;
  m.group(0, [&] { m.send(0, data, 1, a), m.send(0, data, 2, a); });
  a->put([&] { is_over = true; });
  m.receive(1, got, 0, b);
  while (cudaStreamQuery(b) == cudaErrorNotReady) {
  }
  CHECK_FALSE(is_over);
  m.receive(2, got, 0, c);
  cudaStreamSynchronize(a);
  CHECK(is_over);
  CHECK(m.hang().empty());
}

TEST_CASE("sizes and types must agree") {
  for (bool is_type : {false, true}) {
    machine_of_ranks m(2);
    std::vector<float> data(8);
    cudaStream_t const a = m.stream(0), b = m.stream(1);
    ncclSend(data.data(), 4, ncclFloat32, 1, m.comm(0), a);
    m.succeed(m.comm(0));
    ncclRecv(data.data(), is_type ? 4 : 5, is_type ? ncclInt8 : ncclFloat32, 0, m.comm(1), b);
    m.succeed(m.comm(1));
    cudaStreamSynchronize(a);
    cudaStreamSynchronize(b);
    CHECK(m.state(0) == ncclInvalidUsage);
    CHECK(m.state(1) == ncclInvalidUsage);
  }
}

TEST_CASE("calls that are not over are in progress") {
  fake_nccl::most_asks = 100;
  machine_of_ranks m(2);
  fake_nccl::seed = 7;
  std::vector<char> data(1);
  cudaStream_t const a = m.stream(0);
  CHECK(ncclSend(data.data(), 1, ncclInt8, 1, m.comm(0), a) == ncclInProgress);
  CHECK(ncclSend(data.data(), 1, ncclInt8, 1, m.comm(0), a) == ncclInvalidUsage);
  CHECK(std::string(ncclGetLastError(m.comm(0))) == "a call before the last one has succeeded");
  bool is_early = false;
  a->put([&] { is_early = m.comm(0)->launched == 0; });  // it should have waited for success
  CHECK(m.succeed(m.comm(0)) == ncclSuccess);
  CHECK(m.comm(0)->launched == 1);
  fake_nccl::most_asks = 3;
  CHECK(cudaStreamQuery(a) == cudaErrorNotReady);
  CHECK_FALSE(is_early);  // launched by now, and behind the kernel
  CHECK(a->tasks.size() == 1);
}

TEST_CASE("what is no use of NCCL is refused") {
  machine_of_ranks m(2);
  std::vector<char> data(1);
  cudaStream_t const a = m.stream(0), b = m.stream(1), c = m.stream(0);
  CHECK(m.send(0, data, 2, a) == ncclInvalidArgument);
  CHECK(m.send(0, data, 1, b) == ncclInvalidArgument);
  CHECK(m.send(0, data, 1, nullptr) == ncclInvalidArgument);
  CHECK(ncclGroupEnd() == ncclInvalidUsage);
  ncclGroupStart();
  CHECK(m.send(0, data, 1, a) == ncclSuccess);
  CHECK(m.send(0, data, 1, c) == ncclInvalidUsage);
  m.receive(1, data, 0, b);
  ncclGroupEnd();
  m.succeed(m.comm(0)), m.succeed(m.comm(1));
  CHECK(ncclCommFinalize(m.comm(0)) == ncclInvalidUsage);
  cudaStreamSynchronize(b);
  cudaStreamSynchronize(a);
  std::thread([&] { CHECK(m.send(0, data, 1, a) == ncclInvalidUsage); }).join();
  CHECK(ncclCommDestroy(m.comm(0)) == ncclInvalidUsage);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  ncclComm_t blocking{};
  ncclUniqueId id{};
  ncclGetUniqueId(&id);
  CHECK(ncclCommInitRankConfig(&blocking, 2, id, 0, &config) == ncclInvalidUsage);
  CHECK(ncclCommInitRankConfig(&blocking, 2, {}, 0, &config) == ncclInvalidArgument);
  CHECK(ncclCommFinalize(m.comm(0)) == ncclSuccess);
  CHECK(ncclCommDestroy(m.comm(0)) == ncclSuccess);
  CHECK(m.send(0, data, 1, a) == ncclInvalidArgument);
}

TEST_CASE("abort ends what is on the device, and nothing else may follow") {
  machine_of_ranks m(2);
  std::vector<char> data(1);
  cudaStream_t const a = m.stream(0);
  m.send(0, data, 1, a);
  CHECK(cudaStreamQuery(a) == cudaErrorNotReady);
  CHECK(ncclCommAbort(m.comm(0)) == ncclSuccess);
  cudaStreamSynchronize(a);
  CHECK(m.hang().empty());
  CHECK(m.send(0, data, 1, a) == ncclInvalidArgument);
  CHECK(ncclCommAbort(m.comm(0)) == ncclInvalidArgument);
}

TEST_CASE("a failure of the network reaches all ranks") {
  machine_of_ranks m(2);
  std::vector<char> data(1);
  cudaStream_t const a = m.stream(0), b = m.stream(1);
  fake_nccl::operations_to_failure = 2;
  m.send(0, data, 1, a), m.receive(1, data, 0, b);
  cudaStreamSynchronize(a);
  CHECK(m.state(0) == ncclSuccess);
  m.send(0, data, 1, a);
  CHECK(m.state(0) == ncclRemoteError);
  CHECK(m.state(1) == ncclRemoteError);
  CHECK(m.send(0, data, 1, a) == ncclRemoteError);
  cudaStreamSynchronize(a);
}
