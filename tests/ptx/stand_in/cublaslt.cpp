// SPDX-License-Identifier: BSL-1.0
//
// Stands in for cuBLASLt under a program whose PTX is executed on the CPU: the functions that the
// library opens by name. A product is computed from what its descriptors say, in columns, with sums
// in double precision and one rounding at the end; what the real library rounds, and which
// algorithm it chooses, cannot be known here. Operands must lie in allocations, and be aligned as
// was promised.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <type_traits>

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <pipe/backend/cuda/matmul/cublaslt_interface.hpp>

#include "ptx/numbers.hpp"
#include "ptx/runtime.hpp"

// What the library calls by its own declarations is what <cublasLt.h> declares.
namespace {

namespace lt = pp::cuda::lt;

/// Whether a value of one type is passed as one of the other.
template <class Ours, class Theirs>
constexpr bool is_passed_alike =
    sizeof(Ours) == sizeof(Theirs) && std::is_pointer_v<Ours> == std::is_pointer_v<Theirs> &&
    std::is_floating_point_v<Ours> == std::is_floating_point_v<Theirs>;
template <class Ours, class Theirs>
constexpr bool is_called_alike = false;
template <class R, class... A, class S, class... B>
  requires(sizeof...(A) == sizeof...(B))
constexpr bool is_called_alike<R (*)(A...), S(B...)> =
    (is_passed_alike<R, S> && ... && is_passed_alike<A, B>);
using f = lt::functions;
static_assert(is_called_alike<decltype(f::create), decltype(cublasLtCreate)>);
static_assert(is_called_alike<decltype(f::destroy), decltype(cublasLtDestroy)>);
static_assert(is_called_alike<decltype(f::text_of), decltype(cublasLtGetStatusString)>);
static_assert(is_called_alike<decltype(f::create_operation), decltype(cublasLtMatmulDescCreate)>);
static_assert(is_called_alike<decltype(f::destroy_operation), decltype(cublasLtMatmulDescDestroy)>);
static_assert(
    is_called_alike<decltype(f::set_operation), decltype(cublasLtMatmulDescSetAttribute)>);
static_assert(is_called_alike<decltype(f::create_layout), decltype(cublasLtMatrixLayoutCreate)>);
static_assert(is_called_alike<decltype(f::destroy_layout), decltype(cublasLtMatrixLayoutDestroy)>);
static_assert(
    is_called_alike<decltype(f::create_preference), decltype(cublasLtMatmulPreferenceCreate)>);
static_assert(
    is_called_alike<decltype(f::destroy_preference), decltype(cublasLtMatmulPreferenceDestroy)>);
static_assert(
    is_called_alike<decltype(f::set_preference), decltype(cublasLtMatmulPreferenceSetAttribute)>);
static_assert(is_called_alike<decltype(f::choose), decltype(cublasLtMatmulAlgoGetHeuristic)>);
static_assert(is_called_alike<decltype(f::multiply), decltype(cublasLtMatmul)>);

template <class Ours, class Theirs>
constexpr bool is_number_alike(Ours ours, Theirs theirs) {
  return int(ours) == int(theirs);
}
static_assert(is_number_alike(lt::status::success, CUBLAS_STATUS_SUCCESS));
static_assert(is_number_alike(lt::status::not_supported, CUBLAS_STATUS_NOT_SUPPORTED));
static_assert(is_number_alike(lt::number::fp32, CUDA_R_32F));
static_assert(is_number_alike(lt::number::fp16, CUDA_R_16F));
static_assert(is_number_alike(lt::number::bf16, CUDA_R_16BF));
static_assert(is_number_alike(lt::compute_type::fp32, CUBLAS_COMPUTE_32F));
static_assert(is_number_alike(lt::compute_type::tf32, CUBLAS_COMPUTE_32F_FAST_TF32));
static_assert(is_number_alike(lt::transposition::none, CUBLAS_OP_N));
static_assert(is_number_alike(lt::transposition::transposed, CUBLAS_OP_T));
using of_operation = lt::operation_field;
static_assert(is_number_alike(of_operation::transposition_a, CUBLASLT_MATMUL_DESC_TRANSA));
static_assert(is_number_alike(of_operation::transposition_b, CUBLASLT_MATMUL_DESC_TRANSB));
static_assert(is_number_alike(of_operation::epilogue, CUBLASLT_MATMUL_DESC_EPILOGUE));
static_assert(is_number_alike(of_operation::bias, CUBLASLT_MATMUL_DESC_BIAS_POINTER));
static_assert(is_number_alike(of_operation::aux, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER));
static_assert(is_number_alike(of_operation::aux_leading, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD));
static_assert(is_number_alike(lt::epilogue::none, CUBLASLT_EPILOGUE_DEFAULT));
static_assert(is_number_alike(lt::epilogue::bias, CUBLASLT_EPILOGUE_BIAS));
static_assert(is_number_alike(lt::epilogue::relu_bias, CUBLASLT_EPILOGUE_RELU_BIAS));
static_assert(is_number_alike(lt::epilogue::gelu_aux, CUBLASLT_EPILOGUE_GELU_AUX));
static_assert(is_number_alike(lt::epilogue::gelu_aux_bias, CUBLASLT_EPILOGUE_GELU_AUX_BIAS));
static_assert(is_number_alike(lt::epilogue::gelu_gradient, CUBLASLT_EPILOGUE_DGELU));
using preferred = lt::preference_field;
static_assert(is_number_alike(preferred::workspace_bytes,
                              CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES));
static_assert(is_number_alike(preferred::reductions, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK));
static_assert(is_number_alike(preferred::alignment_a, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES));
static_assert(is_number_alike(preferred::alignment_b, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES));
static_assert(is_number_alike(preferred::alignment_c, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES));
static_assert(is_number_alike(preferred::alignment_d, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES));
static_assert(is_number_alike(lt::reduces_in_compute_type, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));

using their_choice = cublasLtMatmulHeuristicResult_t;
static_assert(sizeof(lt::algorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(lt::choice) == sizeof(their_choice));
static_assert(offsetof(lt::choice, algorithm) == offsetof(their_choice, algo));
static_assert(offsetof(lt::choice, workspace_bytes) == offsetof(their_choice, workspaceSize));
static_assert(offsetof(lt::choice, state) == offsetof(their_choice, state));
static_assert(offsetof(lt::choice, waves) == offsetof(their_choice, wavesCount));

struct layout {
  cudaDataType_t type;
  std::int64_t rows, columns, leading;
};
struct operation {
  cublasComputeType_t computes;
  cublasOperation_t of_a = CUBLAS_OP_N, of_b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void const* bias = nullptr;
  void* aux = nullptr;
  std::int64_t aux_leading = 0;

  bool is(cublasLtEpilogue_t one) const { return epilogue == one; }
  bool has_bias() const {
    return is(CUBLASLT_EPILOGUE_BIAS) || is(CUBLASLT_EPILOGUE_GELU_AUX_BIAS);
  }
  bool is_gelu() const {
    return is(CUBLASLT_EPILOGUE_GELU_AUX) || is(CUBLASLT_EPILOGUE_GELU_AUX_BIAS);
  }
  bool is_gelu_gradient() const { return is(CUBLASLT_EPILOGUE_DGELU); }
  bool is_known() const {
    return has_bias() || is_gelu() || is_gelu_gradient() || is(CUBLASLT_EPILOGUE_DEFAULT);
  }
};

/// GELU by the tanh formula, and its derivative.
double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double gelu_gradient(double x) {
  double const scale = std::sqrt(2 / M_PI), t = std::tanh(scale * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * scale * (1 + 3 * 0.044715 * x * x);
}

struct preference {
  std::uint64_t workspace = 0;
  std::uint32_t reduction = CUBLASLT_REDUCTION_SCHEME_MASK;
  std::uint32_t alignment[4] = {256, 256, 256, 256};
};
/// What an algorithm remembers of the preferences that it was chosen by.
struct algorithm {
  std::uint64_t workspace;
  std::uint32_t alignment[4];
};
static_assert(sizeof(algorithm) <= sizeof(cublasLtMatmulAlgo_t));

/// A matrix in columns, as numbers.
struct matrix {
  layout of;
  unsigned char* bytes;
  bool turned = false, is_tf32 = false;

  unsigned char* at(std::int64_t i, std::int64_t j) const {
    std::int64_t const place = turned ? j + i * of.leading : i + j * of.leading;
    return bytes + place * (of.type == CUDA_R_32F ? 4 : 2);
  }
  double operator()(std::int64_t i, std::int64_t j) const {
    if (of.type == CUDA_R_32F) {
      float v;
      std::memcpy(&v, at(i, j), sizeof v);
      return is_tf32 ? double(std::bit_cast<float>(ptx::tf32_of(v))) : double(v);
    }
    std::uint16_t v;
    std::memcpy(&v, at(i, j), sizeof v);
    return double(of.type == CUDA_R_16BF ? ptx::float_of_bf16(v) : ptx::float_of_half(v));
  }
  void set(std::int64_t i, std::int64_t j, double value) const {
    float const v = float(value);
    std::uint16_t const small = of.type == CUDA_R_16BF ? ptx::bf16_of(v) : ptx::half_of(v);
    if (of.type == CUDA_R_32F)
      std::memcpy(at(i, j), &v, sizeof v);
    else
      std::memcpy(at(i, j), &small, sizeof small);
  }
  std::size_t size() const {
    return std::size_t((of.columns - 1) * of.leading + of.rows) * (of.type == CUDA_R_32F ? 4 : 2);
  }
};

struct product {
  operation what;
  matrix a, b, c, d;
  float alpha, beta;

  matrix aux() const {
    return {{d.of.type, d.of.rows, d.of.columns, what.aux_leading},
            static_cast<unsigned char*>(what.aux)};
  }
  /// What an epilogue adds, or makes of A.
  matrix bias() const {
    return {{d.of.type, d.of.rows, 1, d.of.rows},
            static_cast<unsigned char*>(const_cast<void*>(what.bias))};
  }
  void compute() const {
    std::int64_t const depth = a.turned ? a.of.rows : a.of.columns;
    for (std::int64_t j = 0; j < d.of.columns; ++j)
      for (std::int64_t i = 0; i < d.of.rows; ++i) {
        double sum = 0;
        for (std::int64_t k = 0; k < depth; ++k) sum += a(i, k) * b(k, j);
        sum *= double(alpha);
        if (beta != 0) sum += double(beta) * c(i, j);
        if (what.has_bias()) sum += bias()(i, 0);
        if (what.is_gelu()) {
          aux().set(i, j, sum);
          sum = gelu(sum);
        }
        if (what.is_gelu_gradient()) sum *= gelu_gradient(aux()(i, j));
        d.set(i, j, sum);
      }
  }
};

[[noreturn]] void fail(char const* what) {
  std::fprintf(stderr, "cuBLASLt: %s\n", what);
  std::abort();
}
void require(matrix const& m, std::uint32_t alignment, char const* what) {
  if (reinterpret_cast<std::uintptr_t>(m.bytes) % alignment != 0) fail(what);
  if (!pipe_ptx_holds(m.bytes, m.size())) fail(what);
}
template <class T>
cublasStatus_t take(T& to, void const* from, std::size_t bytes) {
  if (bytes != sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&to, from, bytes);
  return CUBLAS_STATUS_SUCCESS;
}
operation& of(cublasLtMatmulDesc_t d) { return *reinterpret_cast<operation*>(d); }
layout const& of(cublasLtMatrixLayout_t d) { return *reinterpret_cast<layout const*>(d); }
preference& of(cublasLtMatmulPreference_t d) { return *reinterpret_cast<preference*>(d); }

}  // namespace

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = reinterpret_cast<cublasLtHandle_t>(new int);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete reinterpret_cast<int*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}
char const* cublasLtGetStatusString(cublasStatus_t s) {
  return s == CUBLAS_STATUS_INVALID_VALUE ? "a value that is not valid" : "an error of cuBLASLt";
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* d, cublasComputeType_t computes,
                                        cudaDataType_t scale) {
  if (scale != CUDA_R_32F ||
      (computes != CUBLAS_COMPUTE_32F && computes != CUBLAS_COMPUTE_32F_FAST_TF32))
    return CUBLAS_STATUS_INVALID_VALUE;
  *d = reinterpret_cast<cublasLtMatmulDesc_t>(new operation{computes});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d) {
  delete &of(d);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d,
                                              cublasLtMatmulDescAttributes_t which,
                                              void const* value, std::size_t bytes) {
  switch (int(which)) {
    case CUBLASLT_MATMUL_DESC_TRANSA: return take(of(d).of_a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB: return take(of(d).of_b, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return take(of(d).epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return take(of(d).bias, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER: return take(of(d).aux, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD: return take(of(d).aux_leading, value, bytes);
    default: return CUBLAS_STATUS_INVALID_VALUE;
  }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* l, cudaDataType type,
                                          std::uint64_t rows, std::uint64_t columns,
                                          std::int64_t leading) {
  if (rows == 0 || columns == 0 || leading < std::int64_t(rows)) return CUBLAS_STATUS_INVALID_VALUE;
  *l = reinterpret_cast<cublasLtMatrixLayout_t>(
      new layout{type, std::int64_t(rows), std::int64_t(columns), leading});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l) {
  delete &of(l);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* p) {
  *p = reinterpret_cast<cublasLtMatmulPreference_t>(new preference);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p) {
  delete &of(p);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p,
                                                    cublasLtMatmulPreferenceAttributes_t which,
                                                    void const* value, std::size_t bytes) {
  switch (int(which)) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES: return take(of(p).workspace, value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK: return take(of(p).reduction, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES: return take(of(p).alignment[0], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES: return take(of(p).alignment[1], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES: return take(of(p).alignment[2], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES: return take(of(p).alignment[3], value, bytes);
    default: return CUBLAS_STATUS_INVALID_VALUE;
  }
}

/// Rows that are not whole words are refused, and activations of rows that are not whole
/// accesses: a library may refuse what it likes, and a program must go on by itself.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t d,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t to,
                                              cublasLtMatmulPreference_t p, int asked,
                                              cublasLtMatmulHeuristicResult_t* found, int* count) {
  auto const shape = [](layout const& l, cublasOperation_t o, bool first) {
    return first == (o == CUBLAS_OP_N) ? l.rows : l.columns;
  };
  operation const& o = of(d);
  if (asked < 1 || shape(of(a), o.of_a, false) != shape(of(b), o.of_b, true) ||
      shape(of(a), o.of_a, true) != of(to).rows || shape(of(b), o.of_b, false) != of(to).columns)
    return CUBLAS_STATUS_INVALID_VALUE;
  *count = 0;
  if (!o.is_known()) return CUBLAS_STATUS_INVALID_VALUE;
  if (o.is_gelu() || o.is_gelu_gradient()) {
    if (o.aux == nullptr || o.aux_leading < of(to).rows) return CUBLAS_STATUS_INVALID_VALUE;
    if (of(to).type == CUDA_R_32F || o.aux_leading % 8 != 0) return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  algorithm chosen{of(p).workspace, {}};
  std::memcpy(chosen.alignment, of(p).alignment, sizeof chosen.alignment);
  for (std::uint32_t const alignment : chosen.alignment)
    if (alignment < 4) return CUBLAS_STATUS_NOT_SUPPORTED;
  *found = {};
  std::memcpy(&found->algo, &chosen, sizeof chosen);
  found->workspaceSize = chosen.workspace;
  found->state = CUBLAS_STATUS_SUCCESS;
  *count = 1;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t,
                                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                       cublasLtMatmulAlgo_t const* chosen,
                                       cublasLtMatmulHeuristicResult_t* result) {
  *result = {};
  result->algo = *chosen;
  result->state = CUBLAS_STATUS_SUCCESS;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t d, void const* alpha,
                              void const* a, cublasLtMatrixLayout_t layout_a, void const* b,
                              cublasLtMatrixLayout_t layout_b, void const* beta, void const* c,
                              cublasLtMatrixLayout_t layout_c, void* to,
                              cublasLtMatrixLayout_t layout_d, cublasLtMatmulAlgo_t const* chosen,
                              void* workspace, std::size_t bytes, cudaStream_t stream) {
  auto const bytes_at = [](void const* p) {
    return static_cast<unsigned char*>(const_cast<void*>(p));
  };
  operation const& o = of(d);
  bool const is_tf32 = o.computes == CUBLAS_COMPUTE_32F_FAST_TF32;
  static std::deque<product> products;  // of graphs, too, which run again
  auto* const p =
      &products.emplace_back(product{o,
                                     {of(layout_a), bytes_at(a), o.of_a != CUBLAS_OP_N, is_tf32},
                                     {of(layout_b), bytes_at(b), o.of_b != CUBLAS_OP_N, is_tf32},
                                     {of(layout_c), bytes_at(c)},
                                     {of(layout_d), bytes_at(to)},
                                     *static_cast<float const*>(alpha),
                                     *static_cast<float const*>(beta)});
  algorithm by;
  std::memcpy(&by, chosen, sizeof by);
  require(p->a, by.alignment[0], "A is not aligned as was promised, or lies in no allocation");
  require(p->b, by.alignment[1], "B is not aligned as was promised, or lies in no allocation");
  require(p->c, by.alignment[2], "C is not aligned as was promised, or lies in no allocation");
  require(p->d, by.alignment[3], "D is not aligned as was promised, or lies in no allocation");
  if (o.is_gelu() || o.is_gelu_gradient())
    require(p->aux(), 16, "AUX is not aligned, or lies in no allocation");
  if (bytes < by.workspace || reinterpret_cast<std::uintptr_t>(workspace) % 256 != 0 ||
      !pipe_ptx_holds(workspace, bytes))
    fail("the workspace is too small, not aligned, or lies in no allocation");
  cudaError_t const enqueued =
      cudaLaunchHostFunc(stream, [](void* given) { static_cast<product*>(given)->compute(); }, p);
  return enqueued == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // extern "C"
