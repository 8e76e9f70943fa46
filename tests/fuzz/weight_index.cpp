// SPDX-License-Identifier: BSL-1.0
//
// Any bytes as the index of weights in several files, beside two good files and one that is none.
// It is refused in a sentence, or all tensors that it leads to can be read, each once.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <pipe/weights/weight_files.hpp>

#include "fuzz.hpp"

namespace {

/// A file of tensors of four bytes, with these names.
std::string file_of(std::vector<std::string> const& names) {
  std::string header = "{", data;
  for (std::string const& name : names) {
    std::string const begin = std::to_string(data.size());
    data += "1234";
    header += (header.size() > 1 ? ",\"" : "\"") + name +
              R"(":{"dtype":"F32","shape":[1],"data_offsets":[)" + begin + "," +
              std::to_string(data.size()) + "]}";
  }
  header += '}';
  while (header.size() % 8 != 0) header += ' ';
  std::uint64_t const size = header.size();
  std::string bytes(sizeof(size), '\0');
  std::memcpy(bytes.data(), &size, sizeof(size));
  return bytes + header + data;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static bool const is_first = [] {
    put("a.safetensors", file_of({"w", "b"}));
    put("b.safetensors", file_of({"v"}));
    put("c.safetensors", "no file of tensors");
    return true;
  }();
  law(is_first);
  put("model.safetensors.index.json", {reinterpret_cast<char const*>(data), size});
  try {
    pp::weight_files const files("model.safetensors.index.json");
    std::set<std::string> names;
    for (pp::detail::placed_tensor const& t : files.tensors()) {
      law(files.has(t.name) && names.insert(t.name).second);
      std::byte bytes[4]{};
      law(t.end - t.begin == sizeof(bytes));
      files.read(t, bytes);
      law(std::memcmp(bytes, "1234", sizeof(bytes)) == 0);
    }
    law(!names.empty());
  } catch (pp::data_error const&) {
  } catch (pp::file_error const&) {  // of a file that is named, and not there
  }
  return 0;
}
