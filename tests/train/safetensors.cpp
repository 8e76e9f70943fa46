// SPDX-License-Identifier: BSL-1.0
//
// Safetensors files: what is written is read back, and everything that is not exactly such a file
// is refused in one sentence.
#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "catch.hpp"

#include <pipe/weights/safetensors.hpp>

#include "folder.hpp"
#include "system_calls.hpp"

namespace {

std::span<std::byte const> bytes_of(std::string const& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// A file by the letter of the format.
std::string file_of(std::string const& header, std::string const& data = "") {
  std::string length;
  for (int i = 0; i < 8; ++i) length += char(header.size() >> 8 * i & 0xFF);
  return length + header + data;
}

std::string said_of(std::string const& file) {
  return sentence<pp::data_error>([&] { pp::safetensors_file(bytes_of(file), "f"); });
}
/// Of a file with one tensor of 8 bytes, described by `fields`.
std::string said_of_tensor(std::string const& fields) {
  return said_of(file_of("{\"a\":{" + fields + "}}", std::string(8, 'x')));
}

}  // namespace

TEST_CASE("a file by the letter of the format is read") {
  std::string const header =
      R"({"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}, "__metadata__" : {"format":"pt","\u00e9\n":"\ud83d\ude00"},)"
      R"("a.weight":{"data_offsets":[0,4],"shape":[1,2],"dtype":"I16"},"none":{"dtype":"U8","shape":[3,0],"data_offsets":[4,4]},)"
      R"("one":{"dtype":"BOOL","shape":[],"data_offsets":[12,13]}}   )";
  std::string const text =
      file_of(header, std::string("\1\0\2\0", 4) + std::string("\0\0\x80\x3F\0\0\0\xC0", 8) + "\1");
  pp::safetensors_file file(bytes_of(text), "f");
  pp::safetensors_file const moved = std::move(file);
  REQUIRE(moved.tensors().size() == 4);
  CHECK(moved.tensors()[0].name == "a.weight");
  CHECK(moved.tensors()[1].name == "none");
  CHECK(moved.tensors()[2].name == "b");
  CHECK(moved.tensors()[3].name == "one");
  CHECK(moved.metadata() ==
        pp::detail::safetensors_metadata{{"format", "pt"}, {"\xC3\xA9\n", "\xF0\x9F\x98\x80"}});
  pp::safetensors_entry const* const b = moved.find("b");
  REQUIRE(b != nullptr);
  CHECK(b->type == pp::files::stored_type::f32);
  CHECK(b->shape == std::vector<long>{2});
  std::vector<float> numbers(2);
  pp::files::decode(b->type, b->bytes.data(), std::span<float>(numbers));
  CHECK(numbers == std::vector<float>{1, -2});
  CHECK(moved.find("a.weight")->shape == std::vector<long>{1, 2});
  CHECK(moved.find("a.weight")->bytes.size() == 4);
  CHECK(moved.find("none")->bytes.empty());
  CHECK(moved.find("one")->shape.empty());
  CHECK(moved.find("") == nullptr);
  CHECK(moved.find("zzz") == nullptr);
}

TEST_CASE("a tensor is found by its name and decoded") {
  temporary_folder const folder;
  std::string const path = folder.file("net.safetensors"), one("\0\0\x80\x3F", 4);
  pp::write_safetensors(path, {{"fc.bias", pp::files::stored_type::f32, {1}, bytes_of(one)}});
  // [read]
  pp::safetensors_file const file(path);
  std::vector<float> bias;
  if (pp::safetensors_entry const* const tensor = file.find("fc.bias")) {
    bias.resize(tensor->bytes.size() / std::size_t(pp::files::size_of(tensor->type)));
    pp::files::decode(tensor->type, tensor->bytes.data(),
                      std::span(bias));  // if pp::files::is_real(tensor->type)
  }
  // [/read]
  CHECK(bias == std::vector<float>{1});
}

TEST_CASE("a file without tensors is a file") {
  CHECK(said_of(file_of("{}")) == "no error");
  CHECK(said_of(file_of(R"({"__metadata__":{}})")) == "no error");
}

