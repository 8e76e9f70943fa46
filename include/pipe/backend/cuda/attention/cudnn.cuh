// SPDX-License-Identifier: BSL-1.0
//
// Attention by cuDNN, through its graph interface: one operation, whose scores pass through a mask
// if the attention is causal. The library is opened when a program asks for it, so that no program
// has to link cuDNN; if cuDNN is missing when the program runs, or <cudnn_graph.h> was missing when
// the program was compiled, kernels of this library compute attention.
//
// An attention's plan is made once, from the first choice of the library's heuristics that fits:
// the plan, and so the bits, are the same in every run with one version of cuDNN on one kind of
// GPU. The one output beside the result is the logarithms that the gradient reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <pipe/backend/cuda/attention/attention_call.hpp>
#include <pipe/backend/cuda/core/check.cuh>
#include <pipe/base/owner.hpp>

#if defined(__CUDACC__) && __has_include(<cudnn_graph.h>)
#include <cudnn_graph.h>
#endif

#if defined(CUDNN_VERSION) && CUDNN_VERSION >= 92100

#include <dlfcn.h>

namespace pp::cuda {

/// The functions of the library that are used.
class cudnn {
 public:
  /// Opened by the first call.
  static cudnn const& library() {
    static cudnn const one;
    return one;
  }
  /// Why the library cannot be used; empty if it can.
  std::string const& missing() const { return missing_; }

  /// Throws pp::error, "cuDNN, `what`: reason", if a call failed.
  void check(cudnnStatus_t status, char const* what) const {
    if (status != CUDNN_STATUS_SUCCESS)
      detail::throw_error<error>({"cuDNN, ", what, ": ", text_of(status)});
  }

  decltype(cudnnGetVersion)* version = nullptr;
  decltype(cudnnCreate)* create = nullptr;
  decltype(cudnnDestroy)* destroy = nullptr;
  decltype(cudnnSetStream)* set_stream = nullptr;
  decltype(cudnnGetErrorString)* text_of = nullptr;
  decltype(cudnnBackendCreateDescriptor)* create_descriptor = nullptr;
  decltype(cudnnBackendDestroyDescriptor)* destroy_descriptor = nullptr;
  decltype(cudnnBackendSetAttribute)* set_attribute = nullptr;
  decltype(cudnnBackendGetAttribute)* read_attribute = nullptr;
  decltype(cudnnBackendFinalize)* finalize = nullptr;
  decltype(cudnnBackendExecute)* execute = nullptr;

 private:
  /// The library stays open until the program ends.
  cudnn() {
    void* const opened = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr) {
      missing_ = dlerror();
      return;
    }
    // missing() names the first function that is missing.
    auto const find = [&]<class F>(F*& f, char const* name) {
      f = reinterpret_cast<F*>(dlsym(opened, name));
      if (f == nullptr && missing_.empty()) missing_ = std::string("no ") + name + " in libcudnn";
    };
    find(version, "cudnnGetVersion");
    find(create, "cudnnCreate");
    find(destroy, "cudnnDestroy");
    find(set_stream, "cudnnSetStream");
    find(text_of, "cudnnGetErrorString");
    find(create_descriptor, "cudnnBackendCreateDescriptor");
    find(destroy_descriptor, "cudnnBackendDestroyDescriptor");
    find(set_attribute, "cudnnBackendSetAttribute");
    find(read_attribute, "cudnnBackendGetAttribute");
    find(finalize, "cudnnBackendFinalize");
    find(execute, "cudnnBackendExecute");
    if (missing_.empty() && version() < 92100)
      missing_ = "libcudnn is of version " + std::to_string(version()) + ", and 92100 is needed";
  }
  std::string missing_;
};

/// A descriptor of the graph interface; attributes are set one by one.
class cudnn_descriptor {
 public:
  /// throws: pp::error if the library has no such descriptor
  explicit cudnn_descriptor(cudnnBackendDescriptorType_t type) {
    cudnnBackendDescriptor_t made = nullptr;
    check(cudnn::library().create_descriptor(type, &made), "a descriptor");
    made_ = descriptor(made, cudnn::library().destroy_descriptor);
  }
  operator cudnnBackendDescriptor_t() const { return made_.get(); }

