// SPDX-License-Identifier: BSL-1.0
//
// Stands in for NVTX and a tool that is attached to it: records ranges and names. As NVTX, it is
// called by one thread of the tests.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace fake_nvtx {

struct domain {
  std::string name;
};
struct registered {
  std::string text;
};
/// What the tool has seen.
struct tool {
  std::map<std::string, registered> names;  ///< registered: stay where they are
  std::vector<std::string> open, seen;      ///< ranges: those that have not ended, all
  std::map<void*, std::string> streams;     ///< names of streams
  long registrations = 0;
};
inline tool the_tool;

}  // namespace fake_nvtx

using nvtxDomainHandle_t = fake_nvtx::domain*;
using nvtxStringHandle_t = fake_nvtx::registered*;

#define NVTX_VERSION 3
#define NVTX_EVENT_ATTRIB_STRUCT_SIZE (static_cast<unsigned short>(sizeof(nvtxEventAttributes_t)))
inline constexpr int NVTX_MESSAGE_TYPE_REGISTERED = 3;
struct nvtxEventAttributes_t {
  unsigned short version, size;
  int messageType;
  union {
    char const* ascii;
    nvtxStringHandle_t registered;
  } message;
};

inline nvtxDomainHandle_t nvtxDomainCreateA(char const* name) {
  static fake_nvtx::domain made;
  made.name = name;
  return &made;
}
inline nvtxStringHandle_t nvtxDomainRegisterStringA(nvtxDomainHandle_t, char const* text) {
  ++fake_nvtx::the_tool.registrations;
  return &(fake_nvtx::the_tool.names[text] = {text});
}
inline int nvtxDomainRangePushEx(nvtxDomainHandle_t in, nvtxEventAttributes_t const* what) {
  bool const is_right = in->name == "pipe" && what->version == NVTX_VERSION &&
                        what->size == sizeof(nvtxEventAttributes_t) &&
                        what->messageType == NVTX_MESSAGE_TYPE_REGISTERED;
  fake_nvtx::tool& tool = fake_nvtx::the_tool;
  tool.open.push_back(is_right ? what->message.registered->text : "wrong");
  tool.seen.push_back(tool.open.back());
  return int(tool.open.size()) - 1;
}
inline int nvtxDomainRangePop(nvtxDomainHandle_t) {
  fake_nvtx::the_tool.open.pop_back();
  return int(fake_nvtx::the_tool.open.size());
}