TEST_CASE("a file whose length cannot be is refused") {
  CHECK(said_of("") == "'f': a safetensors file has at least 8 bytes, found 0");
  CHECK(said_of("1234567") == "'f': a safetensors file has at least 8 bytes, found 7");
  CHECK(said_of(file_of("{}").substr(0, 9)) ==
        "'f': the header claims 2 bytes, but only 1 are left in the file");
  CHECK(said_of(std::string("\0\xE1\xF5\5\0\0\0\0{}", 10)) ==
        "'f': the header claims 100000000 bytes, but only 2 are left in the file");
  CHECK(said_of(std::string("\1\xE1\xF5\5\0\0\0\0{}", 10)) ==
        "'f': a header has at most 100000000 bytes, this one claims 100000001");
  CHECK(said_of(std::string(8, '\xFF') + "{}") ==
        "'f': a header has at most 100000000 bytes, this one claims 18446744073709551615");
}

TEST_CASE("a header that is no strict JSON is refused with the byte") {
  auto const said = [](std::string const& header) { return said_of(file_of(header)); };
  std::string const at = "'f': byte ";
  CHECK(said("") == at + "0 of the header: expected '{', found the end");
  CHECK(said("\xEF\xBB\xBF{}") == at + "0 of the header: expected '{', found a byte-order mark");
  CHECK(said("[]") == at + "0 of the header: expected '{', found '['");
  CHECK(said("{") == at + "1 of the header: expected a name in quotes, found the end");
  CHECK(said("{]") == at + "1 of the header: expected a name in quotes, found ']'");
  CHECK(said("{,}") == at + "1 of the header: expected a name in quotes, found ','");
  CHECK(said("{'a'}") == at + "1 of the header: expected a name in quotes, found '''");
  CHECK(said("{\"a\"}") == at + "4 of the header: expected ':' after the name 'a', found '}'");
  CHECK(said("{\"a") ==
        at + "3 of the header: expected '\"' at the end of a string, found the end");
  CHECK(
      said("{\"a\n") ==
      at + "3 of the header: expected a control character in a string as an escape, found '\\x0a'");
  CHECK(said("{\"\\x\"") == at + "3 of the header: expected an escape of JSON, found 'x'");
  CHECK(said("{\"\\") == at + "3 of the header: expected an escape of JSON, found the end");
  CHECK(said("{\"\\u12g4\"") == at + "6 of the header: expected a hexadecimal digit, found 'g'");
  CHECK(said("{\"\\u12") == at + "6 of the header: expected a hexadecimal digit, found the end");
  CHECK(said("{\"\\ud800\"") ==
        at + "8 of the header: expected a surrogate that has its second half, found '\"'");
  CHECK(said("{\"\\udc00\"") ==
        at + "8 of the header: expected a surrogate that has its second half, found '\"'");
  CHECK(said("{\"\\ud800\\u0041\"") ==
        at + "14 of the header: expected the second half of a surrogate, found '\"'");
  CHECK(said("{} x") ==
        at + "3 of the header: expected nothing but white space after the end, found 'x'");
  CHECK(said(std::string("{}\0", 3)) ==
        at + "2 of the header: expected nothing but white space after the end, found '\\x00'");
  CHECK(said("{\"__metadata__\":{}") ==
        at + "18 of the header: expected ',' or '}', found the end");
  CHECK(said("{\"__metadata__\":{},}") ==
        at + "19 of the header: expected a name in quotes, found '}'");
}

TEST_CASE("headers that the package safetensors reads are read") {
  // What safetensors 0.8 of PyPI says of each (tests/examples/test_interop_safetensors.py asks it).
  std::string const a = R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  for (std::string const& header :
       {"{" + a + "}", " {" + a + "}", "\n{" + a + "}", "{" + a + "}\r\n", "{" + a + "}\t ",
        "{\"__metadata__\":null," + a + "}", "{\"__metadata__\": null ,\n" + a + "\n}\n",
        "{" + a.substr(0, a.size() - 1) + R"(,"x":{"y":[1.5,null,true,"]"]}})" + "}"}) {
    INFO(header);
    std::string const text = file_of(header, std::string(4, '\0'));
    pp::safetensors_file const file(bytes_of(text), "f");
    REQUIRE(file.tensors().size() == 1);
    CHECK((file.tensors()[0].name == "a" && file.metadata().empty()));
  }
  for (std::string const& header :
       {"\xEF\xBB\xBF{" + a + "}", "{" + a + "}\f", "{\"b\":null," + a + "}",
        "{\"__metadata__\":{\"a\":null}," + a + "}",
        "{\"__metadata__\":null,\"__metadata__\":null," + a + "}"})
    CHECK(said_of(file_of(header, std::string(4, '\0'))) != "no error");
}

