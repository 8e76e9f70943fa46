// SPDX-License-Identifier: BSL-1.0
#include "task.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

#include <ft2build.h>
#include FT_FREETYPE_H

#include <pipe/base/error.hpp>

namespace {

namespace fs = std::filesystem;

constexpr std::string_view letters =
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
constexpr int cells = side * side;
constexpr int capital_height = 18, baseline = 24;
constexpr std::size_t fewest_families = 16;
constexpr int families_per_test_family = 8;

struct library_end {
  void operator()(FT_Library l) const { FT_Done_FreeType(l); }
};
struct face_end {
  void operator()(FT_Face f) const { FT_Done_Face(f); }
};
using library = std::unique_ptr<FT_LibraryRec_, library_end>;
using face = std::unique_ptr<FT_FaceRec_, face_end>;

/// All letters of one font, one picture after the other.
struct font {
  std::string family, style;
  std::vector<unsigned char> pixels;
};

/// The files of fonts below the folders, in the order of their names.
std::vector<std::string> font_files(std::vector<std::string> const& folders) {
  std::vector<std::string> files;
  for (std::string const& folder : folders) {
    std::error_code fault;
    for (fs::recursive_directory_iterator
             i(folder, fs::directory_options::skip_permission_denied, fault),
         end;
         !fault && i != end; i.increment(fault)) {
      std::string const kind = i->path().extension().string();
      if (kind == ".ttf" || kind == ".otf" || kind == ".TTF" || kind == ".OTF")
        files.push_back(i->path().string());
    }
  }
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return files;
}

/// Draws a letter in the middle of a picture's columns. False if the font does not have it, or if
/// it is empty or too large.
bool draw(FT_Face f, char letter, unsigned char* picture) {
  FT_UInt const glyph = FT_Get_Char_Index(f, FT_ULong(static_cast<unsigned char>(letter)));
  if (glyph == 0 || FT_Load_Glyph(f, glyph, FT_LOAD_RENDER | FT_LOAD_NO_HINTING) != 0) return false;
  FT_Bitmap const& bitmap = f->glyph->bitmap;
  int const height = int(bitmap.rows), width = int(bitmap.width);
  int const top = baseline - f->glyph->bitmap_top, left = (side - width) / 2;
  if (bitmap.pixel_mode != FT_PIXEL_MODE_GRAY || height == 0 || width == 0) return false;
  if (top < 0 || top + height > side || width > side) return false;
  for (int i = 0; i < height; ++i)
    std::copy_n(bitmap.buffer + i * bitmap.pitch, width, picture + (top + i) * side + left);
  return true;
}

/// The letters of a font; no pixels if it lacks one. A font whose wide letters do not fit is drawn
/// smaller.
font drawn(FT_Face f) {
  font result{f->family_name == nullptr ? "" : f->family_name,
              f->style_name == nullptr ? "" : f->style_name,
              {}};
  if (!FT_IS_SCALABLE(f) || FT_Select_Charmap(f, FT_ENCODING_UNICODE) != 0) return result;
  if (FT_Load_Char(f, 'H', FT_LOAD_NO_SCALE) != 0 || f->glyph->metrics.horiBearingY <= 0)
    return result;
  double const em = double(f->units_per_EM) / double(f->glyph->metrics.horiBearingY);
  for (double height = capital_height; height >= 0.6 * capital_height; height -= 1) {
    if (FT_Set_Char_Size(f, 0, FT_F26Dot6(std::lround(64 * em * height)), 72, 72) != 0)
      return result;
    std::vector<unsigned char> pixels(letters.size() * cells);
    std::size_t fit = 0;
    while (fit < letters.size() && draw(f, letters[fit], pixels.data() + fit * cells)) ++fit;
    if (fit == letters.size()) {
      result.pixels = std::move(pixels);
      return result;
    }
  }
  return result;
}

/// Mean difference of two fonts' cells, 0 to 255, which ends where it is known to exceed `most`.
double difference(font const& a, font const& b, double most) {
  auto const limit = std::int64_t(most * double(a.pixels.size())) + 1;
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < a.pixels.size() && sum <= limit; i += cells)
    for (std::size_t k = i; k < i + cells; ++k) sum += std::abs(int(a.pixels[k]) - b.pixels[k]);
  return double(sum) / double(a.pixels.size());
}

