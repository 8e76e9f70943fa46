// SPDX-License-Identifier: BSL-1.0
//
// Stands in for NCCL's header, on the streams of the stand-in for CUDA's: sends and receives
// between the ranks of a communicator, which may be in one process or in several.
//
// It enforces what NCCL may let pass. A send waits for its receive; those of a pair of ranks match
// in their order, and must agree in number and type; a group takes effect as a whole and ends as a
// whole; it keeps its device from other kernels while it waits, unless `kernels_at_once` says
// otherwise; nothing is put on a stream before all calls have succeeded. When all processes wait
// for each other, the cycle is printed, and all communicators fail. There are no reductions:
// nothing that is computed is left to NCCL.
#pragma once

#include <climits>
#include <cstddef>
#include <string>
#include <vector>

#include <cuda_runtime.h>

#include "device/fake_nccl.hpp"

#define NCCL_MAJOR 2
#define NCCL_MINOR 28
#define NCCL_PATCH 9
#define NCCL_VERSION_CODE 22809
#define NCCL_VERSION(X, Y, Z) ((X) * 10000 + (Y) * 100 + (Z))
#define NCCL_UNIQUE_ID_BYTES 128
#define NCCL_CONFIG_UNDEF_INT INT_MIN
#define NCCL_CONFIG_UNDEF_PTR nullptr

enum ncclResult_t {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7
};
enum ncclDataType_t { ncclInt8 = 0, ncclChar = 0, ncclUint8 = 1, ncclFloat32 = 7, ncclFloat64 = 8 };
struct ncclUniqueId {
  char internal[NCCL_UNIQUE_ID_BYTES];
};
struct ncclConfig_t {
  std::size_t size;
  unsigned magic, version;
  int blocking, cgaClusterSize, minCTAs, maxCTAs;
  char const* netName;
  int splitShare;
};
#define NCCL_CONFIG_INITIALIZER                   \
  {sizeof(ncclConfig_t),   0xcafebeef,            \
   NCCL_VERSION(2, 28, 9), NCCL_CONFIG_UNDEF_INT, \
   NCCL_CONFIG_UNDEF_INT,  NCCL_CONFIG_UNDEF_INT, \
   NCCL_CONFIG_UNDEF_INT,  NCCL_CONFIG_UNDEF_PTR, \
   NCCL_CONFIG_UNDEF_INT}

using ncclComm_t = fake_nccl::communicator*;

namespace fake_nccl {

inline ncclResult_t answer(int result, std::string text = {}) {
  if (result != ncclSuccess && result != ncclInProgress) last_error = std::move(text);
  return ncclResult_t(result);
}
/// Of a call on a communicator, from the thread that has made it.
inline ncclResult_t check(communicator const* c, bool is_of_any_thread = false) {
  if (c == nullptr || !is_alive(c))
    return answer(ncclInvalidArgument, "a communicator that was destroyed or aborted");
  if (!is_of_any_thread && c->thread != pthread_self())
    return answer(ncclInvalidUsage, "a second thread in one communicator");
  return ncclSuccess;
}
inline ncclResult_t put(communicator* c, operation const& o, int type, int peer, cudaStream_t s) {
  if (ncclResult_t const r = check(c); r != ncclSuccess) return r;
  if (c->result != ncclSuccess) return answer(c->result, c->text);
  if (c->calls_left > 0)
    return answer(ncclInvalidUsage, "a call before the last one has succeeded");
  if (!c->is_initialised)
    return answer(ncclInvalidUsage, "a call before the communicator is there");
  if (peer < 0 || peer >= c->size || size_of(type) == 0)
    return answer(ncclInvalidArgument, "no such rank, or no such type");
  if (s == nullptr || s->device != c->device)
    return answer(ncclInvalidArgument, "a stream of another device");
  if (s->in != nullptr) return answer(ncclInvalidUsage, "the stand-in has no NCCL under capture");
  if (!c->group.empty() && c->on != s)
    return answer(ncclInvalidUsage, "two streams for one communicator in a group");
  c->on = s;
  c->group.push_back(o);
  if (group_depth > 0) {
    grouped.insert(c);
    return ncclSuccess;
  }
  c->begin_calls();
  launch_if_called(c);
  return answer(c->calls_left > 0 ? ncclInProgress : ncclSuccess);
}

}  // namespace fake_nccl