TEST_CASE("a header that is not UTF-8 is refused with the byte") {
  for (char const* const bad : {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80",
                                "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xC3",
                                "\xE2\x82", "\xF0\x9F\x98", "\xC3(", "\xFF"})
    CHECK(said_of(file_of("{\"a" + std::string(bad) + "\":"))
              .starts_with("'f': byte 3 of the header: expected UTF-8, found '\\x"));
  for (char const* const good :
       {"\x7F", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
        "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"})
    CHECK(said_of(file_of("{\"__metadata__\":{\"" + std::string(good) + "\":\"\"}}")) ==
          "no error");
}

TEST_CASE("values of the wrong kind are refused where they begin, however deep they nest") {
  auto const said = [](std::string const& header) { return said_of(file_of(header)); };
  CHECK(said("{\"a\":1}") ==
        "'f': tensor 'a': byte 5 of the header: expected '{' before dtype, shape and data_offsets, "
        "found '1'");
  CHECK(said("{\"a\":null}") ==
        "'f': tensor 'a': byte 5 of the header: expected '{' before dtype, shape and data_offsets, "
        "found 'n'");
  CHECK(said("{\"a\":" + std::string(1000000, '[')) ==
        "'f': tensor 'a': byte 5 of the header: expected '{' before dtype, shape and data_offsets, "
        "found '['");
  std::string deep = "{";
  for (int i = 0; i < 100000; ++i) deep += "\"a\":{";
  CHECK(said(deep) ==
        "'f': tensor 'a': byte 500001 of the header: expected a value, found the end");
  CHECK(said("{\"__metadata__\":[]}") ==
        "'f': __metadata__: byte 16 of the header: expected '{' before texts by name, found '['");
  CHECK(said("{\"__metadata__\":{\"a\":1}}") ==
        "'f': __metadata__: byte 21 of the header: expected a text in quotes, found '1'");
  CHECK(said("{\"__metadata__\":{\"a\":{}}}") ==
        "'f': __metadata__: byte 21 of the header: expected a text in quotes, found '{'");
  CHECK(said("{\"a\":{\"dtype\":5") ==
        "'f': tensor 'a': byte 14 of the header: expected the name of a type in quotes, found '5'");
  CHECK(said("{\"a\":{\"shape\":5") ==
        "'f': tensor 'a': byte 14 of the header: expected '[' before the extents of the shape, "
        "found '5'");
  CHECK(said("{\"a\":{\"shape\":[[1]]") ==
        "'f': tensor 'a': byte 15 of the header: expected a whole number, found '['");
  CHECK(said("{\"a\":{\"shape\":[1 2]") ==
        "'f': tensor 'a': byte 17 of the header: expected ',' or ']', found '2'");
  CHECK(said("{\"a\":{\"data_offsets\":{}") ==
        "'f': tensor 'a': byte 21 of the header: expected '[' before two offsets, found '{'");
}

TEST_CASE("numbers that count nothing are refused") {
  auto const said = [](std::string const& number) {
    return said_of_tensor("\"shape\":[" + number + "]");
  };
  std::string const at = "'f': tensor 'a': byte 15 of the header: expected ";
  for (char const* const wrong : {"-1", "1.5", "1e3", "2.0", "01", "+1", "-0", ".5"})
    CHECK(said(wrong) == at + "a whole number, found '" + wrong + "'");
  CHECK(said("0x8") == "'f': tensor 'a': byte 16 of the header: expected ',' or ']', found 'x'");
  CHECK(said("9223372036854775808") == at + "a number below 2^63, found '9223372036854775808'");
  CHECK(said("18446744073709551616") == at + "a number below 2^63, found '18446744073709551616'");
  CHECK(said(std::string(1000, '9')) ==
        at + "a number below 2^63, found '" + std::string(100, '9') + "'...");
  CHECK(said("") == "'f': tensor 'a': dtype is missing");
  CHECK(said("true") == at + "a whole number, found 't'");
}

