// SPDX-License-Identifier: BSL-1.0
//
// Stands in for CUDA's runtime library under a program that nvcc compiled for PTX alone: kernels
// are read from the program's own fat binary and executed on the CPU. What is put on a stream is
// done when it is waited for: see device/tasks.hpp. An access that no program may make is printed
// and ends the launch; every later call returns cudaErrorLaunchFailure.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

#include "counts.hpp"
#include "device/tasks.hpp"
#include "mutants.hpp"
#include "runtime.hpp"
#include "warp.hpp"

namespace {

struct fat_header {
  std::uint32_t magic;
  std::uint16_t version, header_bytes;
  std::uint64_t bytes;
};
struct fat_entry {
  std::uint16_t kind, flags_of_kind;
  std::uint32_t header_bytes;
  std::uint64_t bytes;
  std::uint32_t compressed_bytes;
};
struct fat_wrapper {
  std::int32_t magic, version;
  unsigned char const* data;
  void* file;
};
constexpr std::uint16_t ptx_kind = 1;
constexpr int multiprocessors = 132;

struct runtime {
  ptx::count_table counts;
  ptx::global_memory memory;
  std::map<std::string, ptx::kernel> kernels;
  std::map<void const*, std::string> names;  // of kernels, by the host's function
  std::vector<std::string> texts;            // not read yet
  fake_gpu::machine tasks;
  cudaError_t last = cudaSuccess;
  bool broken = false;
  int order = 0;

  struct call {
    dim3 grid, threads;
    std::size_t shared = 0;
    cudaStream_t stream = nullptr;
  };
  std::vector<call> calls;

  runtime() {
    tasks.is_random_in_graphs = true;
    if (char const* o = std::getenv("PIPE_PTX_ORDER"); o != nullptr) order = std::atoi(o);
  }
  cudaError_t fail(cudaError_t e) { return last = e; }
  /// Of a call: what it returns.
  cudaError_t answer(fake_gpu::refusal r) {
    using fake_gpu::refusal;
    switch (r) {
      case refusal::none: return broken ? cudaErrorLaunchFailure : cudaSuccess;
      case refusal::unsupported: return fail(cudaErrorStreamCaptureUnsupported);
      case refusal::invalidated: return fail(cudaErrorStreamCaptureInvalidated);
      case refusal::unjoined: return fail(cudaErrorStreamCaptureUnjoined);
      case refusal::isolation: return fail(cudaErrorStreamCaptureIsolation);
      case refusal::captured: return fail(cudaErrorCapturedEvent);
      case refusal::unmatched: return fail(cudaErrorStreamCaptureUnmatched);
    }
    return cudaErrorUnknown;
  }
  /// Of a call that no capture may see.
  cudaError_t answer_outside() { return answer(tasks.refuse_under_capture()); }
};
runtime& here() {
  static runtime r;
  return r;
}
/// By any of its names.
bool is_default(cudaStream_t s) {
  return s == nullptr || s == cudaStreamLegacy || s == cudaStreamPerThread;
}
fake_gpu::stream* stream_of(cudaStream_t s) { return reinterpret_cast<fake_gpu::stream*>(s); }
fake_gpu::event* event_of(cudaEvent_t e) { return reinterpret_cast<fake_gpu::event*>(e); }
fake_gpu::graph* graph_of(cudaGraph_t g) { return reinterpret_cast<fake_gpu::graph*>(g); }
cudaGraphEdgeData edge_of(fake_gpu::node const& to, int from) {
  cudaGraphEdgeData data{};
  if (!to.programmatic.contains(from)) return data;
  data.from_port = cudaGraphKernelNodePortProgrammatic;
  data.type = cudaGraphDependencyTypeProgrammatic;
  return data;
}

/// The default stream does what it is given at once, and must not while there is a capture.
cudaError_t put(cudaStream_t s, std::function<void()> work,
                fake_gpu::node_kind kind = fake_gpu::node_kind::other, bool is_early = false) {
  if (is_default(s)) {
    if (cudaError_t const e = here().answer_outside(); e != cudaSuccess) return e;
    work();
    return cudaSuccess;
  }
  if (cudaError_t const e = here().answer(fake_gpu::machine::check(stream_of(s))); e != cudaSuccess)
    return e;
  stream_of(s)->put(std::move(work), kind, is_early);
  return cudaSuccess;
}

/// The kernels of the texts that came since, read when one is asked for.
void read_texts() {
  for (std::string const& text : here().texts) try {
      here().kernels.merge(ptx::read(text.c_str()));
    } catch (ptx::error const& e) {
      std::fprintf(stderr, "%s\n", e.what());
      std::abort();
    }
  here().texts.clear();
}

}  // namespace

