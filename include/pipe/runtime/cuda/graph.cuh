// SPDX-License-Identifier: BSL-1.0
//
// CUDA graphs of whole runs. A run is captured once from the streams on which it is enqueued, and
// replayed for every later run of the same shape; everything else that differs between runs is in
// run_state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include <cuda_runtime.h>

#include <pipe/backend/cuda/core/check.cuh>
#include <pipe/base/heap_array.hpp>
#include <pipe/runtime/cuda/redundant_edges.hpp>
#include <pipe/runtime/job.hpp>
#include <pipe/runtime/sum_tree.hpp>

namespace pp::cuda {

/// Owner of a graph that can be launched.
class graph {
 public:
  graph() = default;
  graph(graph&& other) noexcept : made_(std::exchange(other.made_, nullptr)) {}
  graph& operator=(graph&& other) noexcept {
    std::swap(made_, other.made_);
    return *this;
  }
  ~graph() {
    if (made_ != nullptr) cudaGraphExecDestroy(made_);
  }

  /// The graph of the work that enqueue() puts on `origin` and on streams that wait for events of
  /// `origin`. enqueue() ends with waits of `origin` for all these streams. None of the work is
  /// executed.
  ///
  /// law:    there is an edge where streams and events order two nodes and no path of other edges
  ///         does; nodes have the priority of their stream
  /// needs:  all kernels are loaded; enqueue() does not wait, allocate or launch elsewhere
  /// throws: what enqueue() throws, or pp::error if CUDA refuses the capture; `origin` and the
  ///         other streams are then as before
  template <class Enqueue>
  [[gnu::cold]] static graph capture(cudaStream_t origin, Enqueue const& enqueue) {
    try {
      captured c(origin);
      enqueue();
      c.end();
      c.reduce();
      graph g;
      check(cudaGraphInstantiate(&g.made_, c.of, cudaGraphInstantiateFlagUseNodePriority),
            "preparation of a graph");
      return g;
    } catch (error const& e) {
      detail::throw_error<error>(
          {"a step cannot be captured as a CUDA graph, which NoGraphs "
           "turns off: ",
           e.what()});
    }
  }
  bool is_empty() const { return made_ == nullptr; }
  void launch(cudaStream_t stream) const {
    check(cudaGraphLaunch(made_, stream), "launch of a graph");
  }

 private:
  /// A capture and its graph, from which an executable graph is made.
  struct captured {
    [[gnu::cold]] explicit captured(cudaStream_t stream) : origin(stream) {
      check(cudaStreamBeginCapture(origin, cudaStreamCaptureModeThreadLocal), what);
      is_open = true;
    }
    captured(captured const&) = delete;
    captured& operator=(captured const&) = delete;
    ~captured() {
      if (is_open) {
        (void)cudaStreamEndCapture(origin, &of);
        (void)cudaGetLastError();
      }
      if (of != nullptr) cudaGraphDestroy(of);
    }
    void end() {
      is_open = false;
      check(cudaStreamEndCapture(origin, &of), what);
    }
    /// Removes redundant edges: a wait for an event may be implied by other waits.
    [[gnu::cold]] void reduce() {
      std::size_t nodes = 0, count = 0;
      check(cudaGraphGetNodes(of, nullptr, &nodes), what);
      std::vector<cudaGraphNode_t> all(nodes);
      check(cudaGraphGetNodes(of, all.data(), &nodes), what);
      std::qsort(all.data(), nodes, sizeof all[0], &compare_nodes);
      check(edges_of(nullptr, nullptr, nullptr, &count), what);
      std::vector<cudaGraphNode_t> from(count), to(count);
      std::vector<cudaGraphEdgeData> data(count);
      if (count > 0) check(edges_of(from.data(), to.data(), data.data(), &count), what);
      auto const number = [&](cudaGraphNode_t n) {
        void const* const found = std::bsearch(&n, all.data(), nodes, sizeof n, &compare_nodes);
        return std::size_t(static_cast<cudaGraphNode_t const*>(found) - all.data());
      };
      std::vector<graph_edge> edges(count);
      for (std::size_t i = 0; i < count; ++i) edges[i] = {number(from[i]), number(to[i])};
      for (std::size_t const e : redundant_edges(nodes, edges))
        check(remove(&from[e], &to[e], &data[e]), what);
    }
    /// The order of addresses, for std::qsort. <algorithm> and <functional> would add a tenth to
    /// the source that nvcc reads with this library.
    static int compare_nodes(void const* a, void const* b) {
      auto const address = [](void const* node) {
        return reinterpret_cast<std::uintptr_t>(*static_cast<cudaGraphNode_t const*>(node));
      };
      return int(address(a) > address(b)) - int(address(a) < address(b));
    }
#if CUDART_VERSION >= 13000
    cudaError_t edges_of(cudaGraphNode_t* from, cudaGraphNode_t* to, cudaGraphEdgeData* data,
                         std::size_t* count) const {
      return cudaGraphGetEdges(of, from, to, data, count);
    }
    cudaError_t remove(cudaGraphNode_t const* from, cudaGraphNode_t const* to,
                       cudaGraphEdgeData const* data) const {
      return cudaGraphRemoveDependencies(of, from, to, data, 1);
    }
#else
    cudaError_t edges_of(cudaGraphNode_t* from, cudaGraphNode_t* to, cudaGraphEdgeData* data,
                         std::size_t* count) const {
      return cudaGraphGetEdges_v2(of, from, to, data, count);
    }
    cudaError_t remove(cudaGraphNode_t const* from, cudaGraphNode_t const* to,
                       cudaGraphEdgeData const* data) const {
      return cudaGraphRemoveDependencies_v2(of, from, to, data, 1);
    }
#endif

