// SPDX-License-Identifier: BSL-1.0
//
// Names for profilers, by NVTX: a range for each run and in it one for each action, as "F chunk 2
// micro-batch 7", in the domain "pipe", and names of the ranks' streams. A range is around the
// calls that enqueue an action; Nsight Systems projects the range onto the kernels. A run that is
// replayed as a graph enqueues no actions, so it has no ranges of actions.
#pragma once

#if __has_include(<nvtx3/nvToolsExtCudaRt.h>)
// A program compiles all of NVTX, of which five functions are called, and only where a tool is
// attached. So NVTX is not optimised, which saves time of the host compiler.
#if defined(__CUDACC__) && defined(__GNUC__) && !defined(__clang__)
#pragma nv_diagnostic push
#pragma nv_diag_suppress 1675  // pragmas that nvcc hands on
#pragma GCC push_options
#pragma GCC optimize("O0")
#endif
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCudaRt.h>
#if defined(__CUDACC__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#pragma nv_diagnostic pop
#endif
#endif

#include <pipe/base/heap_array.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/runtime/cuda/rank_streams.cuh>
#include <pipe/runtime/description.hpp>
#include <pipe/runtime/job.hpp>

namespace pp::cuda {

#if __has_include(<nvtx3/nvToolsExtCudaRt.h>)

/// The ranges of an executor, which makes a range on the stack around the calls that enqueue an
/// action:
///
///     auto const shown = ranges_.of(a);  // until the end of the scope
///
/// law: ranges of a thread nest; a range ends with its scope, also by an exception
/// law: without a tool no name is made, and a range costs the test of a pointer; with one, names
///      are registered at construction, and a range allocates nothing
class profiler_ranges {
 public:
  [[gnu::cold]] profiler_ranges(detail::pipeline_description const& d, rank_streams& streams)
      : chunks_(d.chunks) {
    if (domain() == nullptr) return;
    for (int k = 0; k < jobs; ++k) of_job_[k] = registered(name_of(detail::job::kind(k)));
    of_action_ =
        detail::heap_array<nvtxStringHandle_t>(long(action_kinds) * d.chunks * d.micro_batches);
    for (int r = 0; r < d.ranks; ++r) {
      detail::rank_description const& rank = d.rank[r];
      name_actions(rank.training);
      name_actions(rank.evaluation);
      if (streams.local().has(r)) name_streams(r, streams);
    }
    streams.begin();
  }

  /// A range from its construction to its destruction.
  class [[nodiscard]] range {
   public:
    /// name: null for none
    explicit range(nvtxStringHandle_t name) : is_shown_(name != nullptr) {
      if (!is_shown_) return;
      nvtxEventAttributes_t what{};
      what.version = NVTX_VERSION;
      what.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
      what.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
      what.message.registered = name;
      nvtxDomainRangePushEx(domain(), &what);
    }
    range(range const&) = delete;
    range& operator=(range const&) = delete;
    ~range() {
      if (is_shown_) nvtxDomainRangePop(domain());
    }

   private:
    bool is_shown_;
  };

  range of(schedules::action const& a) const {
    return range(of_action_.size() > 0 ? of_action_[index_of(a)] : nullptr);
  }
  range of(detail::job::kind k) const { return range(of_job_[int(k)]); }

 private:
  static constexpr int action_kinds = detail::action_kinds,
                       jobs = int(detail::job::kind::infer) + 1;

  /// The domain of all trainers; null without a tool.
  static nvtxDomainHandle_t domain() {
    static nvtxDomainHandle_t const pipe = nvtxDomainCreateA("pipe");
    return pipe;
  }
  static nvtxStringHandle_t registered(char const* name) {
    return nvtxDomainRegisterStringA(domain(), name);
  }
  static constexpr char const* name_of(detail::job::kind k) {
    return k == detail::job::kind::train      ? "train"
           : k == detail::job::kind::evaluate ? "evaluate"
                                              : "infer";
  }
  long index_of(schedules::action const& a) const {
    return (long(a.micro_batch) * chunks_ + a.chunk) * action_kinds + int(a.kind);
  }
  void name_actions(detail::view<schedules::action> const& actions) {
    for (schedules::action const& a : actions)
      if (nvtxStringHandle_t& name = of_action_[index_of(a)]; name == nullptr)
        name = registered(detail::sentence({schedules::short_name(a.kind), " chunk ", a.chunk,
                                            " micro-batch ", a.micro_batch})
                              .begin());
  }
  /// Names the streams of a rank. A rank that is alone on its device has one stream.
  static void name_streams(int rank, rank_streams& streams) {
    cudaStream_t const first = streams.of(rank);
    auto const name = [&](char const* what) {
      nvtxNameCudaStreamA(streams.of(rank), detail::sentence({"rank ", rank, what}).begin());
    };
    streams.enter(rank, detail::program::backward_weight);
    if (streams.of(rank) == first) return name("");
    name(" weight gradients");
    streams.enter(rank, detail::program::backward_input);
    name(" input gradients");
    streams.enter(rank, detail::program::forward);
    name(" forward");
  }

  int chunks_;
  nvtxStringHandle_t of_job_[jobs]{};
  detail::heap_array<nvtxStringHandle_t> of_action_;  // by micro-batch, chunk and kind
};

#else

/// No ranges, for an installation of CUDA without NVTX, which is a package of its own.
class profiler_ranges {
 public:
  profiler_ranges(detail::pipeline_description const&, rank_streams&) {}
  struct [[nodiscard]] range {
    ~range() {}
  };
  range of(schedules::action const&) const { return {}; }
  range of(detail::job::kind) const { return {}; }
};

#endif

}  // namespace pp::cuda
