// SPDX-License-Identifier: BSL-1.0
//
// Readers of arrays, images and message catalogues: what they read, that they refuse every cut of
// a good file, and that no change of a byte does more than give another file.
#include "catch.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <pipe/data.hpp>
#include <pipe/pipe.hpp>

#include "../folder.hpp"

using namespace pp;

namespace {

std::string operator""_bytes(char const* text, std::size_t size) { return {text, size}; }

/// Integers in either byte order.
std::string word(std::uint64_t value, int bytes, bool big = true) {
  std::string all;
  for (int i = 0; i < bytes; ++i) all += char(value >> 8 * (big ? bytes - 1 - i : i));
  return all;
}

/// Every proper prefix is refused, as is the file with one more byte, if that is decidable; each
/// byte changed to others is refused by a sentence with the path, or read.
void check_faults(std::string const& good, std::function<void(std::string_view)> const& read,
                  bool refuses_longer = true) {
  read(good);
  auto const says = [&](std::string const& bytes) {
    return sentence<data_error>([&] { read(bytes); });
  };
  for (std::size_t size = 0; size < good.size(); ++size) {
    std::string const said = says(good.substr(0, size));
    if (said.find("'file'") == said.npos) FAIL("a cut after " << size << " bytes: " << said);
  }
  if (refuses_longer) CHECK_THAT(says(good + '\0'), Catch::Contains("'file'"));
  for (std::size_t i = 0; i < good.size(); ++i)
    for (int const change : {1, 2, 4, 8, 16, 32, 64, 128, 255}) {
      std::string bytes = good;
      bytes[i] = char(bytes[i] ^ change);
      std::string const said = says(bytes);
      if (said != "no error" && said.find("'file'") == said.npos)
        FAIL("byte " << i << " changed by " << change << ": " << said);
    }
}

std::string npy(int major, std::string const& dictionary, std::string const& data) {
  return "\x93NUMPY" + word(std::uint64_t(major), 1) + word(0, 1) +
         word(dictionary.size() + 1, major == 1 ? 2 : 4, false) + dictionary + "\n" + data;
}

/// A .mo file of originals and translations.
std::string mo(std::vector<std::pair<std::string, std::string>> const& texts, bool big) {
  std::size_t const n = texts.size();
  std::string file, strings;
  for (std::size_t const w : {std::size_t(0x950412de), std::size_t(0), n, std::size_t(28),
                              28 + 8 * n, std::size_t(0), 28 + 16 * n})
    file += word(w, 4, big);
  for (bool const is_original : {true, false})
    for (auto const& [original, translation] : texts) {
      std::string const& text = is_original ? original : translation;
      file += word(text.size(), 4, big) + word(28 + 16 * n + strings.size(), 4, big);
      strings += text + '\0';
    }
  return file + strings;
}

std::vector<std::pair<std::string, std::string>> const russian = {
    {"",
     "Language: ru\nContent-Type: text/plain; charset=UTF-8\nPlural-Forms: nplurals=3; "
     "plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : "
     "2);\n"},
    {"%d file\0%d files"_bytes, "%d файл\0%d файла\0%d файлов"_bytes},
    {"menu\x04Open", "Открыть"},
    {"Close", "Закрыть"}};

}  // namespace

