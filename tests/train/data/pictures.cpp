// SPDX-License-Identifier: BSL-1.0
//
// Pictures: PNG and JPEG files that this test writes by the same libraries, and folders of them.
#include <catch2/catch.hpp>

#if __has_include(<png.h>) && __has_include(<turbojpeg.h>)

#include <cstdint>
#include <filesystem>
#include <string>
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

}  // namespace

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
  CHECK(fitted(squares, 16, 24).pixels == squares.pixels);
  picture const half = fitted(squares, 8, 8);  // of the columns 4 to 19
  CHECK((half.height == 8 && half.width == 8 && half.pixels[0] == 200 && half.pixels[1] == 180));
  CHECK((half.pixels[7 * 3] == 20 && half.pixels[3 * 3] > half.pixels[4 * 3]));
  picture const flat{1, 2, {9, 9, 9, 9, 9, 9}};
  CHECK(fitted(flat, 3, 5).pixels == std::vector<std::uint8_t>(45, 9));
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

#endif