TEST_CASE("a tensor needs its three fields, once") {
  std::string const type = "\"dtype\":\"F32\"", shape = "\"shape\":[2]",
                    offsets = "\"data_offsets\":[0,8]";
  CHECK(said_of_tensor(type + "," + shape + "," + offsets) == "no error");
  CHECK(said_of_tensor(type + "," + shape) == "'f': tensor 'a': data_offsets is missing");
  CHECK(said_of_tensor(type + "," + offsets) == "'f': tensor 'a': shape is missing");
  CHECK(said_of_tensor(shape + "," + offsets) == "'f': tensor 'a': dtype is missing");
  CHECK(said_of_tensor("") == "'f': tensor 'a': dtype is missing");
  for (auto const& [twice, name] :
       {std::pair(type, "dtype"), {shape, "shape"}, {offsets, "data_offsets"}})
    CHECK(said_of_tensor(type + "," + shape + "," + offsets + "," + twice) ==
          std::string("'f': tensor 'a': ") + name + " occurs twice");
  CHECK(said_of_tensor(type + ",\"strides\":[1]") == "'f': tensor 'a': shape is missing");
  CHECK(said_of_tensor("\"data_offsets\":[]") ==
        "'f': tensor 'a': expected two data_offsets, found 0");
  CHECK(said_of_tensor("\"data_offsets\":[0]") ==
        "'f': tensor 'a': expected two data_offsets, found 1");
  CHECK(said_of_tensor("\"data_offsets\":[0,4,8]") ==
        "'f': tensor 'a': byte 26 of the header: expected ']' after two offsets, found '8'");
}

TEST_CASE("a tensor of a type that is not known is kept under the type's name") {
  for (std::string const type : {"F4", "F6_E2M3", "F31", "f32", ""}) {
    std::string const fields = "\"dtype\":\"" + type + "\",\"shape\":[7,3],\"data_offsets\":[0,";
    std::string const text = file_of("{\"a\":{" + fields + "8]}}", "12345678");
    pp::safetensors_file const file(bytes_of(text), "f");
    REQUIRE(file.tensors().size() == 1);
    CHECK(file.tensors()[0].type == pp::files::stored_type::other);
    CHECK(file.tensors()[0].other_type == type);
    CHECK(!pp::files::is_real(file.tensors()[0].type));
    CHECK(file.tensors()[0].bytes.size() == 8);
    CHECK(said_of_tensor(fields + "9]") ==
          "'f': tensor 'a': data_offsets [0, 9] reach beyond the data, which has 8 bytes");
    CHECK(said_of_tensor(fields + "7]") ==
          "'f': the tensors end at byte 7 of the data, which has 8 bytes");
  }
  temporary_folder const folder;
  CHECK(sentence<pp::data_error>([&] {
          pp::write_safetensors(folder.file("a"),
                                {{"a", pp::files::stored_type::other, {}, {}, "F4"}});
        }) == "tensor 'a': expected a type of stored_type, got `other`");
  CHECK(folder.names().empty());
}

TEST_CASE("names stand there once") {
  std::string const one = "{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}";
  std::string const two = "{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}";
  CHECK(said_of(file_of("{\"a\":" + one + ",\"a\":" + two + "}", "xy")) ==
        "'f': tensor 'a': occurs twice");
  CHECK(said_of(file_of("{\"a\":" + one + ",\"\\u0061\":" + two + "}", "xy")) ==
        "'f': tensor 'a': occurs twice");
  CHECK(said_of(file_of("{\"__metadata__\":{},\"__metadata__\":{}}")) ==
        "'f': __metadata__ occurs twice");
  CHECK(said_of(file_of("{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}")) ==
        "'f': __metadata__: the name 'k' occurs twice");
}

TEST_CASE("shape, type and offsets must agree, without any product running over") {
  auto const said = [](char const* type, char const* shape, char const* offsets) {
    return said_of_tensor(std::string("\"dtype\":\"") + type + "\",\"shape\":" + shape +
                          ",\"data_offsets\":" + offsets);
  };
  std::string const a = "'f': tensor 'a': ";
  CHECK(said("F32", "[3]", "[0,8]") ==
        a + "shape [3] of F32 needs 12 bytes, data_offsets [0, 8] hold 8");
  CHECK(said("F64", "[]", "[0,4]") ==
        a + "shape [] of F64 needs 8 bytes, data_offsets [0, 4] hold 4");
  CHECK(said("F32", "[2]", "[8,0]") == a + "data_offsets [8, 0] end before they begin");
  CHECK(said("F32", "[2]", "[4,12]") ==
        a + "data_offsets [4, 12] reach beyond the data, which has 8 bytes");
  CHECK(said("U8", "[9223372036854775807]", "[0,9223372036854775807]") ==
        a + "data_offsets [0, 9223372036854775807] reach beyond the data, which has 8 bytes");
  // Products that are 0 or 8 modulo 2^64: the shapes that unchecked readers take for small ones.
  for (char const* const shape : {"[4294967296, 4294967296]", "[4611686018427387905, 4]",
                                  "[9223372036854775807, 2]", "[4294967296, 4294967296, 0]"})
    CHECK(said("U8", shape, "[0,8]") ==
          a + "shape " + shape + " of U8 has more bytes than 63 bits can count");
  CHECK(said("F64", "[2305843009213693953]", "[0,8]") ==
        a + "shape [2305843009213693953] of F64 has more bytes than 63 bits can count");
  CHECK(said("U8", "[0, 4294967296, 4294967296]", "[0,8]") ==
        a + "shape [0, 4294967296, 4294967296] of U8 needs 0 bytes, data_offsets [0, 8] hold 8");
  std::string many = "[1";
  for (int i = 0; i < 31; ++i) many += ",1";
  CHECK(said("F64", (many + "]").c_str(), "[0,8]") == "no error");
  CHECK(said("F64", (many + ",1]").c_str(), "[0,8]") == a + "the shape has more than 32 extents");
}

