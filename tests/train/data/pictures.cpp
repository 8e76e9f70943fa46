// SPDX-License-Identifier: BSL-1.0
//
// Pictures: PNG and JPEG files that this test writes by the same libraries, and folders of them.
#include "catch.hpp"

#if __has_include(<png.h>) && __has_include(<turbojpeg.h>)

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <pipe/images.hpp>

#include "../folder.hpp"

using namespace pp;

namespace {

picture const squares = [] {
  picture p{16, 24, {}};
  for (int y = 0; y < 16; ++y)
    for (int x = 0; x < 24; ++x)
      for (int const value : {x < 12 ? 200 : 20, y < 8 ? 180 : 40, 100})
        p.pixels.push_back(std::uint8_t(value));
  return p;
}();

std::string as_png(picture const& p) {
  ::png_image to{};
  to.version = PNG_IMAGE_VERSION;
  to.height = std::uint32_t(p.height), to.width = std::uint32_t(p.width);
  to.format = PNG_FORMAT_RGB;
  ::png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(to);
  std::string bytes(size, '\0');
  if (::png_image_write_to_memory(&to, bytes.data(), &size, 0, p.pixels.data(), 0, nullptr) == 0)
    throw std::runtime_error(to.message);
  return bytes.substr(0, size);
}
std::string as_jpeg(picture const& p) {
  ::tjhandle const encoder = ::tjInitCompress();
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  ::tjCompress2(encoder, p.pixels.data(), p.width, 0, p.height, TJPF_RGB, &bytes, &size, TJSAMP_444,
                95, 0);
  std::string const all(reinterpret_cast<char*>(bytes), size);
  ::tjFree(bytes);
  ::tjDestroy(encoder);
  return all;
}

/// A PNG file of numbers in one of libpng's formats.
template <class T>
std::string as_png(int height, int width, std::uint32_t format, std::vector<T> const& numbers,
                   std::vector<std::uint8_t> const& palette = {}) {
  ::png_image to{};
  to.version = PNG_IMAGE_VERSION;
  to.height = std::uint32_t(height), to.width = std::uint32_t(width);
  to.format = format;
  to.colormap_entries = std::uint32_t(palette.size() / 3);
  to.flags = sizeof(T) == 2 ? PNG_IMAGE_FLAG_COLORSPACE_NOT_sRGB : 0;  // stored as they are
  std::string bytes(1 << 20, '\0');
  ::png_alloc_size_t size = bytes.size();
  if (::png_image_write_to_memory(&to, bytes.data(), &size, 0, numbers.data(), 0,
                                  palette.empty() ? nullptr : palette.data()) == 0)
    throw std::runtime_error(to.message);
  return bytes.substr(0, size);
}

/// The extents in a PNG file, with the checksum of its header.
std::string with_extents(std::string png, std::uint32_t height, std::uint32_t width) {
  auto const put = [&](std::size_t at, std::uint32_t value) {
    for (std::size_t i = 0; i < 4; ++i) png[at + i] = char(value >> (24 - 8 * i));
  };
  put(16, width), put(20, height);
  std::uint32_t sum = ~0u;
  for (std::size_t i = 12; i < 29; ++i) {
    sum ^= std::uint8_t(png[i]);
    for (int bit = 0; bit < 8; ++bit) sum = sum >> 1 ^ (sum & 1 ? 0xEDB88320u : 0);
  }
  put(29, ~sum);
  return png;
}

using numbers = std::vector<std::uint8_t>;

}  // namespace

TEST_CASE("pictures of all kinds become red, green and blue") {
  temporary_folder const folder;
  auto const read = [&](std::string const& bytes) {
    return read_picture(folder.write("a", bytes)).pixels;
  };
  CHECK(read(as_png(1, 2, PNG_FORMAT_GRAY, numbers{7, 200})) == numbers{7, 7, 7, 200, 200, 200});
  CHECK(read(as_png(1, 3, PNG_FORMAT_RGB_COLORMAP, numbers{1, 0, 1},
                    numbers{1, 2, 3, 200, 100, 50})) ==
        numbers{200, 100, 50, 1, 2, 3, 200, 100, 50});
  // Opaque, and transparent before white.
  CHECK(read(as_png(1, 2, PNG_FORMAT_RGBA, numbers{200, 100, 50, 255, 200, 100, 50, 0})) ==
        numbers{200, 100, 50, 255, 255, 255});
  // Of 16 bits the upper ones.
  std::vector<std::uint16_t> const deep{200 * 257, 100 * 257, 50 * 257, 0, 77 * 257, 65535};
  std::string bytes = as_png(1, 2, PNG_FORMAT_LINEAR_RGB, deep);
  if (std::size_t const gamma = bytes.find("gAMA"); gamma != bytes.npos)
    bytes.erase(gamma - 4, 16);  // as most programs write it, without
  REQUIRE(bytes[24] == 16);
  CHECK(read(bytes) == numbers{200, 100, 50, 0, 77, 255});

  // The four colours of print, inverted: full red, half black, white.
  numbers const print{255, 0, 0, 255, 255, 255, 255, 128, 255, 255, 255, 255};
  ::tjhandle const encoder = ::tjInitCompress();
  unsigned char* made = nullptr;
  unsigned long size = 0;
  numbers wide;
  for (int pixel = 0; pixel < 3; ++pixel)
    for (int copy = 0; copy < 8; ++copy)
      wide.insert(wide.end(), print.begin() + 4 * pixel, print.begin() + 4 * pixel + 4);
  numbers square;
  for (int row = 0; row < 8; ++row) square.insert(square.end(), wide.begin(), wide.end());
  REQUIRE(::tjCompress2(encoder, square.data(), 24, 0, 8, TJPF_CMYK, &made, &size, TJSAMP_444, 100,
                        0) == 0);
  numbers const found = read(std::string(reinterpret_cast<char*>(made), size));
  ::tjFree(made);
  ::tjDestroy(encoder);
  numbers const expected{255, 0, 0, 128, 128, 128, 255, 255, 255};
  for (std::size_t i = 0; i < 9; ++i) {
    INFO(i);
    CHECK(std::abs(int(found[(8 * (i / 3) + 4) * 3 + i % 3]) - int(expected[i])) <= 3);
  }
}