extern "C" {

bool pipe_ptx_holds(void const* p, std::size_t bytes) {
  return here().memory.holds(reinterpret_cast<std::uint64_t>(p), bytes);
}

void pipe_ptx_run_mutants() {
  read_texts();
  ptx::run_mutants(here().kernels);
}

void** __cudaRegisterFatBinary(void* p) {
  auto const* const wrapper = static_cast<fat_wrapper const*>(p);
  fat_header header;
  std::memcpy(&header, wrapper->data, sizeof header);
  unsigned char const *at = wrapper->data + header.header_bytes, *const end = at + header.bytes;
  while (at < end) {
    fat_entry entry;
    std::memcpy(&entry, at, sizeof entry);
    if (entry.kind == ptx_kind) {
      if (entry.compressed_bytes != 0) {
        std::fprintf(stderr, "PTX is compressed: compile with --no-compress\n");
        std::abort();
      }
      here().texts.emplace_back(reinterpret_cast<char const*>(at) + entry.header_bytes,
                                entry.bytes);
    }
    at += entry.header_bytes + entry.bytes;
  }
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) { return 1; }
/// A variable that a kernel accesses has no place, which reading the kernel reports; those that
/// none does, such as the function objects of CUDA's library, need none.
void __cudaRegisterVar(void**, char*, char*, char const*, int, std::size_t, int, int) {}

void __cudaRegisterFunction(void**, char const* function, char*, char const* name, int, uint3*,
                            uint3*, dim3*, dim3*, int*) {
  here().names[function] = name;
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 threads, std::size_t shared,
                                     cudaStream_t stream) {
  here().calls.push_back({grid, threads, shared, stream});
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* threads, std::size_t* shared,
                                       void* stream) {
  runtime::call const c = here().calls.back();
  here().calls.pop_back();
  *grid = c.grid, *threads = c.threads, *shared = c.shared;
  *static_cast<cudaStream_t*>(stream) = c.stream;
  return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, void const* function) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}

cudaError_t cudaLaunchKernelExC(cudaLaunchConfig_t const* config, void const* function,
                                void** arguments) {
  runtime& r = here();
  read_texts();
  dim3 const grid = config->gridDim, threads = config->blockDim;
  std::size_t const shared = config->dynamicSmemBytes;
  bool is_early = false;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    cudaLaunchAttribute const& a = config->attrs[i];
    if (a.id != cudaLaunchAttributeProgrammaticStreamSerialization)
      return r.fail(cudaErrorInvalidValue);
    is_early = a.val.programmaticStreamSerializationAllowed != 0;
  }
  auto const name = r.names.find(function);
  auto const k = name == r.names.end() ? r.kernels.end() : r.kernels.find(name->second);
  if (k == r.kernels.end()) return r.fail(cudaErrorInvalidDeviceFunction);
  std::vector<unsigned char> parameters(k->second.parameter_bytes);
  for (std::size_t i = 0; i < k->second.in_order.size(); ++i)
    std::memcpy(parameters.data() + k->second.in_order[i].offset, arguments[i],
                k->second.in_order[i].bytes);
  auto run = [&r, &kernel = k->second, grid, threads, shared, is_early,
              parameters = std::move(parameters)] {
    if (r.broken) return;
    try {
      ptx::dimensions const g{grid.x, grid.y, grid.z}, t{threads.x, threads.y, threads.z};
      ptx::sample const s =
          r.counts.is_asked() ? r.counts.begin(kernel, g, t, shared) : ptx::sample{};
      ptx::launch(kernel, r.memory, g, t, shared, parameters.data(), r.order, s, is_early);
    } catch (ptx::error const& e) {
      std::fprintf(stderr, "%s\n", e.what());
      r.broken = true;
    }
  };
  return put(config->stream, std::move(run), fake_gpu::node_kind::kernel, is_early);
}
cudaError_t cudaLaunchKernel(void const* function, dim3 grid, dim3 threads, void** arguments,
                             std::size_t shared, cudaStream_t stream) {
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = threads;
  config.dynamicSmemBytes = shared;
  config.stream = stream;
  return cudaLaunchKernelExC(&config, function, arguments);
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 threads, void** arguments,
                               std::size_t shared, cudaStream_t stream) {
  return cudaLaunchKernel(kernel, grid, threads, arguments, shared, stream);
}