  /// Sets an attribute, of numbers, pointers or enumerators.
  ///
  /// throws: pp::error if the library refuses the attribute
  template <class T>
  cudnn_descriptor& set(cudnnBackendAttributeName_t which, cudnnBackendAttributeType_t type,
                        std::initializer_list<T> values) {
    check(cudnn::library().set_attribute(made_.get(), which, type, std::int64_t(values.size()),
                                         values.begin()),
          "an attribute");
    return *this;
  }
  /// Sets an attribute that is another descriptor, which must outlive this one.
  cudnn_descriptor& set(cudnnBackendAttributeName_t which, cudnn_descriptor const& other) {
    return set<cudnnBackendDescriptor_t>(which, CUDNN_TYPE_BACKEND_DESCRIPTOR, {other});
  }
  /// Sets an attribute that is a whole number.
  cudnn_descriptor& number(cudnnBackendAttributeName_t which, std::int64_t value) {
    return set(which, CUDNN_TYPE_INT64, {value});
  }
  /// The finished descriptor: no attribute can be set afterwards.
  ///
  /// throws: pp::error if the library refuses the descriptor, such as a plan for which it has no
  ///         kernel
  cudnn_descriptor finish() && {
    check(cudnn::library().finalize(made_.get()), "a description");
    return std::move(*this);
  }

 private:
  static void check(cudnnStatus_t status, char const* what) {
    cudnn::library().check(status, what);
  }
  using descriptor = detail::owner<void, decltype(cudnnBackendDestroyDescriptor)*>;
  descriptor made_;
};

/// An attention that is ready to be enqueued.
class cudnn_attention {
 public:
  static constexpr char const* name = "cuDNN";
  static std::string const& missing() { return cudnn::library().missing(); }

  /// The library's own state: one session for each engine, shared by all streams.
  class session {
   public:
    /// throws: pp::error if the library does not start, for example without a device
    session() {
      cudnnHandle_t made = nullptr;
      cudnn const& dnn = cudnn::library();
      dnn.check(dnn.create(&made), "a handle");
      handle_ = handle(made, dnn.destroy);
    }
    operator cudnnHandle_t() const { return handle_.get(); }

   private:
    using handle = detail::owner<cudnnContext, decltype(cudnnDestroy)*>;
    handle handle_;
  };

  /// Null if the library has no plan for this attention within `attention_bytes` of workspace and
  /// with the same order of additions in every run.
  static detail::owner<cudnn_attention> make(session const& of, attention_call const& c) {
    detail::owner<cudnn_attention> made(new cudnn_attention(of, c));
    try {
      made->find_plan();
    } catch (error const&) {  // refused: kernels of this library
      return nullptr;
    }
    if (made->plan_ == nullptr) return nullptr;
    return made;
  }