TEST_CASE("idx: all types, big-endian, and no other bytes") {
  auto const read = [](std::string_view bytes) { return detail::parse_idx("file", bytes); };
  auto const head = [](int type, int extent) {
    return word(std::uint64_t(type), 3) + word(1, 1) + word(std::uint64_t(extent), 4);
  };
  CHECK(read(head(8, 2) + "\x01\xFE").numbers<int>() == std::vector{1, 254});
  CHECK(read(head(9, 2) + "\x01\xFE").numbers<int>() == std::vector{1, -2});
  CHECK(read(head(11, 1) + "\xFF\x01").numbers<int>() == std::vector{-255});
  CHECK(read(head(12, 1) + word(70'000, 4)).numbers<int>() == std::vector{70'000});
  CHECK(read(head(13, 1) + word(0xC0200000, 4)).numbers<float>() == std::vector{-2.5f});
  CHECK(read(head(14, 1) + word(0x4004000000000000, 8)).numbers<double>() == std::vector{2.5});
  std::string const good = word(0x803, 4) + word(2, 4) + word(1, 4) + word(3, 4) + "abcdef";
  CHECK(read(good).shape == std::vector<std::size_t>{2, 1, 3});
  check_faults(good, read);
  std::string overflow = word(0x0804, 4);
  for (int i = 0; i < 4; ++i) overflow += word(0x80000000, 4);
  CHECK_THAT(sentence<data_error>([&] { read(overflow); }), Catch::Contains("found 0 bytes"));
}

TEST_CASE("npy: three versions, both byte orders, both orders of elements") {
  auto const read = [](std::string_view bytes) { return detail::parse_npy("file", bytes); };
  std::string const data = word(1, 2, false) + word(2, 2, false) + word(3, 2, false) +
                           word(4, 2, false) + word(5, 2, false) + word(0xFFFF, 2, false);
  for (int const major : {1, 2, 3}) {
    std::string const good =
        npy(major, "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }   ", data);
    CHECK(read(good).numbers<int>() == std::vector{1, 2, 3, 4, 5, -1});
    CHECK(read(good).shape == std::vector<std::size_t>{2, 3});
    check_faults(good, read);
  }
  CHECK(read(npy(1, R"({"shape":(2,3),"fortran_order":True,"descr":"<u2"})", data))
            .numbers<double>() == std::vector<double>{1, 3, 5, 2, 4, 65535});
  CHECK(read(npy(1, "{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}", word(0x3FC00000, 4)))
            .numbers<float>() == std::vector{1.5f});
  CHECK(read(npy(1, "{'descr': '|b1', 'fortran_order': False, 'shape': ()}", "\x01"))
            .numbers<int>() == std::vector{1});
  std::string cube;  // [2][3][2], the first index fastest
  for (int i = 0; i < 12; ++i) cube += char(i);
  CHECK(read(npy(1, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 2)}", cube))
            .numbers<int>() == std::vector{0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11});
  // Spellings that NumPy 2.4 reads, and what it takes them for.
  for (auto const& [descr, type] : {std::pair("=i2", files::stored_type::i16),
                                    {"i2", files::stored_type::i16},
                                    {"|i2", files::stored_type::i16},
                                    {"h", files::stored_type::i16},
                                    {"<h", files::stored_type::i16},
                                    {"int16", files::stored_type::i16},
                                    {"=f2", files::stored_type::f16},
                                    {"f2", files::stored_type::f16},
                                    {"e", files::stored_type::f16},
                                    {"half", files::stored_type::f16},
                                    {"float16", files::stored_type::f16},
                                    {"H", files::stored_type::u16}})
    CHECK(read(npy(1,
                   std::string("{'descr': '") + descr + "', 'fortran_order': False, 'shape': (6,)}",
                   data))
              .type == type);
  for (auto const& [descr, type] : {std::pair("=f8", files::stored_type::f64),
                                    {"f8", files::stored_type::f64},
                                    {"d", files::stored_type::f64},
                                    {"float64", files::stored_type::f64},
                                    {"float", files::stored_type::f64},
                                    {"q", files::stored_type::i64},
                                    {"int64", files::stored_type::i64},
                                    {"Q", files::stored_type::u64}})
    CHECK(read(npy(1,
                   std::string("{'descr': '") + descr + "', 'fortran_order': False, 'shape': (1,)}",
                   std::string(8, '\0')))
              .type == type);
  for (char const* const descr :
       {"u1", "=u1", "<u1", ">u1", "|u1", "B", "uint8", "?", "<?", "bool", "<b1", "b", "|b", "i1"})
    CHECK(read(npy(1,
                   std::string("{'descr': '") + descr + "', 'fortran_order': False, 'shape': (1,)}",
                   "\1"))
              .size() == 1);
  CHECK(
      read(npy(1, "\t{'descr':\t'>i2',\r\n'fortran_order': False,\f'shape': (\t6,\n) }\r\n", data))
          .numbers<int>()[0] == 256);
  for (std::string const descr :
       {"<float64", "=float32", "F8", " f8", "f8 ", "i16", "", "<", "f", "b'f8'", "g", "<f8,"})
    CHECK_THROWS_AS(read(npy(1, "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (1,)}",
                             std::string(8, '\0'))),
                    data_error);
  for (std::string const dictionary :
       {"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<i2', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<i2', 'fortran_order': False, 'shape': (True,)}",
        "{'descr': '<i2', 'fortran_order': False, 'shape': (6)}",
        "{'descr': '<i2', 'fortran_order': False, 'shape': (6,), 'more': 1}",
        "{'descr': '<i2', 'descr': '<i2', 'fortran_order': False, 'shape': (6,)}",
        "{'descr': '<i2', 'shape': (6,)}",
        "{'descr': '<i2', 'fortran_order': False, 'shape': (4611686018427387904, 8)}"})
    CHECK_THAT(sentence<data_error>([&] { read(npy(1, dictionary, data)); }),
               Catch::Contains("'file'"));
  CHECK_THROWS_AS(read(npy(1, "{'descr': '<u8', 'fortran_order': False, 'shape': (1,)}",
                           std::string(8, '\xFF')))
                      .numbers<int>(),
                  data_error);
}

TEST_CASE("MNIST and CIFAR: pixels row by row, with all channels of one together") {
  temporary_folder const folder;
  std::string const images = folder.write(
      "images", word(0x803, 4) + word(2, 4) + word(1, 4) + word(2, 4) + "\0\x33\x66\xFF"_bytes);
  std::string const labels = folder.write("labels", word(0x801, 4) + word(2, 4) + "\x07\x01");
  // [mnist]
  image_set const digits = read_mnist(images, labels);
  std::vector<float> const inputs = digits.numbers();  // from 0 to 1; labels: digits.labels
  // [/mnist]
  CHECK((digits.height == 1 && digits.width == 2 && digits.channels == 1 && digits.size() == 2));
  CHECK(digits.labels == std::vector{7, 1});
  CHECK(inputs == std::vector{0.f, 0.2f, 0.4f, 1.f});
  float const mean = 0.5f, deviation = 0.25f;
  CHECK(digits.numbers({&mean, 1}, {&deviation, 1})[3] == 2.f);
  CHECK_THAT(sentence<data_error>([&] {
               read_mnist(images, folder.write("more", word(0x801, 4) + word(3, 4) + "abc"));
             }),
             Catch::Contains("expected 2 labels, found 3"));
  CHECK_THAT(sentence<data_error>([&] {
               read_mnist(images, folder.write("signed", word(0x901, 4) + word(2, 4) + "\x01\xFE"));
             }),
             Catch::Contains("signed': image 1 has label -2, expected 0 or more"));
  CHECK_THAT(sentence<data_error>([&] {
               read_mnist(
                   folder.write("empty", word(0x803, 4) + word(0, 4) + word(1, 4) + word(2, 4)),
                   folder.write("no labels", word(0x801, 4) + word(0, 4)));
             }),
             Catch::Contains("empty' has no images"));
  CHECK(sentence<data_error>([] { read_cifar10({}); }) == "read_cifar: expected at least one file");

  std::string planes(3072, '\0');
  planes[1] = 10, planes[1024 + 1] = 20, planes[2048 + 1] = 30;  // the pixel (0, 1)
  image_set const ten = read_cifar10({folder.write("ten", "\x09" + planes + "\x03" + planes)});
  CHECK((ten.labels == std::vector{9, 3} && ten.size() == 2));
  CHECK((ten.pixels[3072 + 3] == 10 && ten.pixels[4] == 20 && ten.pixels[5] == 30));
  image_set const hundred = read_cifar100({folder.write("hundred", "\x13\x63" + planes)});
  CHECK((hundred.labels == std::vector{99} && hundred.coarse_labels == std::vector{19}));
  CHECK_THAT(
      sentence<data_error>([&] { read_cifar10({folder.write("cut", "\x09" + planes + "a")}); }),
      Catch::Contains("cut': expected records of 3073 bytes, found 3074"));
  CHECK_THAT(sentence<data_error>([&] { read_cifar10({folder.write("wrong", "\x0A" + planes)}); }),
             Catch::Contains("image 0 has label 10, expected one below 10"));
  CHECK_THAT(sentence<file_error>([&] { read_idx(folder.file("none")); }),
             Catch::Contains("none': No such file"));
}

TEST_CASE("a catalogue as pairs of texts") {
  temporary_folder const folder;
  std::string const path = folder.write("ru.mo", mo(russian, false)), nothing;
  std::vector<std::pair<std::string, std::string>> pairs;
  // [catalogue]
  message_catalogue const catalogue(path);
  std::string const language = catalogue.field("Language");
  for (catalogue_message const& m : catalogue.messages()) {
    pairs.emplace_back(m.id, m.forms[m.plural_id.empty() ? 0 : catalogue.form_of(1)]);
    if (!m.plural_id.empty()) pairs.emplace_back(m.plural_id, m.forms[catalogue.form_of(5)]);
  }
  // [/catalogue]
  CHECK(language == "ru");
  CHECK(pairs == decltype(pairs){{"%d file", "%d файл"},
                                 {"%d files", "%d файлов"},
                                 {"Open", "Открыть"},
                                 {"Close", "Закрыть"}});
}

TEST_CASE("message catalogues: both byte orders, contexts, plurals") {
  for (bool const big : {false, true}) {
    std::string const bytes = mo(russian, big);
    message_catalogue const all("file", bytes);
    REQUIRE(all.messages().size() == 3);
    catalogue_message const& files = all.messages()[0];
    CHECK((files.id == "%d file" && files.plural_id == "%d files"));
    CHECK(files.forms == std::vector<std::string>{"%d файл", "%d файла", "%d файлов"});
    CHECK((all.messages()[1].context == "menu" && all.messages()[1].id == "Open"));
    CHECK(all.messages()[2].forms == std::vector<std::string>{"Закрыть"});
    CHECK((all.field("Language") == "ru" && all.plural_forms() == 3));
    std::vector<unsigned long> forms;
    for (unsigned long const n : {1, 3, 5, 11, 21}) forms.push_back(all.form_of(n));
    CHECK(forms == std::vector<unsigned long>{0, 1, 2, 2, 0});
    check_faults(
        bytes,
        [](std::string_view file) {
          message_catalogue const read("file", file);
          for (unsigned long n = 0; n < 20; ++n) read.form_of(n);
        },
        false);
  }
  auto const says = [](std::string const& header, std::string const& translation = "Zu") {
    return sentence<data_error>([&] {
      message_catalogue("file", mo({{"", header}, {"Close", translation}}, false)).form_of(0);
    });
  };
  CHECK(says("Language: de\n") == "no error");
  CHECK_THAT(says("Content-Type: text/plain; charset=ISO-8859-1\n"),
             Catch::Equals("'file': its charset is 'ISO-8859-1', expected UTF-8"));
  CHECK_THAT(says("Language: de\n",
                  "Schlie\xDF"
                  "en"),
             Catch::Contains("text 1 is not UTF-8 at byte 6"));
  std::string const rule = "Plural-Forms: nplurals=2; plural=";
  CHECK(says(rule + "n > 1 ? 1 : !n && 2 + 3 * 4 - 1 == 13 || n / 2 >= 1;\n") == "no error");
  CHECK(says(rule + "n == 0 ? 0 : 5 / n == 5 && n % 1 <= 0;\n") == "no error");
  CHECK_THAT(says(rule + "1 / n;\n"), Catch::Contains("expected a divisor other than 0"));
  CHECK_THAT(says(rule + "n + 2;\n"), Catch::Contains("gives form 3 for 1, expected one below 2"));
  CHECK_THAT(says(rule + std::string(100'000, '(') + ";\n"),
             Catch::Contains("expected less depth"));
  CHECK_THAT(says(rule + "n = 1;\n"), Catch::Contains("expected an operator"));

  // A form for each zero byte would need much more memory, too.
  auto const with_forms = [](std::size_t n) {
    std::string const bytes = mo({{"a\0b"_bytes, std::string(n - 1, '\0')}}, false);
    return sentence<data_error>([&] {
      if (message_catalogue("file", bytes).messages()[0].forms.size() != n) throw data_error("n");
    });
  };
  CHECK(with_forms(100) == "no error");
  CHECK(with_forms(101) == "'file': a message has more than 100 plural forms");
  CHECK(with_forms(1'000'000) == "'file': a message has more than 100 plural forms");

  // Many texts in one place would need much more memory than the file.
  std::string shared = mo(std::vector(100, std::pair<std::string, std::string>{"a", "b"}), false);
  std::string const last(4000, 'x');
  for (std::size_t i = 28; i < 28 + 1600; i += 8)
    shared.replace(i, 8, word(last.size(), 4, false) + word(shared.size(), 4, false));
  CHECK_THAT(sentence<data_error>([&] { message_catalogue("file", shared + last + '\0'); }),
             Catch::Contains("its texts overlap"));
}