TEST_CASE("a small file asks for little memory, whatever it says") {
  temporary_folder const folder;
  std::string const small = as_png(squares);
  for (auto const& [height, width] :
       {std::pair{16384u, 16384u}, {100u, 1'000'000u}, {1'000'000u, 100u}})
    CHECK_THAT(sentence<data_error>(
                   [&] { read_picture(folder.write("a", with_extents(small, height, width))); }),
               Catch::Contains("a' is cut: it has too few bytes for"));
  CHECK_THAT(sentence<data_error>(
                 [&] { read_picture(folder.write("a", with_extents(small, 20'000, 20'000))); }),
             Catch::Contains("expected at most 2^28 pixels"));
  // A flat picture with arithmetic coding is whole, and as small at any size.
  ::setenv("TJ_ARITHMETIC", "1", 1);
  std::string const flat[] = {as_jpeg({64, 64, numbers(64 * 64 * 3, 128)}),
                              as_jpeg({1000, 800, numbers(1000 * 800 * 3, 128)})};
  ::unsetenv("TJ_ARITHMETIC");
  CHECK(sentence<data_error>([&] { read_picture(folder.write("a", flat[0])); }) == "no error");
  CHECK_THAT(sentence<data_error>([&] { read_picture(folder.write("a", flat[1])); }),
             Catch::Contains("a' is no JPEG that can be read: with arithmetic coding") &&
                 Catch::Contains("found 1000 x 800"));
  // Of a tall picture only the part in the middle is made.
  picture tall{100'000, 1, numbers(300'000)};
  for (int y = 0; y < tall.height; ++y) tall.pixels[std::size_t(3 * y)] = y == 50'000 ? 255 : 0;
  picture const part = fit_picture(tall, 1, 3000);
  CHECK(part.pixels.size() == 9000);
  picture const middle = fit_picture(tall, 3, 3);
  REQUIRE(middle.pixels.size() == 27);  // between a row of 0 and the one of 255
  CHECK(std::abs(int(middle.pixels[0]) - 42) <= 1);
  CHECK((middle.pixels[9] == 128 && middle.pixels[10] == 0));
  CHECK(std::abs(int(middle.pixels[18]) - 213) <= 1);
}

/// A progressive JPEG file of one grey picture, whose scans after the first add nothing to it.
std::string with_scans(int size, int scans) {
  auto const two = [](int n) { return std::string{char(n >> 8), char(n)}; };
  auto const table = [&](int kind, int value) {  // of one code, the bit 0
    return "\xFF\xC4" + two(20) + char(kind << 4) + '\1' + std::string(15, '\0') + char(value);
  };
  auto const scan = [&](int first, int last, std::string const& bits) {
    return "\xFF\xDA" + two(8) + "\1\1" + '\0' + char(first) + char(last) + '\0' + bits;
  };
  int const blocks = size / 8 * (size / 8);
  std::string file = "\xFF\xD8\xFF\xDB" + two(67) + '\0' + std::string(64, '\1') + "\xFF\xC2" +
                     two(11) + '\x8' + two(size) + two(size) + "\1\1\x11" + '\0' + table(0, 0) +
                     table(1, 0xE0) + scan(0, 0, std::string(std::size_t(blocks / 8), '\0'));
  // The code of a run of 2^14 + 16383 blocks without numbers, and ones up to the end of the byte.
  for (int i = 1; i < scans; ++i) file += scan(1, 63, std::string("\x7F\xFF") + '\0' + "\xFF");
  return file + "\xFF\xD9";
}

TEST_CASE("a JPEG file has a bounded number of scans, each of which takes time for all pixels") {
  temporary_folder const folder;
  auto const said = [&](int scans) {
    return sentence<data_error>(
        [&] { read_picture(folder.write("a.jpg", with_scans(64, scans))); });
  };
  CHECK(said(1) == "no error");
  CHECK(said(20) == "no error");
  CHECK_THAT(said(501), Catch::Contains("a.jpg' is no JPEG that can be read: "));
  CHECK_THAT(said(1500), Catch::Contains("a.jpg' is no JPEG that can be read: "));
}