  /// Enqueues the attention.
  ///
  /// needs: one host thread at a time: the stream is a part of the session
  void enqueue(arguments const& a, cudaStream_t stream) const {
    // Each id has its operand's address in `where`. The library reads `scale` and `nothing` on the
    // host.
    auto const at = [&](attention_operand const& o) {
      return static_cast<void*>(static_cast<char*>(a.operand[o.index]) + 2 * o.first);
    };
    float scale = call_.scale, nothing = -__builtin_huge_valf();
    std::vector<std::int64_t> ids{query, key, value, result, factor};
    std::vector<void*> where{at(call_.query), at(call_.key), at(call_.value), at(call_.result),
                             &scale};
    if (call_.logarithms >= 0)
      ids.push_back(logarithms), where.push_back(a.operand[call_.logarithms]);
    if (call_.is_causal) ids.push_back(unseen), where.push_back(&nothing);
    long first = 0;
    // The lengths of samples, which a kernel has counted before the call, come first in the
    // workspace.
    if (call_.has_lengths) {
      auto* const lengths = static_cast<int*>(a.workspace);
      ids.push_back(query_lengths), where.push_back(lengths);
      ids.push_back(key_lengths), where.push_back(lengths + call_.samples);
      first = 3 * long(call_.samples) * long(sizeof(int));
    }
    void* const workspace = a.workspace_from(first, attention_alignment);
    cudnn_descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    dnn_.check(dnn_.set_attribute(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64,
                                  std::int64_t(ids.size()), ids.data()),
               "operands");
    dnn_.check(dnn_.set_attribute(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
                                  std::int64_t(where.size()), where.data()),
               "operands");
    pack.set<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, {workspace});
    cudnn_descriptor const operands = std::move(pack).finish();
    dnn_.check(dnn_.set_stream(handle_, stream), "a stream");
    dnn_.check(dnn_.execute(handle_, *plan_, operands), "an attention");
  }

 private:
  /// The ids of tensors: the operands of a call, and the scores before and after a mask. The
  /// library knows an operand by its id, so ids only have to differ.
  enum id : std::int64_t {
    query = 1,
    key,
    value,
    result,
    logarithms,
    factor,
    query_lengths,
    key_lengths,
    scores,
    seen_scores,
    unseen
  };
  using shape = std::initializer_list<std::int64_t>;

  /// Finishes a descriptor, which lives as long as the attention.
  cudnn_descriptor const& keep(cudnn_descriptor d) {
    return kept_.emplace_back(std::move(d).finish());
  }

  /// Describes nothing yet: find_plan() may throw.
  cudnn_attention(cudnnHandle_t handle, attention_call const& c) : call_(c), handle_(handle) {}

  /// A tensor by its id. extents, strides: of four dimensions, in elements
  static cudnn_descriptor tensor(std::int64_t id, cudnnDataType_t type, shape extents,
                                 shape strides, int alignment) {
    cudnn_descriptor d(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    d.number(CUDNN_ATTR_TENSOR_UNIQUE_ID, id)
        .set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, {type})
        .set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, extents)
        .set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, strides)
        .number(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, alignment);
    return d;
  }
  /// Heads of an operand: (B, H, T, d).
  cudnn_descriptor const& heads(std::int64_t id, attention_operand const& o, int count,
                                std::int64_t positions) {
    return keep(tensor(id, call_.format == dtype::bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_HALF,
                       {call_.samples, count, positions, call_.head_size},
                       {positions * o.stride, call_.head_size, o.stride, 1}, 16));
  }
  /// A number on the host.
  cudnn_descriptor const& number(std::int64_t id) {
    cudnn_descriptor d = tensor(id, CUDNN_DATA_FLOAT, {1, 1, 1, 1}, {1, 1, 1, 1}, 4);
    d.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, {true});
    return keep(std::move(d));
  }
  /// A number for each sample.
  cudnn_descriptor const& lengths(std::int64_t id) {
    return keep(tensor(id, CUDNN_DATA_INT32, {call_.samples, 1, 1, 1}, {1, 1, 1, 1}, 4));
  }
  /// Scores, which are not in memory.
  cudnn_descriptor const& scores_of(std::int64_t id) {
    std::int64_t const keys = call_.keys, all = keys * call_.queries;
    cudnn_descriptor d =
        tensor(id, CUDNN_DATA_FLOAT, {call_.samples, call_.heads, call_.queries, keys},
               {all * call_.heads, all, keys, 1}, 16);
    d.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, {true});
    return keep(std::move(d));
  }

  /// Describes the attention as a graph of one operation, whose mask is a graph of its own, and
  /// looks for a plan of this graph.
  void find_plan() {
    attention_call const& c = call_;
    cudnn_descriptor attention(CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR);
    attention.set(CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC, heads(query, c.query, c.heads, c.queries))
        .set(CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC, heads(key, c.key, c.key_heads, c.keys))
        .set(CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC, heads(value, c.value, c.key_heads, c.keys))
        .set(CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC, heads(result, c.result, c.heads, c.queries))
        .set(CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC, number(factor));
    // (B, H, T) in memory as (B, T, H): the layout that the gradient's kernels read.
    if (c.logarithms >= 0)
      attention.set(CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC,
                    keep(tensor(logarithms, CUDNN_DATA_FLOAT, {c.samples, c.heads, c.queries, 1},
                                {std::int64_t(c.queries) * c.heads, 1, c.heads, 1}, 4)));
    if (c.has_lengths)
      attention.set(CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_QDESC, lengths(query_lengths))
          .set(CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_KVDESC, lengths(key_lengths));
    if (c.is_causal)
      attention.set(CUDNN_ATTR_OPERATION_SDPA_FWD_SUBGRAPH, mask())
          .number(CUDNN_ATTR_OPERATION_SDPA_FWD_SUBGRAPH_INPUT_UID, scores)
          .number(CUDNN_ATTR_OPERATION_SDPA_FWD_SUBGRAPH_OUTPUT_UID, seen_scores);
    cudnn_descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, keep(std::move(attention)))
        .set<cudnnHandle_t>(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, {handle_});
    choose(keep(std::move(graph)));
  }

  /// A graph of one operation: the scores of keys after a query become minus infinity.
  cudnn_descriptor const& mask() {
    cudnn_descriptor band(CUDNN_BACKEND_OPERATION_DIAGONAL_BAND_MASK_DESCRIPTOR);
    band.set(CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_XDESC, scores_of(scores))
        .set(CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_BDESC, number(unseen))
        .set(CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_YDESC, scores_of(seen_scores))
        .set(CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_COMPARISON_MODE, CUDNN_TYPE_POINTWISE_MODE,
             {CUDNN_POINTWISE_CMP_GE});
    cudnn_descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, keep(std::move(band)));
    return keep(std::move(graph));
  }

  /// Takes the first of the library's choices that fits and is deterministic.
  void choose(cudnn_descriptor const& graph) {
    cudnn_descriptor asked(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    asked.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
        .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, {CUDNN_HEUR_MODE_A});
    cudnn_descriptor const& choices = keep(std::move(asked));
    // Two calls: the number of choices, then the choices.
    std::int64_t count = 0;
    dnn_.check(dnn_.read_attribute(choices, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                   CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr),
               "choices");
    std::vector<cudnn_descriptor const*> configurations;
    std::vector<cudnnBackendDescriptor_t> to;
    for (std::int64_t i = 0; i < count; ++i)
      to.push_back(
          *configurations.emplace_back(&kept_.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)));
    dnn_.check(dnn_.read_attribute(choices, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                   CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &count, to.data()),
               "choices");
    for (std::int64_t i = 0; i < count && plan_ == nullptr; ++i) {
      cudnn_descriptor const& choice = *configurations[std::size_t(i)];
      if (!is_deterministic(choice)) continue;
      try {
        cudnn_descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
        plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, choice)
            .set<cudnnHandle_t>(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, {handle_});
        cudnn_descriptor const& made = keep(std::move(plan));
        if (workspace_of(made) <= attention_bytes) plan_ = &made;
      } catch (error const&) {  // the next
      }
    }
  }
  /// Whether the engine of a choice has no note that says "nondeterministic".
  bool is_deterministic(cudnn_descriptor const& choice) const {
    cudnn_descriptor const engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    cudnnBackendDescriptor_t to = engine;
    std::int64_t count = 0;
    dnn_.check(dnn_.read_attribute(choice, CUDNN_ATTR_ENGINECFG_ENGINE,
                                   CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &to),
               "an engine");
    cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    dnn_.check(
        dnn_.read_attribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                            CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, notes),
        "what an engine is");
    for (std::int64_t i = 0; i < count; ++i)
      if (notes[i] == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) return false;
    return true;
  }
  /// Bytes of workspace of a finished plan.
  std::int64_t workspace_of(cudnn_descriptor const& plan) const {
    std::int64_t bytes = 0, count = 0;
    dnn_.check(dnn_.read_attribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64,
                                   1, &count, &bytes),
               "a workspace");
    return bytes;
  }

  attention_call call_;
  cudnn const& dnn_ = cudnn::library();
  cudnnHandle_t handle_;
  std::deque<cudnn_descriptor> kept_;
  cudnn_descriptor const* plan_ = nullptr;  // in kept_
};

}  // namespace pp::cuda

#else

namespace pp::cuda {

/// Without headers of cuDNN, or with headers of an older version: cuDNN computes no attention.
struct cudnn_attention {
  static constexpr char const* name = "cuDNN";
  static std::string missing() { return "compiled without cudnn_graph.h of cuDNN 9.21 or newer"; }
  struct session {};
  static detail::owner<cudnn_attention> make(session const&, attention_call const&) {
    return nullptr;
  }
  void enqueue(arguments const&, cudaStream_t) const {}
};

}  // namespace pp::cuda

#endif