/// Whether one name of a family is the other, or the other with more words.
bool continues(std::string const& a, std::string const& b) {
  std::string const &shorter = a.size() < b.size() ? a : b, &longer = a.size() < b.size() ? b : a;
  return longer.compare(0, shorter.size(), shorter) == 0 &&
         (longer.size() == shorter.size() || longer[shorter.size()] == ' ');
}

/// For each font the first one of its family, where families that have fonts which look alike are
/// one.
std::vector<std::size_t> families(std::vector<font> const& fonts) {
  constexpr double alike = 2.5;
  std::vector<std::size_t> first(fonts.size());
  for (std::size_t i = 0; i < fonts.size(); ++i) first[i] = i;
  for (std::size_t i = 0; i < fonts.size(); ++i)
    for (std::size_t k = 0; k < i; ++k) {
      if (first[i] == first[k]) continue;
      if (!continues(fonts[i].family, fonts[k].family) &&
          difference(fonts[i], fonts[k], alike) > alike)
        continue;
      std::size_t const to = std::min(first[i], first[k]), from = std::max(first[i], first[k]);
      std::replace(first.begin(), first.end(), from, to);
    }
  return first;
}

void append(pp::image_set& to, font const& f) {
  to.pixels.insert(to.pixels.end(), f.pixels.begin(), f.pixels.end());
  for (std::size_t c = 0; c < letters.size(); ++c) to.labels.push_back(int(c));
}

}  // namespace

std::vector<std::string> font_folders() {
  std::vector<std::string> folders{"/usr/share/fonts", "/usr/local/share/fonts"};
  if (char const* const home = std::getenv("HOME"))
    for (char const* const below : {"/.fonts", "/.local/share/fonts"})
      folders.push_back(std::string(home) + below);
  return folders;
}

image_task glyphs_of(std::vector<std::string> const& folders) {
  FT_Library begun = nullptr;
  if (FT_Init_FreeType(&begun) != 0) throw pp::error("FreeType cannot be initialised");
  library const free_type(begun);
  std::vector<font> fonts;
  for (std::string const& file : font_files(folders)) {
    FT_Face opened = nullptr;
    if (FT_New_Face(free_type.get(), file.c_str(), 0, &opened) != 0) continue;
    face const f(opened);
    font drawing = drawn(f.get());
    if (!drawing.pixels.empty()) fonts.push_back(std::move(drawing));
  }
  std::sort(fonts.begin(), fonts.end(), [](font const& a, font const& b) {
    return std::tie(a.family, a.style, a.pixels) < std::tie(b.family, b.style, b.pixels);
  });
  std::vector<font> different;
  for (font& f : fonts)
    if (std::none_of(different.begin(), different.end(),
                     [&](font const& d) { return d.pixels == f.pixels; }))
      different.push_back(std::move(f));

  std::vector<std::size_t> const first = families(different);
  std::vector<std::size_t> groups = first;
  std::sort(groups.begin(), groups.end());
  groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
  if (groups.size() < fewest_families)
    throw pp::error("found " + std::to_string(groups.size()) +
                    " families of fonts with all letters and digits, at least " +
                    std::to_string(fewest_families) +
                    " are needed: install some (fonts-dejavu, fonts-lato, ...)");

  image_task task;
  for (pp::image_set* const set : {&task.training, &task.test}) {
    set->height = set->width = side;
    set->channels = 1;
  }
  for (char const c : letters) task.class_names.push_back(std::string(1, c));
  for (std::size_t i = 0; i < different.size(); ++i) {
    font const& f = different[i];
    auto const group = std::find(groups.begin(), groups.end(), first[i]) - groups.begin();
    bool const is_test = group % families_per_test_family == families_per_test_family / 2;
    append(is_test ? task.test : task.training, f);
    if (is_test)
      task.test_sources.insert(task.test_sources.end(), letters.size(), f.family + " " + f.style);
  }
  task.words = std::to_string(letters.size()) + " letters and digits of " +
               std::to_string(different.size()) + " fonts in " + std::to_string(groups.size()) +
               " families; every eighth family is kept back";
  return task;
}
