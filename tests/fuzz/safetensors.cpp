// SPDX-License-Identifier: BSL-1.0
//
// Any bytes as a safetensors file, and as a header alone: the reader refuses them with a data_error
// or hands out tensors that keep its laws and survive being written and read again. What else
// happens is found by the fuzzer and its sanitizers.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pipe/weights/safetensors.hpp>
#include <pipe/weights/stored_type.hpp>

#include "fuzz.hpp"

namespace {

/// The tensors tile the data, each has the bytes of its shape, and names are unique.
void check_places(pp::detail::safetensors_header const& header, std::uint64_t data_bytes) {
  std::uint64_t end = 0;
  for (pp::detail::safetensors_place const& p : header.tensors) {
    unsigned __int128 bytes = unsigned(pp::files::size_of(p.type));
    for (long const extent : p.shape) {
      law(extent >= 0);
      if (p.type == pp::files::stored_type::other) continue;
      bytes *= std::uint64_t(extent);
      law(bytes >> 63 == 0);
    }
    law(p.begin == end && p.end >= p.begin);
    law(p.type == pp::files::stored_type::other || p.end == p.begin + std::uint64_t(bytes));
    for (pp::detail::safetensors_place const& other : header.tensors)
      law(&other == &p || other.name != p.name);
    end = p.end;
  }
  law(end == data_bytes);
}

void read_file(std::span<std::byte const> bytes) {
  pp::safetensors_file const file(bytes, "f");
  for (pp::safetensors_entry const& t : file.tensors()) {
    law(file.find(t.name) == &t);
    if (!pp::files::is_real(t.type)) continue;
    std::vector<float> numbers(t.bytes.size() / std::size_t(pp::files::size_of(t.type)));
    pp::files::decode(t.type, t.bytes.data(), std::span(numbers));
    law(pp::detail::first_too_large<float>(t.type, t.bytes) < std::int64_t(numbers.size()));
  }
}

/// A header for as many bytes as its last tensor claims, so that most mutations of it get far.
void read_header(std::string_view text) {
  std::size_t const comma = text.rfind(','), number = comma == text.npos ? 0 : comma + 1;
  std::uint64_t data_bytes = 0;
  for (std::size_t i = number;
       i < text.size() && text[i] >= '0' && text[i] <= '9' && i < number + 18; ++i)
    data_bytes = 10 * data_bytes + std::uint64_t(text[i] - '0');
  pp::detail::safetensors_header header =
      pp::detail::parse_safetensors_header(text, data_bytes, "f");
  check_places(header, data_bytes);

  pp::detail::place_tensors(header.tensors);
  std::string const written = pp::detail::safetensors_preamble(header.tensors, header.metadata);
  law(written.size() % 8 == 0);
  pp::detail::safetensors_header const again =
      pp::detail::parse_safetensors_header(std::string_view(written).substr(8), data_bytes, "f");
  check_places(again, data_bytes);
  law(again.metadata == header.metadata && again.tensors.size() == header.tensors.size());
  law(pp::detail::safetensors_preamble(again.tensors, again.metadata) == written);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  std::span<std::uint8_t const> const input(data, size);
  try {
    read_file(std::as_bytes(input));
  } catch (pp::data_error const&) {
  }
  try {
    read_header({reinterpret_cast<char const*>(data), size});
  } catch (pp::data_error const&) {
  }
  return 0;
}
