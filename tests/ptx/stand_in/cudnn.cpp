// SPDX-License-Identifier: BSL-1.0
//
// Stands in for cuDNN under a program whose PTX is executed on the CPU: the functions that the
// library opens by name. Descriptions are checked as the real one checks them, where that is known:
// what is finished has all that it needs, extents fit each other, tensors lie in allocations. An
// attention is computed from what its description says, in double precision, with one rounding at
// the end. Of its choices, the first says that it is not deterministic, the second wants much
// memory, and the third cannot be made: a program must pass them over.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include <cuda_runtime_api.h>
#include <cudnn_graph.h>

#include "ptx/numbers.hpp"
#include "ptx/runtime.hpp"

namespace {

[[noreturn]] void fail(char const* what) {
  std::fprintf(stderr, "cuDNN: %s\n", what);
  std::abort();
}

struct attribute {
  cudnnBackendAttributeType_t type;
  std::int64_t count;
  std::vector<unsigned char> bytes;
};
/// Its attributes hold what other descriptors were when they were set, as the library's do.
struct description {
  cudnnBackendDescriptorType_t type = CUDNN_BACKEND_TENSOR_DESCRIPTOR;
  bool is_finished = false;
  std::map<int, attribute> attributes;
  std::map<int, std::vector<description>> others;

  bool has(int which) const { return attributes.contains(which) || others.contains(which); }
  template <class T = std::int64_t>
  T value(int which, std::size_t i = 0) const {
    auto const found = attributes.find(which);
    if (found == attributes.end() || found->second.bytes.size() < (i + 1) * sizeof(T))
      fail("an attribute is missing");
    T v;
    std::memcpy(&v, found->second.bytes.data() + i * sizeof(T), sizeof v);
    return v;
  }
  template <class T>
  T value_or(int which, T otherwise) const {
    return attributes.contains(which) ? value<T>(which) : otherwise;
  }
  description const& other(int which) const {
    auto const found = others.find(which);
    if (found == others.end() || found->second.empty()) fail("a descriptor is missing");
    return found->second.front();
  }
};
description& of(cudnnBackendDescriptor_t d) { return *static_cast<description*>(d); }

/// A tensor of four extents.
struct tensor {
  description const& of;
  std::int64_t id() const { return of.value(CUDNN_ATTR_TENSOR_UNIQUE_ID); }
  std::int64_t extent(std::size_t i) const { return of.value(CUDNN_ATTR_TENSOR_DIMENSIONS, i); }
  std::int64_t stride(std::size_t i) const { return of.value(CUDNN_ATTR_TENSOR_STRIDES, i); }
  cudnnDataType_t type() const { return of.value<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE); }
  bool is_virtual() const { return of.value_or(CUDNN_ATTR_TENSOR_IS_VIRTUAL, false); }
  bool is_by_value() const { return of.value_or(CUDNN_ATTR_TENSOR_IS_BY_VALUE, false); }
  bool is(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t c) const {
    return extent(0) == b && extent(1) == h && extent(2) == t && extent(3) == c;
  }
  bool is_number() const { return is(1, 1, 1, 1) && is_by_value() && type() == CUDNN_DATA_FLOAT; }
  std::int64_t size() const {
    return type() == CUDNN_DATA_BFLOAT16 || type() == CUDNN_DATA_HALF ? 2 : 4;
  }
};

/// One attention.
struct attention {
  description op;