inline char const* ncclGetErrorString(ncclResult_t r) {
  constexpr char const* texts[]{"no error",
                                "unhandled cuda error",
                                "unhandled system error",
                                "internal error",
                                "invalid argument",
                                "invalid usage",
                                "remote process exited or there was a network error",
                                "NCCL operation in progress"};
  return texts[int(r)];
}
inline char const* ncclGetLastError(ncclComm_t) { return fake_nccl::last_error.c_str(); }
inline ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
inline ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  *id = {};
  int const number = fake_nccl::all().communicators++;
  if (number >= fake_nccl::most_communicators)
    return fake_nccl::answer(ncclSystemError, "too many communicators");
  id->internal[0] = 'f', id->internal[1] = char(number);
  return ncclSuccess;
}
inline ncclResult_t ncclCommInitRankConfig(ncclComm_t* made, int ranks, ncclUniqueId id, int rank,
                                           ncclConfig_t* config) {
  *made = nullptr;
  if (id.internal[0] != 'f' || config == nullptr || config->magic != 0xcafebeef || ranks < 1 ||
      ranks > fake_nccl::most_ranks || rank < 0 || rank >= ranks)
    return fake_nccl::answer(ncclInvalidArgument, "no id, no config, or no such rank");
  if (config->blocking != 0)
    return fake_nccl::answer(ncclInvalidUsage, "a blocking communicator can hang for ever");
  *made = fake_nccl::make(id.internal[1], ranks, rank, fake_gpu::current);
  return ncclInProgress;
}
/// May be called by any thread, beside another call.
inline ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t* result) {
  if (ncclResult_t const r = fake_nccl::check(c, true); r != ncclSuccess) return r;
  *result = ncclResult_t(fake_nccl::poll(c));
  return ncclSuccess;
}
inline ncclResult_t ncclCommFinalize(ncclComm_t c) {
  if (ncclResult_t const r = fake_nccl::check(c); r != ncclSuccess) return r;
  if (c->launched > c->ended)
    return fake_nccl::answer(ncclInvalidUsage, "operations are left on the stream");
  c->is_final = true;
  return ncclSuccess;
}
inline ncclResult_t ncclCommDestroy(ncclComm_t c) {
  if (ncclResult_t const r = fake_nccl::check(c); r != ncclSuccess) return r;
  if (!c->is_final) return fake_nccl::answer(ncclInvalidUsage, "not finalized");
  fake_nccl::end(c);
  return ncclSuccess;
}
/// The operations of this rank end, without their data.
inline ncclResult_t ncclCommAbort(ncclComm_t c) {
  if (ncclResult_t const r = fake_nccl::check(c, true); r != ncclSuccess) return r;
  fake_nccl::end(c);
  return ncclSuccess;
}
inline ncclResult_t ncclCommCount(ncclComm_t c, int* n) { return *n = c->size, ncclSuccess; }
inline ncclResult_t ncclCommUserRank(ncclComm_t c, int* n) { return *n = c->rank, ncclSuccess; }
inline ncclResult_t ncclCommCuDevice(ncclComm_t c, int* n) { return *n = c->device, ncclSuccess; }

inline ncclResult_t ncclSend(void const* data, std::size_t count, ncclDataType_t type, int peer,
                             ncclComm_t c, cudaStream_t s) {
  return fake_nccl::put(
      c, {true, peer, static_cast<char*>(const_cast<void*>(data)), long(count), type}, type, peer,
      s);
}
inline ncclResult_t ncclRecv(void* data, std::size_t count, ncclDataType_t type, int peer,
                             ncclComm_t c, cudaStream_t s) {
  return fake_nccl::put(c, {false, peer, static_cast<char*>(data), long(count), type}, type, peer,
                        s);
}
inline ncclResult_t ncclGroupStart() {
  ++fake_nccl::group_depth;
  return ncclSuccess;
}
inline ncclResult_t ncclGroupEnd() {
  if (fake_nccl::group_depth == 0)
    return fake_nccl::answer(ncclInvalidUsage, "the end of no group");
  if (--fake_nccl::group_depth > 0) return ncclSuccess;
  bool is_done = true;
  for (ncclComm_t const c : fake_nccl::grouped) {
    c->begin_calls();
    fake_nccl::launch_if_called(c);
    is_done = is_done && c->calls_left == 0;
  }
  fake_nccl::grouped.clear();
  return fake_nccl::answer(is_done ? ncclSuccess : ncclInProgress);
}
