// SPDX-License-Identifier: BSL-1.0
//
// Messages between processes that each have their own GPUs, as NCCL sends them. The runtime does
// not know more about other processes.
#pragma once

#include <vector>

#include <cuda_runtime.h>

namespace pp::cuda {

/// A send of device memory to another process, or a receive from it.
struct message {
  int process = 0;
  bool is_sent = false;
  void* data = nullptr;
  long bytes = 0;
};

/// The link of this process to the other processes. All calls are made by one thread.
///
/// law: the sends and receives between two processes match in the order of the calls; messages of
///      one call begin and end together, behind the work on the stream
/// law: a send ends only when it has been received
class process_link {
 public:
  virtual ~process_link() = default;
  /// Puts messages on a stream, which is the same in all calls.
  ///
  /// throws: pp::error if the transport refuses; rank_error if a process has failed
  virtual void exchange(std::vector<message> const& messages, cudaStream_t on) = 0;
  /// Waits for a stream, in place of cudaStreamSynchronize, which would never return if a process
  /// is lost.
  ///
  /// throws: as exchange()
  virtual void wait(cudaStream_t stream) = 0;
  /// After a failure here: ends the work on the device that waits for other processes, and tells
  /// them why.
  virtual void abort(char const* why) noexcept = 0;
};

}  // namespace pp::cuda