  tensor part(int which) const { return {op.other(which)}; }
  tensor q() const { return part(CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC); }
  tensor k() const { return part(CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC); }
  tensor v() const { return part(CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC); }
  tensor o() const { return part(CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC); }
  tensor scale() const { return part(CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC); }
  bool has_logarithms() const { return op.has(CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC); }
  tensor logarithms() const { return part(CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC); }
  bool has_lengths() const { return op.has(CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_QDESC); }
  tensor query_lengths() const { return part(CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_QDESC); }
  tensor key_lengths() const { return part(CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_KVDESC); }
  bool is_masked() const { return op.has(CUDNN_ATTR_OPERATION_SDPA_FWD_SUBGRAPH); }
  description const& mask() const {
    return op.other(CUDNN_ATTR_OPERATION_SDPA_FWD_SUBGRAPH).other(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  }

  bool is_sound() const {
    auto const b = q().extent(0), h = q().extent(1), t = q().extent(2), d = q().extent(3),
               heads = k().extent(1), s = k().extent(2);
    auto const type = q().type();
    bool sound = (type == CUDNN_DATA_BFLOAT16 || type == CUDNN_DATA_HALF) && h % heads == 0 &&
                 d % 8 == 0 && k().is(b, heads, s, d) && v().is(b, heads, s, d) &&
                 o().is(b, h, t, d) && k().type() == type && v().type() == type &&
                 o().type() == type && scale().is_number();
    for (tensor const x : {q(), k(), v(), o()}) sound = sound && x.stride(3) == 1;
    if (has_logarithms())
      sound = sound && logarithms().is(b, h, t, 1) && logarithms().type() == CUDNN_DATA_FLOAT;
    if (has_lengths())
      for (tensor const x : {query_lengths(), key_lengths()})
        sound = sound && x.is(b, 1, 1, 1) && x.type() == CUDNN_DATA_INT32;
    if (is_masked()) {
      tensor const x{mask().other(CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_XDESC)},
          y{mask().other(CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_YDESC)},
          least{mask().other(CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_BDESC)};
      sound =
          sound && x.is_virtual() && y.is_virtual() && x.is(b, h, t, s) && y.is(b, h, t, s) &&
          least.is_number() &&
          x.id() == op.value(CUDNN_ATTR_OPERATION_SDPA_FWD_SUBGRAPH_INPUT_UID) &&
          y.id() == op.value(CUDNN_ATTR_OPERATION_SDPA_FWD_SUBGRAPH_OUTPUT_UID) &&
          mask().value<cudnnPointwiseMode_t>(
              CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_COMPARISON_MODE) == CUDNN_POINTWISE_CMP_GE;
    }
    return sound;
  }
};

/// An attention on its operands.
struct work {
  attention what;
  std::map<std::int64_t, unsigned char*> at;
  double scale, least;

  unsigned char* place(tensor const& x, std::int64_t b, std::int64_t h, std::int64_t t,
                       std::int64_t c) const {
    return at.at(x.id()) +
           x.size() * (b * x.stride(0) + h * x.stride(1) + t * x.stride(2) + c * x.stride(3));
  }
  double number(tensor const& x, std::int64_t b, std::int64_t h, std::int64_t t,
                std::int64_t c) const {
    std::uint16_t v;
    std::memcpy(&v, place(x, b, h, t, c), sizeof v);
    return double(x.type() == CUDNN_DATA_BFLOAT16 ? ptx::float_of_bf16(v) : ptx::float_of_half(v));
  }
  void require_allocations() const {
    auto const require = [&](tensor const& x) {
      std::int64_t last = 0;
      for (std::size_t i = 0; i < 4; ++i) last += (x.extent(i) - 1) * x.stride(i);
      unsigned char* const p = at.at(x.id());
      if (!pipe_ptx_holds(p, std::size_t((last + 1) * x.size()))) fail("no allocation");
      if (reinterpret_cast<std::uintptr_t>(p) %
              std::uintptr_t(x.of.value(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT)) !=
          0)
        fail("an operand is not aligned as was promised");
    };
    require(what.q()), require(what.k()), require(what.v()), require(what.o());
    if (what.has_logarithms()) require(what.logarithms());
    if (what.has_lengths()) require(what.query_lengths()), require(what.key_lengths());
  }

  std::int64_t length(tensor const& x, std::int64_t b) const {
    int n;
    std::memcpy(&n, place(x, b, 0, 0, 0), sizeof n);
    return n;
  }