TEST_CASE("tensors share the data out among themselves: no hole, no overlap, nothing left") {
  auto const tensor = [](char const* name, int begin, int end) {
    return std::string("\"") + name + "\":{\"dtype\":\"U8\",\"shape\":[" +
           std::to_string(end - begin) + "],\"data_offsets\":[" + std::to_string(begin) + "," +
           std::to_string(end) + "]}";
  };
  auto const said = [&](std::string const& tensors) {
    return said_of(file_of("{" + tensors + "}", "12345678"));
  };
  CHECK(said(tensor("b", 3, 8) + "," + tensor("a", 0, 3)) == "no error");
  CHECK(said(tensor("a", 1, 8)) ==
        "'f': tensor 'a': begins at byte 1 and leaves a hole after the header");
  CHECK(
      said(tensor("a", 0, 3) + "," + tensor("b", 4, 8)) ==
      "'f': tensor 'b': begins at byte 4 and leaves a hole after tensor 'a', which ends at byte 3");
  CHECK(said(tensor("a", 0, 5) + "," + tensor("b", 4, 8)) ==
        "'f': tensor 'b': begins at byte 4 and overlaps with tensor 'a', which ends at byte 5");
  CHECK(said(tensor("a", 0, 8) + "," + tensor("b", 0, 8)) ==
        "'f': tensor 'b': begins at byte 0 and overlaps with tensor 'a', which ends at byte 8");
  CHECK(said(tensor("a", 0, 8) + "," + tensor("b", 4, 4)) ==
        "'f': tensor 'b': begins at byte 4 and overlaps with tensor 'a', which ends at byte 8");
  CHECK(said(tensor("a", 0, 7)) == "'f': the tensors end at byte 7 of the data, which has 8 bytes");
  CHECK(said("") == "'f': the tensors end at byte 0 of the data, which has 8 bytes");
}

TEST_CASE("names out of a file reach a message harmlessly") {
  CHECK(said_of(file_of("{\"\\u001b[2J\\u0000\xC3\xA9\":{}}")) ==
        "'f': tensor '\\x1b[2J\\x00\\xc3\\xa9': dtype is missing");
  CHECK(said_of(file_of("{\"" + std::string(5000, 'n') + "\":{}}")) ==
        "'f': tensor '" + std::string(100, 'n') + "'...: dtype is missing");
}

