// SPDX-License-Identifier: BSL-1.0
//
// A link between processes that are all in one: sends and receives of the machine that stands in
// for GPUs. Both sides wait for each other, as NCCL's do: nothing is buffered.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include <cuda_runtime.h>

#include <pipe/backend/cuda/core/check.cuh>
#include <pipe/runtime/cuda/process_link.cuh>

namespace on_host {

/// A send and its receive.
struct meeting {
  void const* from = nullptr;
  void* to = nullptr;
  long sent = -1, received = -1;  // bytes
  fake_gpu::event sender, receiver, done;
};

/// The meetings of all processes: of each directed pair, in the order of the calls.
struct meeting_place {
  struct channel {
    std::deque<meeting> meetings;
    std::size_t sends = 0, receives = 0;
    meeting& next(bool is_sent) {
      std::size_t const i = is_sent ? sends++ : receives++;
      while (meetings.size() <= i) meetings.emplace_back();
      return meetings[i];
    }
  };
  std::map<std::pair<int, int>, channel> channels;
  long mismatches = 0;  // meetings of two sizes
  long groups = 0, operations = 0;
  bool is_aborted = false;

  void deliver(meeting& m) {
    mismatches += m.sent != m.received;
    std::memcpy(m.to, m.from, std::size_t(std::min(m.sent, m.received)));
    m.done.reached = 1;
  }
};

class meeting_link : public pp::cuda::process_link {
 public:
  meeting_link(meeting_place& at, int process) : at_(at), process_(process) {}

  /// All come to their meetings. Then receives move the values, and sends wait until that is done.
  void exchange(std::vector<pp::cuda::message> const& messages, cudaStream_t on) override {
    std::vector<meeting*> meetings;
    for (pp::cuda::message const& x : messages) {
      meeting& m = x.is_sent ? at_.channels[{process_, x.process}].next(true)
                             : at_.channels[{x.process, process_}].next(false);
      if (x.is_sent)
        m.from = x.data, m.sent = x.bytes;
      else
        m.to = x.data, m.received = x.bytes;
      fake_gpu::event* const here = x.is_sent ? &m.sender : &m.receiver;
      on->tasks.push_back({[here] { here->reached = 1; }, nullptr, here, 1});
      meetings.push_back(&m);
    }
    for (std::size_t i = 0; i < messages.size(); ++i)
      if (!messages[i].is_sent)
        on->tasks.push_back({[at = &at_, m = meetings[i]] { at->deliver(*m); },
                             &meetings[i]->sender, &meetings[i]->done, 1});
    for (std::size_t i = 0; i < messages.size(); ++i)
      if (messages[i].is_sent) on->tasks.push_back({{}, &meetings[i]->done, nullptr, 1});
    ++at_.groups, at_.operations += long(messages.size());
  }
  void wait(cudaStream_t stream) override {
    pp::cuda::check(cudaStreamSynchronize(stream), "a wait for another process");
  }

  void abort(char const*) noexcept override { at_.is_aborted = true; }

 private:
  meeting_place& at_;
  int process_;
};

}  // namespace on_host