  void compute() const {
    tensor const q = what.q(), k = what.k(), v = what.v(), o = what.o();
    std::int64_t const sharing = q.extent(1) / k.extent(1), d = q.extent(3);
    for (std::int64_t b = 0; b < q.extent(0); ++b) {
      std::int64_t const keys = what.has_lengths() ? length(what.key_lengths(), b) : k.extent(2);
      if (keys < 1 || keys > k.extent(2) ||
          (what.has_lengths() && length(what.query_lengths(), b) != q.extent(2)))
        fail("a sample has a length that it cannot have, or that a program must not rely on");
      std::vector<double> p(static_cast<std::size_t>(keys));
      for (std::int64_t h = 0; h < q.extent(1); ++h)
        for (std::int64_t t = 0; t < q.extent(2); ++t) {
          double most = -HUGE_VAL, sum = 0;
          for (std::int64_t s = 0; s < keys; ++s) {
            double& score = p[std::size_t(s)];
            score = 0;
            for (std::int64_t c = 0; c < d; ++c)
              score += number(q, b, h, t, c) * number(k, b, h / sharing, s, c);
            score = what.is_masked() && t < s ? least : score * scale;
            most = std::fmax(most, score);
          }
          for (double& score : p) sum += score = std::exp(score - most);
          for (std::int64_t c = 0; c < d; ++c) {
            double y = 0;
            for (std::int64_t s = 0; s < keys; ++s)
              y += p[std::size_t(s)] / sum * number(v, b, h / sharing, s, c);
            std::uint16_t const rounded =
                o.type() == CUDNN_DATA_BFLOAT16 ? ptx::bf16_of(float(y)) : ptx::half_of(float(y));
            std::memcpy(place(o, b, h, t, c), &rounded, sizeof rounded);
          }
          float const logarithm = float(most + std::log(sum));
          if (what.has_logarithms())
            std::memcpy(place(what.logarithms(), b, h, t, 0), &logarithm, sizeof logarithm);
        }
    }
  }
};

constexpr std::int64_t choices = 4;
/// Of an engine's configuration: which of the choices it is.
constexpr int choice_number = -1;

bool is_complete(description const& d) {
  auto const has = [&](auto... which) { return (d.has(which) && ...); };
  switch (int(d.type)) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      return has(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_ATTR_TENSOR_DATA_TYPE,
                 CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT) &&
             d.attributes.at(CUDNN_ATTR_TENSOR_DIMENSIONS).count == 4 &&
             d.attributes.at(CUDNN_ATTR_TENSOR_STRIDES).count == 4;
    case CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR: return attention{d}.is_sound();
    case CUDNN_BACKEND_OPERATION_DIAGONAL_BAND_MASK_DESCRIPTOR:
      return has(CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_XDESC,
                 CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_YDESC,
                 CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_COMPARISON_MODE);
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR: return has(CUDNN_ATTR_OPERATIONGRAPH_OPS);
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      return has(CUDNN_ATTR_ENGINEHEUR_MODE) &&
             d.other(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH).has(CUDNN_ATTR_OPERATIONGRAPH_HANDLE);
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      return has(CUDNN_ATTR_EXECUTION_PLAN_HANDLE) &&
             d.other(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG).value<int>(choice_number) != 2;
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
      return has(CUDNN_ATTR_VARIANT_PACK_WORKSPACE) &&
             d.attributes.at(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS).count ==
                 d.attributes.at(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS).count;
    default: return false;
  }
}

template <class T>
cudnnStatus_t give(void* to, std::int64_t* count, std::initializer_list<T> values) {
  *count = std::int64_t(values.size());
  std::copy(values.begin(), values.end(), static_cast<T*>(to));
  return CUDNN_STATUS_SUCCESS;
}
cudaStream_t& stream_of(cudnnHandle_t h) { return *reinterpret_cast<cudaStream_t*>(h); }

}  // namespace