TEST_CASE("every type keeps its name and every bit through a file") {
  temporary_folder const folder;
  std::vector<std::string> data;
  std::vector<pp::safetensors_entry> tensors;
  for (int t = 0; t < pp::detail::stored_types; ++t) {
    pp::files::stored_type const type = pp::files::stored_type(t);
    CHECK(pp::detail::stored_type_named(pp::files::name_of(type)) == type);
    std::string bytes;
    for (int i = 0; i < 15 * pp::files::size_of(type); ++i) bytes += char(37 * i + 11 * t);
    data.push_back(bytes);
    tensors.push_back({std::string("t.") + pp::files::name_of(type), type, {3, 5}, {}});
  }
  for (std::size_t t = 0; t < tensors.size(); ++t) tensors[t].bytes = bytes_of(data[t]);
  tensors.push_back({"scalar", pp::files::stored_type::f32, {}, tensors[0].bytes.first(4)});
  tensors.push_back({"empty", pp::files::stored_type::f32, {0, 7}, {}});
  tensors.push_back(
      {"\"\\\n\x01\xC3\xA9", pp::files::stored_type::u8, {1}, tensors[0].bytes.first(1)});
  pp::detail::safetensors_metadata const metadata{{"a \"quote\"", "\\ \t \x1F"},
                                                  {"", "\xF0\x9F\x98\x80"}};

  pp::write_safetensors(folder.file("a"), tensors, metadata);
  pp::safetensors_file const file(folder.file("a"));
  CHECK(file.metadata() == metadata);
  CHECK(file.tensors().size() == tensors.size());
  for (pp::safetensors_entry const& t : tensors) {
    INFO(t.name);
    pp::safetensors_entry const* const found = file.find(t.name);
    REQUIRE(found != nullptr);
    CHECK(found->type == t.type);
    CHECK(found->shape == t.shape);
    CHECK(std::equal(found->bytes.begin(), found->bytes.end(), t.bytes.begin(), t.bytes.end()));
    CHECK((found->bytes.data() - file.tensors()[0].bytes.data()) % pp::files::size_of(t.type) == 0);
  }
  std::uint64_t const header_bytes = std::uint64_t(content(folder.file("a"))[0] & 0xFF);
  CHECK(header_bytes % 8 == 0);
  CHECK(folder.names() == std::set<std::string>{"a"});

  pp::write_safetensors(folder.file("b"), tensors, metadata);
  CHECK(content(folder.file("a")) == content(folder.file("b")));
  pp::write_safetensors(folder.file("c"), file.tensors(), file.metadata());
  CHECK(content(folder.file("a")) == content(folder.file("c")));
}

TEST_CASE("tensors keep their order through a file, those without bytes too") {
  temporary_folder const folder;
  std::string const data(8, 'x');
  pp::write_safetensors(folder.file("a"), {{"d", pp::files::stored_type::f16, {0}, {}},
                                           {"z", pp::files::stored_type::f32, {0}, {}},
                                           {"c", pp::files::stored_type::f32, {2}, bytes_of(data)},
                                           {"y", pp::files::stored_type::f32, {0, 1}, {}},
                                           {"b", pp::files::stored_type::f32, {0}, {}}});
  pp::safetensors_file const file(folder.file("a"));
  std::string names;
  for (pp::safetensors_entry const& t : file.tensors()) names += t.name;
  CHECK(names == "zcybd");  // larger types first
  pp::write_safetensors(folder.file("b"), file.tensors());
  CHECK(content(folder.file("a")) == content(folder.file("b")));
}

TEST_CASE("the bytes of a file, one by one") {
  temporary_folder const folder;
  std::string const data("\0\0\x80\x3F", 4);
  pp::write_safetensors(folder.file("a"),
                        {{"w", pp::files::stored_type::f32, {1, 1}, bytes_of(data)}}, {{"k", "v"}});
  CHECK(
      content(folder.file("a")) ==
      file_of(
          R"({"__metadata__":{"k":"v"},"w":{"dtype":"F32","shape":[1,1],"data_offsets":[0,4]}}       )",
          data));
  pp::write_safetensors(folder.file("a"), {});
  CHECK(content(folder.file("a")) == file_of("{}      "));
}

TEST_CASE("real numbers are decoded and encoded, to float and to double") {
  std::vector<double> const numbers{
      0, -0.0, 1, -2.5, 65504, 0x1p-24, std::numeric_limits<double>::infinity()};
  for (pp::files::stored_type const type :
       {pp::files::stored_type::f64, pp::files::stored_type::f32, pp::files::stored_type::f16}) {
    std::vector<std::byte> bytes(numbers.size() * std::size_t(pp::files::size_of(type)));
    pp::detail::encode(type, std::span<double const>(numbers), bytes.data());
    std::vector<double> doubles(numbers.size());
    std::vector<float> floats(numbers.size());
    pp::files::decode(type, bytes.data(), std::span<double>(doubles));
    pp::files::decode(type, bytes.data(), std::span<float>(floats));
    CHECK(doubles == numbers);
    CHECK(std::signbit(doubles[1]));
    CHECK(std::vector<double>(floats.begin(), floats.end()) == numbers);
  }
  std::vector<float> const some{1, -2, 3.140625f};
  std::byte bytes[6];
  pp::detail::encode(pp::files::stored_type::bf16, std::span<float const>(some), bytes);
  CHECK(bytes[0] == std::byte(0x80));
  CHECK(bytes[1] == std::byte(0x3F));
  std::vector<float> back(3);
  pp::files::decode(pp::files::stored_type::bf16, bytes, std::span<float>(back));
  CHECK(back == some);
}