TEST_CASE("pictures are read from PNG and JPEG, and damaged ones are refused") {
  temporary_folder const folder;
  picture const png = read_picture(folder.write("a.png", as_png(squares)));
  CHECK((png.height == 16 && png.width == 24 && png.pixels == squares.pixels));
  picture const jpeg = read_picture(folder.write("a.jpg", as_jpeg(squares)));
  REQUIRE((jpeg.height == 16 && jpeg.width == 24));
  int largest = 0;
  for (std::size_t i = 0; i < jpeg.pixels.size(); ++i)
    largest = std::max(largest, std::abs(int(jpeg.pixels[i]) - int(squares.pixels[i])));
  CHECK(largest <= 40);

  for (std::string const& good : {as_png(squares), as_jpeg(squares)}) {
    std::size_t read = 0;
    for (std::size_t size = 0; size + 2 < good.size(); ++size)  // 2: the mark of a JPEG's end
      read += sentence<data_error>([&] {
                read_picture(folder.write("cut", good.substr(0, size)));
              }).find("cut'") == std::string::npos;
    // A decoder need not see the last checksum of a PNG, nor a JPEG's last bits.
    CHECK(read <= 16);
    for (std::size_t i = 0; i < good.size(); ++i) {
      std::string bytes = good;
      bytes[i] = char(bytes[i] ^ 0x55);
      std::string const said =
          sentence<data_error>([&] { read_picture(folder.write("changed", bytes)); });
      if (said != "no error" && said.find("changed'") == said.npos) FAIL(said);
    }
  }
  CHECK_THAT(sentence<data_error>([&] { read_picture(folder.write("b", "GIF89a")); }),
             Catch::Contains("b' is neither a PNG nor a JPEG file"));
}

TEST_CASE("pictures are fitted to a size without changing their proportions") {
  CHECK(fit_picture(squares, 16, 24).pixels == squares.pixels);
  picture const half = fit_picture(squares, 8, 8);  // of the columns 4 to 19
  CHECK((half.height == 8 && half.width == 8 && half.pixels[0] == 200 && half.pixels[1] == 180));
  CHECK((half.pixels[7 * 3] == 20 && half.pixels[3 * 3] > half.pixels[4 * 3]));
  picture const flat{1, 2, {9, 9, 9, 9, 9, 9}};
  CHECK(fit_picture(flat, 3, 5).pixels == std::vector<std::uint8_t>(45, 9));
}

TEST_CASE("a folder of pictures has a folder for each class") {
  temporary_folder const folder;
  for (char const* const name : {"dogs", "cats", "cats/more"})
    std::filesystem::create_directories(folder.file(name));
  folder.write("dogs/2.png", as_png(squares));
  folder.write("cats/b.JPG", as_jpeg(squares));
  folder.write("cats/more/a.png", as_png(squares));
  folder.write("cats/readme.txt", "");
  image_set const all = read_image_folder(folder.file(""), 4, 6);
  CHECK(all.labels == std::vector{0, 0, 1});
  CHECK(all.classes == std::vector<std::string>{"cats", "dogs"});
  CHECK((all.pixels.size() == 3 * 4 * 6 * 3 && all.channels == 3));
  std::filesystem::create_directories(folder.file("empty"));
  CHECK_THAT(sentence<data_error>([&] { read_image_folder(folder.file(""), 4, 6); }),
             Catch::Contains("empty' has no picture"));
}

TEST_CASE("what other programs put into a folder of pictures is neither class nor picture") {
  temporary_folder const folder;
  for (char const* const name : {"cat/.cache", "dog/@eaDir/a.png", ".git", ".ipynb_checkpoints",
                                 "__MACOSX/cat", "lost+found", "$RECYCLE.BIN"})
    std::filesystem::create_directories(folder.file(name));
  for (char const* const name : {"cat/a.png", "dog/a.png"}) folder.write(name, as_png(squares));
  for (char const* const name :
       {"._cat", ".DS_Store", "cat/._a.png", "cat/.DS_Store", "cat/Thumbs.db", "cat/.cache/a.png",
        "dog/@eaDir/a.png/small.jpg", "__MACOSX/cat/._a.png", ".git/config"})
    folder.write(name, "no picture");
  image_set const all = read_image_folder(folder.file(""), 4, 6);
  CHECK(all.labels == std::vector{0, 1});
  CHECK(all.classes == std::vector<std::string>{"cat", "dog"});
  // The folder itself may have such a name, and a class may be a link.
  std::filesystem::rename(folder.file("cat"), folder.file(".git/cat"));
  std::filesystem::create_directory_symlink(folder.file(".git/cat"), folder.file(".git/dog"));
  CHECK(read_image_folder(folder.file(".git"), 4, 6).labels == std::vector{0, 1});
}

#endif
