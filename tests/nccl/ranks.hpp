// SPDX-License-Identifier: BSL-1.0
//
// Ranks of the stand-in for NCCL that are all in this process.
#pragma once

#include "catch.hpp"

#include <nccl.h>

#include <string>
#include <vector>

/// Ranks with a device, a communicator of each number, and some streams each.
class machine_of_ranks {
 public:
  explicit machine_of_ranks(int ranks, int communicators = 1, int kernels_at_once = 1)
      : comms(std::size_t(communicators)), ranks_(ranks) {
    fake_nccl::start_anew();
    fake_nccl::kernels_at_once = kernels_at_once;
    fake_gpu::gpu.devices = ranks;
    for (std::vector<ncclComm_t>& all : comms) {
      ncclUniqueId id{};
      REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
      all.resize(std::size_t(ranks));
      for (int r = 0; r < ranks; ++r) {
        cudaSetDevice(r);
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        config.blocking = 0;
        REQUIRE(ncclCommInitRankConfig(&all[std::size_t(r)], ranks, id, r, &config) ==
                ncclInProgress);
        ncclResult_t state{};
        ncclCommGetAsyncError(all[std::size_t(r)], &state);
        CHECK((r == ranks - 1 || state == ncclInProgress));  // the last one is missing
      }
      for (ncclComm_t const c : all) succeed(c);
    }
  }
  machine_of_ranks(machine_of_ranks const&) = delete;
  ~machine_of_ranks() {
    for (std::vector<ncclComm_t> const& all : comms)
      for (ncclComm_t const c : all) ncclCommAbort(c);
    for (cudaStream_t const s : streams_) cudaStreamDestroy(s);  // with what is left on them
    cudaSetDevice(0);
    fake_gpu::gpu.devices = 1;
    fake_nccl::start_anew();
  }

  ncclComm_t comm(int rank, int number = 0) const {
    return comms[std::size_t(number)][std::size_t(rank)];
  }
  cudaStream_t stream(int rank) {
    cudaSetDevice(rank);
    cudaStream_t s{};
    cudaStreamCreateWithFlags(&s, 0);
    streams_.push_back(s);
    return s;
  }
  /// Asks until the last call is over.
  static ncclResult_t succeed(ncclComm_t c) {
    ncclResult_t state = ncclInProgress;
    for (int i = 0; i < 100 && state == ncclInProgress; ++i)
      REQUIRE(ncclCommGetAsyncError(c, &state) == ncclSuccess);
    return state;
  }
  /// A group of one rank.
  template <class Calls>
  ncclResult_t group(int rank, Calls const& calls, int number = 0) const {
    ncclGroupStart();
    calls();
    ncclResult_t const r = ncclGroupEnd();
    return r == ncclInProgress ? succeed(comm(rank, number)) : r;
  }
  ncclResult_t send(int rank, std::vector<char>& from, int to, cudaStream_t s, int number = 0) {
    ncclResult_t const r = ncclSend(from.data(), from.size(), ncclInt8, to, comm(rank, number), s);
    return r == ncclInProgress && fake_nccl::group_depth == 0 ? succeed(comm(rank, number)) : r;
  }
  ncclResult_t receive(int rank, std::vector<char>& to, int from, cudaStream_t s, int number = 0) {
    ncclResult_t const r = ncclRecv(to.data(), to.size(), ncclInt8, from, comm(rank, number), s);
    return r == ncclInProgress && fake_nccl::group_depth == 0 ? succeed(comm(rank, number)) : r;
  }
  ncclResult_t state(int rank, int number = 0) const {
    ncclResult_t s{};
    REQUIRE(ncclCommGetAsyncError(comm(rank, number), &s) == ncclSuccess);
    return s;
  }
  static std::string hang() { return fake_nccl::all().hang; }
  int ranks() const { return ranks_; }

  std::vector<std::vector<ncclComm_t>> comms;

 private:
  int ranks_;
  std::vector<cudaStream_t> streams_;
};
