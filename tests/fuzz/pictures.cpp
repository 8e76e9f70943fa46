// SPDX-License-Identifier: BSL-1.0
//
// Any bytes as a PNG or JPEG file in a folder of pictures: refused with a data_error of one line,
// or a picture. Bytes as they are, or a good file with changes, since no chance finds a checksum or
// a table of codes.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <pipe/images.hpp>

#include "fuzz.hpp"

namespace {

/// A good PNG file of any kind that libpng's short interface writes.
std::string good_png(decisions& of) {
  constexpr std::uint32_t formats[] = {PNG_FORMAT_GRAY,          PNG_FORMAT_GA,
                                       PNG_FORMAT_RGB,           PNG_FORMAT_RGBA,
                                       PNG_FORMAT_RGB_COLORMAP,  PNG_FORMAT_LINEAR_RGB,
                                       PNG_FORMAT_RGBA_COLORMAP, PNG_FORMAT_LINEAR_Y};
  ::png_image to{};
  to.version = PNG_IMAGE_VERSION;
  to.format = formats[of.below(8)];
  to.width = std::uint32_t(1 + of.below(20)), to.height = std::uint32_t(1 + of.below(20));
  to.colormap_entries = 4;
  std::vector<std::uint8_t> numbers(PNG_IMAGE_SIZE(to)), palette(16, 77);
  for (auto& n : numbers)
    n = std::uint8_t(of.byte() % ((to.format & PNG_FORMAT_FLAG_COLORMAP) != 0 ? 4 : 256));
  std::string bytes(1 << 16, '\0');
  ::png_alloc_size_t size = bytes.size();
  law(::png_image_write_to_memory(&to, bytes.data(), &size, 0, numbers.data(), 0, palette.data()) !=
      0);
  bytes.resize(size);
  return bytes;
}
/// A good JPEG file: baseline, progressive or with arithmetic coding; of one to four colours.
std::string good_jpeg(decisions& of) {
  char const* const coding = of.below(3) == 0   ? "TJ_ARITHMETIC"
                             : of.below(2) == 0 ? "TJ_PROGRESSIVE"
                                                : "TJ_OPTIMIZE";
  bool const is_print = of.below(4) == 0;
  int const height = int(1 + of.below(40)), width = int(1 + of.below(40));
  int const sampled = is_print ? TJSAMP_444 : int(of.below(TJ_NUMSAMP));
  std::vector<std::uint8_t> numbers(std::size_t(height * width) * (is_print ? 4 : 3));
  for (auto& n : numbers) n = of.byte();
  ::tjhandle const encoder = ::tjInitCompress();
  unsigned char* made = nullptr;
  unsigned long size = 0;
  ::setenv(coding, "1", 1);
  law(::tjCompress2(encoder, numbers.data(), width, 0, height, is_print ? TJPF_CMYK : TJPF_RGB,
                    &made, &size, sampled, int(1 + of.below(100)), 0) == 0);
  ::unsetenv(coding);
  std::string const bytes(reinterpret_cast<char const*>(made), size);
  ::tjFree(made);
  ::tjDestroy(encoder);
  return bytes;
}

/// The checksum of PNG files.
std::uint32_t crc(std::string_view bytes) {
  std::uint32_t sum = ~0u;
  for (char const c : bytes) {
    sum ^= std::uint8_t(c);
    for (int bit = 0; bit < 8; ++bit) sum = sum >> 1 ^ ((sum & 1) != 0 ? 0xEDB88320u : 0);
  }
  return ~sum;
}
/// Makes the checksums of a PNG file's parts right, as far as these can be told.
void sum_again(std::string& png) {
  auto const number = [&](std::size_t at) {
    std::uint64_t n = 0;
    for (std::size_t i = 0; i < 4; ++i) n = n << 8 | std::uint8_t(png[at + i]);
    return n;
  };
  for (std::size_t at = 8; at + 12 <= png.size() && number(at) <= png.size() - at - 12;) {
    std::size_t const size = number(at), end = at + 8 + size;
    std::uint32_t const sum = crc(std::string_view(png).substr(at + 4, size + 4));
    for (std::size_t i = 0; i < 4; ++i) png[end + i] = char(sum >> (24 - 8 * i));
    at = end + 4;
  }
}

/// A good file with changed, removed and repeated bytes.
std::string changed_file(decisions& of) {
  bool const is_png = of.below(2) == 0;
  std::size_t const changes = of.below(6);
  struct change {
    std::size_t at, kind;
    std::uint8_t to;
  };
  std::vector<change> all;
  for (std::size_t i = 0; i < changes; ++i)
    all.push_back({of.below(65536), of.below(8), of.byte()});
  std::string bytes = is_png ? good_png(of) : good_jpeg(of);
  for (change const& c : all) {
    if (bytes.empty()) break;
    std::size_t const header = 32, room = bytes.size();
    std::size_t const at = c.at % (c.kind > 5 && room > header ? header : room);
    if (c.kind == 0)
      bytes.erase(at, c.to % 16);
    else if (c.kind == 1)
      bytes.insert(at, bytes.substr(at, c.to % 64));
    else if (c.kind == 2)
      bytes.resize(at + 1);
    else
      bytes[at] = char(c.to);
  }
  if (is_png) sum_again(bytes);
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  decisions of({data, size});
  std::filesystem::create_directories("pictures/one");
  put("pictures/one/a.png", of.byte() % 4 == 0 ? of.rest() : changed_file(of));
  try {
    pp::image_set const all = pp::read_image_folder("pictures", 3, 5);
    law(all.size() == 1 && all.pixels.size() == 3 * 5 * 3);
  } catch (pp::data_error const& e) {
    std::string_view const said = e.what();
    law(said.starts_with("'pictures/one/a.png'"));
    law(std::all_of(said.begin(), said.end(), [](char c) { return c >= ' ' && c <= '~'; }));
  }
  return 0;
}