TEST_CASE("tensors that cannot be a file are refused before there is one") {
  temporary_folder const folder;
  auto const said = [&](std::vector<pp::safetensors_entry> const& tensors,
                        pp::detail::safetensors_metadata const& metadata = {}) {
    return sentence<pp::data_error>(
        [&] { pp::write_safetensors(folder.file("a"), tensors, metadata); });
  };
  std::string const data(8, 'x');
  auto const bytes = bytes_of(data);
  pp::files::stored_type const f32 = pp::files::stored_type::f32;
  CHECK(said({{"a", f32, {2}, bytes}, {"a", f32, {2}, bytes}}) ==
        "tensor 'a': two tensors have this name");
  CHECK(said({{"__metadata__", f32, {2}, bytes}}) ==
        "tensor '__metadata__': the format reserves this name");
  CHECK(said({{"\xFF", f32, {2}, bytes}}) == "tensor '\\xff': the name is not UTF-8");
  CHECK(said({{"a", f32, {3}, bytes}}) == "tensor 'a': shape [3] of F32 needs 12 bytes, got 8");
  CHECK(said({{"a", f32, {-2, -1}, bytes}}) ==
        "tensor 'a': shape [-2, -1]: expected extents of 0 or more");
  CHECK(said({{"a", f32, {1L << 62, 1L << 62}, bytes}}) ==
        "tensor 'a': shape [4611686018427387904, 4611686018427387904] of F32: more bytes in all "
        "than 63 bits can count");
  CHECK(
      said(
          {{"a", f32, {1L << 60}, bytes}, {"b", f32, {1L << 60}, bytes}, {"c", f32, {1}, bytes}}) ==
      "tensor 'b': shape [1152921504606846976] of F32: more bytes in all than 63 bits can count");
  CHECK(said({{"a", f32, std::vector<long>(33, 1), bytes.first(4)}}) ==
        "tensor 'a': expected a shape of at most 32 extents, got 33");
  CHECK(said({}, {{"k", "\xFF"}}) == "metadata 'k': expected UTF-8, got '\\xff'");
  CHECK(folder.names().empty());
}

TEST_CASE("a header of more than 100 MB is refused before there is a file", "[long]") {
  temporary_folder const folder;
  CHECK(sentence<pp::data_error>([&] {
          pp::write_safetensors(folder.file("a"), {}, {{"k", std::string(100'000'000, 'x')}});
        }) == "the header: expected at most 100000000 bytes, got 100000032");
  CHECK(folder.names().empty());
}

TEST_CASE("a file that cannot be read is named with the reason") {
  temporary_folder const folder;
  auto const said = [](std::string const& path) {
    return sentence<pp::file_error>([&] { pp::safetensors_file const file(path); });
  };
  CHECK(said(folder.file("none")) ==
        "cannot read '" + folder.file("none") + "': No such file or directory");
  CHECK(said(folder.file("")) == "cannot read '" + folder.file("") + "': it is not a file");
  if (!std::filesystem::exists("/dev/zero"))
    WARN("skipped: there is no /dev/zero");
  else
    CHECK(said("/dev/zero") == "cannot read '/dev/zero': it is not a file");
  std::string const path = folder.write(
      "a", file_of(R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}})", "12345678"));
  for (int call = 0; call < 3; ++call) {  // the length, the header, the data
    planned_mishap const plan(mishap::fails, call, EIO);
    CHECK(said(path) == "cannot read '" + path + "': " + std::strerror(EIO));
  }
  for (int call = 0; call < 3; ++call)
    for (mishap const what : {mishap::interrupted, mishap::short_count}) {
      planned_mishap const plan(what, call);
      CHECK(said(path) == "no error");
      CHECK(plan.happened());
    }
}

TEST_CASE("a file that is cut off anywhere is refused") {
  temporary_folder const folder;
  std::string const whole =
      file_of(R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}})", "12345678");
  for (std::size_t length = 0; length < whole.size(); ++length) {
    std::string const path = folder.write("a", whole.substr(0, length));
    CHECK(sentence<pp::data_error>([&] {
            pp::safetensors_file const file(path);
          }).starts_with("'" + path + "': "));
  }
}