cudaError_t cudaGetLastError() {
  if (here().broken) return cudaErrorLaunchFailure;
  return std::exchange(here().last, cudaSuccess);
}
cudaError_t cudaPeekAtLastError() { return here().broken ? cudaErrorLaunchFailure : here().last; }
char const* cudaGetErrorString(cudaError_t e) {
  return e == cudaErrorLaunchFailure              ? "a kernel did what no program may do"
         : e >= cudaErrorStreamCaptureUnsupported ? "not under capture"
                                                  : "an error of CUDA";
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;  // there is no other
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaErrorInvalidDevice; }
// What Thrust and CUB ask for.
char const* cudaGetErrorName(cudaError_t e) { return cudaGetErrorString(e); }
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int) {
  switch (int(which)) {
    case cudaDevAttrMultiProcessorCount: *value = multiprocessors; break;
    case cudaDevAttrComputeCapabilityMajor: *value = 9; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = 48 * 1024; break;
    case cudaDevAttrMaxThreadsPerBlock: *value = 1024; break;
    case cudaDevAttrWarpSize: *value = 32; break;
    default: *value = 0;
  }
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, void const*, int,
                                                                   std::size_t, unsigned) {
  *blocks = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int) {
  *p = cudaDeviceProp{};
  std::strcpy(p->name, "PTX on a CPU");
  p->major = 9;
  p->sharedMemPerBlockOptin = 227 * 1024;
  p->multiProcessorCount = multiprocessors;
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(void const*, cudaFuncAttribute, int) { return cudaSuccess; }
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* a, void const*) {
  *a = cudaFuncAttributes{};
  a->binaryVersion = a->ptxVersion = 90;
  return cudaSuccess;
}

/// cuTensorMapEncodeTiled, which checks what the driver's does.
static int encode_tiled(void* to, int type, std::uint32_t rank, void* base,
                        std::uint64_t const* extents, std::uint64_t const* strides,
                        std::uint32_t const* box, std::uint32_t const* element_strides,
                        int interleave, int swizzle, int, int fill) {
  constexpr int half = 6, bfloat16 = 9, invalid = 1;
  if ((type != half && type != bfloat16) || rank > 5 || interleave != 0 || fill != 0)
    return invalid;
  ptx::tensor_map m;
  m.magic = ptx::tensor_map::valid;
  m.base = reinterpret_cast<std::uint64_t>(base);
  m.rank = std::uint8_t(rank), m.element_bytes = 2, m.swizzle = std::uint8_t(swizzle);
  for (std::uint32_t d = 0; d < rank; ++d) {
    if (element_strides[d] != 1) return invalid;
    m.extents[d] = extents[d], m.box[d] = std::uint16_t(box[d]);
    if (d + 1 < rank) m.strides[d] = strides[d];
  }
  if (reinterpret_cast<std::uint64_t>(to) % 64 != 0) return invalid;
  if (char const* const what = ptx::fault_of(m); what != nullptr) {
    std::fprintf(stderr, "cuTensorMapEncodeTiled: %s\n", what);
    return invalid;
  }
  std::memcpy(to, &m, sizeof m);
  return 0;
}
cudaError_t cudaGetDriverEntryPointByVersion(char const* symbol, void** f, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  bool const is_known = std::string(symbol) == "cuTensorMapEncodeTiled";
  *f = is_known ? reinterpret_cast<void*>(encode_tiled) : nullptr;
  *result = is_known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* a, void const* p) {
  *a = cudaPointerAttributes{};
  a->type = pipe_ptx_holds(p, 1) ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered;
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** p, std::size_t bytes) {
  if (cudaError_t const e = here().answer_outside(); e != cudaSuccess) return e;
  *p = here().memory.allocate(bytes, !here().counts.samples());
  return cudaSuccess;
}
cudaError_t cudaFree(void* p) {
  return here().memory.release(p) ? cudaSuccess : here().fail(cudaErrorInvalidValue);
}
cudaError_t cudaMallocHost(void** p, std::size_t bytes) { return cudaMalloc(p, bytes); }
cudaError_t cudaFreeHost(void* p) { return cudaFree(p); }
cudaError_t cudaMemcpyAsync(void* to, void const* from, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t s) {
  return put(s, [=] { std::memcpy(to, from, bytes); }, fake_gpu::node_kind::copy);
}
cudaError_t cudaMemsetAsync(void* p, int value, std::size_t bytes, cudaStream_t s) {
  if (here().counts.samples() && value == 0) return cudaSuccess;  // as it was allocated
  return put(s, [=] { std::memset(p, value, bytes); }, fake_gpu::node_kind::copy);
}
cudaError_t cudaMemcpy(void* to, void const* from, std::size_t bytes, cudaMemcpyKind kind) {
  return cudaMemcpyAsync(to, from, bytes, kind, nullptr);
}
cudaError_t cudaMemset(void* p, int value, std::size_t bytes) {
  return cudaMemsetAsync(p, value, bytes, nullptr);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0, *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned flags) {
  return cudaStreamCreateWithPriority(s, flags, 0);
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* s, unsigned, int priority) {
  auto* const made = new fake_gpu::stream;
  made->priority = priority;
  here().tasks.streams.push_back(made);
  *s = reinterpret_cast<cudaStream_t>(made);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t s) {
  std::erase(here().tasks.streams, stream_of(s));
  delete stream_of(s);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t s) {
  if (cudaError_t const e = here().answer_outside(); e != cudaSuccess) return e;
  if (!is_default(s) && !here().tasks.finish(stream_of(s))) std::abort();
  return here().broken ? cudaErrorLaunchFailure : cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  if (cudaError_t const e = here().answer_outside(); e != cudaSuccess) return e;
  for (fake_gpu::stream* s : here().tasks.streams)
    if (!here().tasks.finish(s)) std::abort();
  return here().broken ? cudaErrorLaunchFailure : cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned) {
  return here().answer(here().tasks.wait(stream_of(s), event_of(e)));
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned) {
  *e = reinterpret_cast<cudaEvent_t>(new fake_gpu::event);
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t e) {
  delete event_of(e);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
  fake_gpu::event* const v = event_of(e);
  if (!is_default(s)) return here().answer(fake_gpu::machine::record(v, stream_of(s)));
  return put(s, [v, n = ++v->promised] { v->reached = n; });
}
cudaError_t cudaEventSynchronize(cudaEvent_t e) {
  if (cudaError_t const r = here().answer_outside(); r != cudaSuccess) return r;
  if (event_of(e)->in != nullptr) return here().answer(fake_gpu::refusal::captured);
  here().tasks.reach(event_of(e));
  return here().broken ? cudaErrorLaunchFailure : cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t s, cudaHostFn_t f, void* given) {
  if (here().counts.samples()) return cudaSuccess;
  return put(s, [=] { f(given); });
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t, cudaEvent_t) {
  *ms = 1;
  return cudaSuccess;
}