extern "C" {

size_t cudnnGetVersion() { return CUDNN_VERSION; }
char const* cudnnGetErrorString(cudnnStatus_t s) {
  return s == CUDNN_STATUS_BAD_PARAM ? "a value that is not valid" : "an error of cuDNN";
}
cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  *handle = reinterpret_cast<cudnnHandle_t>(new cudaStream_t(nullptr));
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  delete &stream_of(handle);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  stream_of(handle) = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* d) {
  auto* const made = new description;
  made->type = type;
  *d = made;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t d) {
  delete &of(d);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t d,
                                       cudnnBackendAttributeName_t which,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       void const* values) {
  if (of(d).is_finished || of(d).has(which)) return CUDNN_STATUS_BAD_PARAM;
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    for (int64_t i = 0; i < count; ++i) {
      description const& other = of(static_cast<cudnnBackendDescriptor_t const*>(values)[i]);
      if (!other.is_finished) return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
      of(d).others[which].push_back(other);
    }
    return CUDNN_STATUS_SUCCESS;
  }
  std::size_t const size = type == CUDNN_TYPE_BOOLEAN ? 1
                           : type == CUDNN_TYPE_DATA_TYPE || type == CUDNN_TYPE_HEUR_MODE ||
                                   type == CUDNN_TYPE_POINTWISE_MODE
                               ? 4
                               : 8;
  auto const* const from = static_cast<unsigned char const*>(values);
  of(d).attributes[which] = {type, count, {from, from + size * std::size_t(count)}};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t d) {
  if (of(d).is_finished || !is_complete(of(d))) return CUDNN_STATUS_BAD_PARAM;
  of(d).is_finished = true;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const d,
                                       cudnnBackendAttributeName_t which,
                                       cudnnBackendAttributeType_t, int64_t asked, int64_t* count,
                                       void* to) {
  switch (int(which)) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS: {
      if (!of(d).is_finished) return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
      *count = choices;
      for (int64_t i = 0; i < std::min(asked, choices); ++i) {
        description& c = of(static_cast<cudnnBackendDescriptor_t*>(to)[i]);
        c.others[CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH] = {
            of(d).other(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH)};
        int const number = int(i);
        auto const* const bytes = reinterpret_cast<unsigned char const*>(&number);
        c.attributes[choice_number] = {CUDNN_TYPE_INT64, 1, {bytes, bytes + sizeof number}};
        c.is_finished = true;
      }
      return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_ATTR_ENGINECFG_ENGINE:
      *count = 1;
      of(*static_cast<cudnnBackendDescriptor_t*>(to)).attributes = of(d).attributes;
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
      if (of(d).value<int>(choice_number) == 0)
        return give(to, count,
                    {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC});
      return give(to, count, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE});
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE: {
      int const number =
          of(d).other(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG).value<int>(choice_number);
      return give(to, count, {int64_t(number == 1 ? 1 << 30 : 256)});
    }
    default: return CUDNN_STATUS_NOT_SUPPORTED;
  }
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack) {
  description const& choice = of(plan).other(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  if (!of(plan).is_finished || !of(pack).is_finished || choice.value<int>(choice_number) != 3)
    fail("what is not finished, or not deterministic, or needs much memory, is executed");
  auto w = std::make_unique<work>();
  w->what.op =
      choice.other(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH).other(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  for (int64_t i = 0; i < of(pack).attributes.at(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS).count; ++i)
    w->at[of(pack).value(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, std::size_t(i))] =
        of(pack).value<unsigned char*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, std::size_t(i));
  w->require_allocations();
  auto* const workspace = of(pack).value<unsigned char*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  if (reinterpret_cast<std::uintptr_t>(workspace) % 256 != 0 || !pipe_ptx_holds(workspace, 256))
    fail("the workspace is too small, not aligned, or lies in no allocation");
  // Numbers of the host are read now.
  float number;
  std::memcpy(&number, w->at.at(w->what.scale().id()), sizeof number);
  w->scale = double(number);
  if (w->what.is_masked()) {
    tensor const least{w->what.mask().other(CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_BDESC)};
    std::memcpy(&number, w->at.at(least.id()), sizeof number);
    w->least = double(number);
  }
  static std::vector<std::unique_ptr<work>> all;  // of graphs, too, which run again
  work* const kept = all.emplace_back(std::move(w)).get();
  cudaError_t const enqueued = cudaLaunchHostFunc(
      stream_of(handle), [](void* given) { static_cast<work*>(given)->compute(); }, kept);
  return enqueued == cudaSuccess ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}

}  // extern "C"