    static constexpr char const* what = "capture of a graph";
    cudaStream_t origin;
    cudaGraph_t of = nullptr;
    bool is_open = false;
  };
  cudaGraphExec_t made_ = nullptr;
};

/// The facts of a run on which its launches depend.
struct run_shape {
  detail::job::kind what = detail::job::kind::evaluate;
  int samples = 0;
  bool updates = false, continues = false, is_continued = false, clips = false;
  int levels = 0;  ///< partial sums that the accumulation is joined with
  bool is_last = true;
  friend bool operator==(run_shape const&, run_shape const&) = default;
};
inline run_shape shape_of(detail::job const& j) {
  return {j.what,
          j.batch.samples,
          j.update.applies,
          j.part.continues,
          j.part.is_continued,
          j.update.clip_value > 0,
          detail::levels_before(j.part.accumulation),
          detail::is_last_accumulation(j)};
}

/// The graphs of an engine, by the shape of the run. The first run of a shape is without a graph:
/// it loads what kernels of other libraries load at their first launch, and a run that does not
/// come again needs no graph.
class graph_table {
 public:
  /// accumulations: the accumulations of a mini-batch, whose runs have a shape for each level of
  /// the tree, and one more
  [[gnu::cold]] explicit graph_table(int accumulations)
      : known_(8 * (detail::levels_of(accumulations) + 1)) {}

  /// The graph of a shape that has run, empty if the graph is yet to be captured; null for a shape
  /// that has not run. Valid until the next call.
  graph* find(run_shape const& shape) {
    for (long i = 0; i < count_; ++i)
      if (known_[i].shape == shape) return &known_[i].of;
    return nullptr;
  }
  /// Notes that a run of this shape has ended.
  ///
  /// law: shapes that come only once take no place from shapes with a graph; there are 8 places for
  ///      each shape of an accumulation
  [[gnu::cold]] void remember(run_shape const& shape) {
    if (find(shape) != nullptr) return;
    if (count_ == known_.size()) {
      long once = 0;
      while (once < count_ && !known_[once].of.is_empty()) ++once;
      if (once == count_) return;
      for (--count_; once < count_; ++once) known_[once] = std::move(known_[once + 1]);
    }
    known_[count_++] = {shape, graph{}};
  }

 private:
  struct known {
    run_shape shape;
    graph of;
  };
  detail::heap_array<known> known_;
  long count_ = 0;
};

}  // namespace pp::cuda
