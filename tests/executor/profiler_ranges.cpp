// SPDX-License-Identifier: BSL-1.0
//
// Ranges and names as a tool receives them from NVTX itself, which it enters as a profiler does.
#include "catch.hpp"

#include <map>
#include <string>
#include <vector>

#include <pipe/runtime/cuda/profiler_ranges.cuh>

namespace {

/// What the tool has received.
struct seen {
  std::map<std::string, int> registered;
  std::vector<std::string> pushed;
  int pops = 0;
  std::string domain;
  std::vector<std::string> streams;
} received;

template <class Function>
NvtxFunctionPointer pointer(Function* f) {
  return reinterpret_cast<NvtxFunctionPointer>(f);
}
nvtxDomainHandle_t create(char const* name) {
  received.domain = name;
  return reinterpret_cast<nvtxDomainHandle_t>(&received);
}
nvtxStringHandle_t name_string(nvtxDomainHandle_t, char const* text) {
  ++received.registered[text];
  return reinterpret_cast<nvtxStringHandle_t>(
      const_cast<std::string*>(&received.registered.find(text)->first));
}
int push(nvtxDomainHandle_t, nvtxEventAttributes_t const* what) {
  bool const is_right = what->version == NVTX_VERSION &&
                        what->size == NVTX_EVENT_ATTRIB_STRUCT_SIZE &&
                        what->messageType == NVTX_MESSAGE_TYPE_REGISTERED;
  received.pushed.push_back(is_right ? *reinterpret_cast<std::string*>(what->message.registered)
                                     : "wrong");
  return 0;
}
int pop(nvtxDomainHandle_t) { return ++received.pops; }
void name_stream(cudaStream_t, char const* name) { received.streams.emplace_back(name); }

int attach(NvtxGetExportTableFunc_t table) {
  auto const* const callbacks =
      static_cast<NvtxExportTableCallbacks const*>(table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable functions = nullptr;
  unsigned count = 0;
  if (callbacks == nullptr ||
      callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &functions, &count) == 0)
    return 0;
  *functions[NVTX_CBID_CORE2_DomainCreateA] = pointer(&create);
  *functions[NVTX_CBID_CORE2_DomainRegisterStringA] = pointer(&name_string);
  *functions[NVTX_CBID_CORE2_DomainRangePushEx] = pointer(&push);
  *functions[NVTX_CBID_CORE2_DomainRangePop] = pointer(&pop);
  if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CUDART, &functions, &count) == 0) return 0;
  *functions[NVTX_CBID_CUDART_NameCudaStreamA] = pointer(&name_stream);
  return 1;
}
/// NVTX calls what this points to at its first use, as if it came from a tool's library.
struct tool {
  tool() { InitializeInjectionNvtx2_fnptr = &attach; }
} const attached;

}  // namespace

TEST_CASE("a tool receives names once, and a range for each action", "[cuda]") {
  using namespace pp;
  schedules::action const actions[] = {{schedules::action_kind::forward, 0, 0},
                                       {schedules::action_kind::forward, 0, 1},
                                       {schedules::action_kind::backward, 0, 0}};
  detail::rank_description rank;
  rank.training = {actions, 3};
  rank.evaluation = {actions, 2};
  detail::pipeline_description d;
  d.micro_batches = 2;
  d.rank = &rank;
  cuda::rank_streams streams({}, {0}, nullptr);
  cuda::profiler_ranges const ranges(d, streams);
  CHECK(received.domain == "pipe");
  CHECK(received.registered == std::map<std::string, int>{{"BW chunk 0 micro-batch 0", 1},
                                                          {"F chunk 0 micro-batch 0", 1},
                                                          {"F chunk 0 micro-batch 1", 1},
                                                          {"evaluate", 1},
                                                          {"infer", 1},
                                                          {"train", 1}});
  CHECK(received.streams == std::vector<std::string>{"rank 0"});
  {
    auto const run = ranges.of(detail::job::kind::train);
    for (schedules::action const& a : actions) {
      auto const shown = ranges.of(a);
      CHECK(int(received.pushed.size()) == received.pops + 2);
    }
  }
  CHECK(received.pops == 4);
  CHECK(received.pushed == std::vector<std::string>{"train", "F chunk 0 micro-batch 0",
                                                    "F chunk 0 micro-batch 1",
                                                    "BW chunk 0 micro-batch 0"});
}