// ---- graphs ----

cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode) {
  return here().answer(here().tasks.begin_capture(stream_of(s)));
}
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t* graph) {
  std::unique_ptr<fake_gpu::graph> made;
  cudaError_t const e = here().answer(here().tasks.end_capture(stream_of(s), made));
  *graph = reinterpret_cast<cudaGraph_t>(made.release());
  return e;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t g, cudaGraphNode_t* nodes, std::size_t* count) {
  auto& all = graph_of(g)->nodes;
  if (nodes != nullptr)
    for (std::size_t i = 0; i < *count && i < all.size(); ++i)
      nodes[i] = reinterpret_cast<cudaGraphNode_t>(&all[i]);
  if (nodes == nullptr || *count > all.size()) *count = all.size();
  return cudaSuccess;
}
cudaError_t cudaGraphGetEdges(cudaGraph_t g, cudaGraphNode_t* from, cudaGraphNode_t* to,
                              cudaGraphEdgeData* data, std::size_t* count) {
  auto& all = graph_of(g)->nodes;
  std::size_t n = 0;
  for (fake_gpu::node& x : all)
    for (int const before : x.after) {
      if (from != nullptr && n < *count) {
        from[n] = reinterpret_cast<cudaGraphNode_t>(&all[std::size_t(before)]);
        to[n] = reinterpret_cast<cudaGraphNode_t>(&x);
        data[n] = edge_of(x, before);
      }
      ++n;
    }
  if (from == nullptr || *count > n) *count = n;
  return cudaSuccess;
}
cudaError_t cudaGraphRemoveDependencies(cudaGraph_t, cudaGraphNode_t const* from,
                                        cudaGraphNode_t const* to, cudaGraphEdgeData const* data,
                                        std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    auto& later = *reinterpret_cast<fake_gpu::node*>(to[i]);
    int const before = reinterpret_cast<fake_gpu::node*>(from[i])->number;
    cudaGraphEdgeData const found = edge_of(later, before);
    if (std::memcmp(&data[i], &found, sizeof found) != 0 || later.after.erase(before) == 0)
      return here().fail(cudaErrorInvalidValue);
    later.programmatic.erase(before);
  }
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t g, unsigned long long) {
  if (cudaError_t const e = here().answer_outside(); e != cudaSuccess) return e;
  *made = reinterpret_cast<cudaGraphExec_t>(new fake_gpu::graph(*graph_of(g)));
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t g, cudaStream_t s) {
  if (cudaError_t const e = here().answer_outside(); e != cudaSuccess) return e;
  here().tasks.launch(*reinterpret_cast<fake_gpu::graph*>(g), stream_of(s));
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t g) {
  delete graph_of(g);
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t g) {
  delete reinterpret_cast<fake_gpu::graph*>(g);
  return cudaSuccess;
}

}  // extern "C"
