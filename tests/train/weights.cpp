// SPDX-License-Identifier: BSL-1.0
//
// Weights out of and into a model: by name, in the file's layout, in any real type, and all or
// nothing.
#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "catch.hpp"

#include <pipe/nn/activation.hpp>
#include <pipe/nn/custom.hpp>
#include <pipe/nn/linear.hpp>
#include <pipe/nn/loss.hpp>
#include <pipe/nn/model.hpp>
#include <pipe/train/pipeline.hpp>
#include <pipe/weights/weights.hpp>

#include "folder.hpp"
#include "system_calls.hpp"

namespace {

using strings = std::vector<std::string>;

/// A Linear of two inputs and three outputs, and a norm: what a trainer has of it, without a
/// trainer.
template <class T>
struct parameters_of_two_layers {
  std::vector<T> weight{1, 2, 3, 4, 5, 6};  // [inputs, outputs]
  std::vector<T> bias{7, 8, 9};
  std::vector<T> scale{10, 11, 12};

  std::vector<pp::detail::named_parameter<T>> all() {
    return {{"fc.weight", {3, 2}, true, 2, 3, weight},
            {"fc.bias", {3}, false, 1, 3, bias},
            {"norm.weight", {3}, false, 1, 3, scale}};
  }
  friend bool operator==(parameters_of_two_layers const&,
                         parameters_of_two_layers const&) = default;
};

/// y = w x with one number for each of 2 x 3 x 2 x 2 numbers of a sample: a parameter of four
/// extents.
struct Scales {
  static constexpr pp::sample_shape result(pp::sample_shape in) { return in; }
  static constexpr int parameters = 1;
  static constexpr pp::custom::parameter parameter(int, pp::sample_shape) {
    return {.name = "scales",
            .initial = {pp::distribution::normal, 1},
            .form = pp::sample_shape(2, 3, 2, 2)};
  }
  template <class T>
  static void forward(pp::custom::forward<T> const& a) {
    for (int i = 0; i < a.samples * 24; ++i) a.y[i] = a.parameter[0][i % 24] * a.x[i];
  }
  template <class T>
  static void input_gradient(pp::custom::input_gradient<T> const& a) {
    for (int i = 0; i < a.samples * 24; ++i) a.dx[i] = a.parameter[0][i % 24] * a.dy[i];
  }
  template <class T>
  static void weight_gradient(pp::custom::weight_gradient<T> const& a) {
    for (int i = 0; i < a.samples * 24; ++i) a.gradient[0][i % 24] += a.x[i] * a.dy[i];
  }
};

template <class T>
std::vector<T> numbers_of(pp::safetensors_file const& file, char const* name) {
  pp::safetensors_entry const* const tensor = file.find(name);
  REQUIRE(tensor != nullptr);
  std::vector<T> numbers(tensor->bytes.size() / std::size_t(pp::files::size_of(tensor->type)));
  pp::files::decode(tensor->type, tensor->bytes.data(), std::span<T>(numbers));
  return numbers;
}

template <class T>
pp::safetensors_entry entry(std::string name, std::vector<long> shape,
                            std::vector<T> const& numbers) {
  return {std::move(name), pp::detail::stored_type_of<T>(), std::move(shape),
          std::as_bytes(std::span(numbers))};
}

/// What a Pipeline's view of a parameter says of its place in a file.
struct view_with_name {
  std::string name;
  int rows, columns;
  bool stored_transposed;
  std::vector<long> file_shape;
  std::span<float> values;
};

struct trainer_with_names {
  std::vector<float> weight{1, 2, 3, 4, 5, 6};
  int changes = 0;
  std::vector<view_with_name> parameters() { return {{"w", 2, 3, true, {3, 2}, weight}}; }
  void parameters_changed() { ++changes; }
};

}  // namespace

TEST_CASE("a parameter that the file has transposed is turned on both ways") {
  temporary_folder const folder;
  parameters_of_two_layers<float> model;
  pp::save_weights(model.all(), folder.file("a"));
  pp::safetensors_file const file(folder.file("a"));
  CHECK(file.metadata() == pp::detail::safetensors_metadata{{"format", "pt"}});
  REQUIRE(file.tensors().size() == 3);
  CHECK(file.tensors()[0].name == "fc.weight");
  CHECK(file.tensors()[0].shape == std::vector<long>{3, 2});
  CHECK(numbers_of<float>(file, "fc.weight") == std::vector<float>{1, 4, 2, 5, 3, 6});
  CHECK(numbers_of<float>(file, "fc.bias") == model.bias);

  parameters_of_two_layers<float> other{std::vector<float>(6), std::vector<float>(3),
                                        std::vector<float>(3)};
  pp::load_report const report = pp::load_weights(other.all(), folder.file("a"));
  CHECK(other == model);
  CHECK(report.loaded == strings{"fc.weight", "fc.bias", "norm.weight"});
  CHECK(report.missing.empty());
  CHECK(report.unused.empty());
}

TEST_CASE("the weight of a convolution is in PyTorch's order in a file: its window last") {
  std::vector<float> kernel{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, read(12);  // [3 * 2, 2]
  temporary_folder const folder;
  std::vector<pp::detail::named_parameter<float>> const from{
      {"conv", {2, 2, 3, 1}, true, 6, 2, kernel}},
      to{{"conv", {2, 2, 3, 1}, true, 6, 2, read}};
  pp::save_weights(from, folder.file("a"));
  CHECK(numbers_of<float>(pp::safetensors_file(folder.file("a")), "conv") ==
        std::vector<float>{0, 4, 8, 2, 6, 10, 1, 5, 9, 3, 7, 11});
  pp::load_weights(to, folder.file("a"));
  CHECK(read == kernel);
}

TEMPLATE_TEST_CASE("weights go through every real type", "", float, double) {
  temporary_folder const folder;
  for (pp::files::stored_type const type :
       {pp::files::stored_type::f64, pp::files::stored_type::f32, pp::files::stored_type::f16,
        pp::files::stored_type::bf16}) {
    parameters_of_two_layers<TestType> model, other;
    model.weight[1] = -0.15625;
    other.weight.assign(6, 0), other.bias.assign(3, 0), other.scale.assign(3, 0);
    pp::save_weights(model.all(), folder.file("a"), type);
    pp::safetensors_file const file(folder.file("a"));
    CHECK(file.tensors()[0].type == type);
    pp::load_weights(other.all(), file);
    CHECK(other == model);
  }
}

TEST_CASE(
    "numbers of the element's own type keep their bits, infinite ones and not-a-numbers too") {
  temporary_folder const folder;
  std::vector<float> values{0.1f,
                            -0.0f,
                            std::numeric_limits<float>::denorm_min(),
                            std::numeric_limits<float>::max(),
                            INFINITY,
                            std::numeric_limits<float>::quiet_NaN()};
  std::vector<float> read(6);
  pp::save_weights<float>({{"a", {6}, false, 1, 6, values}}, folder.file("a"));
  pp::load_weights<float>({{"a", {6}, false, 1, 6, read}}, folder.file("a"));
  CHECK(std::equal(values.begin(), values.end(), read.begin(), [](float a, float b) {
    return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
  }));
}

TEST_CASE("a strict load tells all that does not fit, and changes nothing") {
  temporary_folder const folder;
  std::vector<float> const six(6, -1), three(3, -1);
  std::vector<std::int32_t> const whole(3, 1);
  parameters_of_two_layers<float> const before;
  parameters_of_two_layers<float> model;
  auto const said = [&](std::vector<pp::safetensors_entry> const& tensors) {
    pp::write_safetensors(folder.file("a"), tensors);
    std::string const text =
        sentence<pp::data_error>([&] { pp::load_weights(model.all(), folder.file("a")); });
    CHECK((text == "no error" || model == before));
    std::string const start = "the weights in '" + folder.file("a") + "' do not fit the model: ";
    return text.starts_with(start) ? text.substr(start.size()) : text;
  };
  auto const weight = entry("fc.weight", {3, 2}, six), bias = entry("fc.bias", {3}, three),
             scale = entry("norm.weight", {3}, three);
  CHECK(said({weight, bias}) == "parameter 'norm.weight': not in the file");
  CHECK(said({weight, bias, scale, entry("norm.bias", {3}, three)}) ==
        "tensor 'norm.bias': not in the model");
  CHECK(said({entry("fc.weight", {2, 3}, six), bias, scale}) ==
        "tensor 'fc.weight': expected shape [3, 2], found [2, 3]");
  CHECK(said({entry("fc.weight", {6}, six), bias, scale}) ==
        "tensor 'fc.weight': expected shape [3, 2], found [6]");
  CHECK(said({weight, entry("fc.bias", {3, 1}, three), scale}) ==
        "tensor 'fc.bias': expected shape [3], found [3, 1]");
  CHECK(
      said({weight,
            bias,
            {"norm.weight", pp::files::stored_type::i32, {3}, std::as_bytes(std::span(whole))}}) ==
      "tensor 'norm.weight': expected F64, F32, F16 or BF16, found I32");
  CHECK(said({entry("fc.weight", {2, 3}, six), entry("other", {3}, three), bias}) ==
        "tensor 'fc.weight': expected shape [3, 2], found [2, 3]; parameter 'norm.weight': not in "
        "the file; "
        "tensor 'other': not in the model");
  // What PyTorch's batch norms count is not read, nor is an extent of 1 before others.
  CHECK(said({weight, entry("fc.bias", {1, 3}, three), scale,
              entry("norm.num_batches_tracked", {3}, three)}) == "no error");
  CHECK(model.bias == three);
}

TEST_CASE("a number that the model's type cannot hold is refused before anything changes") {
  temporary_folder const folder;
  parameters_of_two_layers<float> const before;
  parameters_of_two_layers<float> model;
  std::vector<double> const six(6, 0), large{1, INFINITY, -1e39}, small{1e-50, INFINITY, 3e38};
  auto const load = [&](std::vector<double> const& scale) {
    pp::write_safetensors(folder.file("a"),
                          {entry("fc.weight", {3, 2}, six), entry("fc.bias", {3}, small),
                           entry("norm.weight", {3}, scale)});
    pp::load_weights(model.all(), folder.file("a"));
  };
  CHECK(sentence<pp::data_error>([&] { load(large); }) ==
        "the weights in '" + folder.file("a") +
            "' do not fit the model: tensor 'norm.weight': number 2 is too large for F32");
  CHECK(model == before);
  load(small);
  CHECK(model.scale == std::vector<float>{0, INFINITY, 3e38f});
}

TEST_CASE("many problems are counted, the first eight told") {
  temporary_folder const folder;
  std::vector<float> values(1);
  std::vector<pp::detail::named_parameter<float>> parameters;
  for (int i = 0; i < 11; ++i)
    parameters.push_back({"p" + std::to_string(i), {1}, false, 1, 1, values});
  pp::write_safetensors(folder.file("a"), {});
  std::string const text =
      sentence<pp::data_error>([&] { pp::load_weights(parameters, folder.file("a")); });
  CHECK(text.find("parameter 'p7': not in the file; and 3 more") != text.npos);
  CHECK(text.find("'p8'") == text.npos);
  parameters.resize(8);
  CHECK(sentence<pp::data_error>([&] {
          pp::load_weights(parameters, folder.file("a"));
        }).ends_with("parameter 'p7': not in the file"));
}

TEST_CASE("a partial load takes what both have and reports the rest") {
  temporary_folder const folder;
  parameters_of_two_layers<float> model;
  std::vector<float> const three{-1, -2, -3}, two(2);
  pp::write_safetensors(folder.file("a"),
                        {entry("other", {3}, three), entry("fc.bias", {3}, three)});
  auto const trainer = model.all();
  std::string const path = folder.file("a");
  // [partial]
  pp::load_report const report = pp::load_weights(trainer, path, pp::load_policy::partial);
  // [/partial]
  CHECK(report.loaded == strings{"fc.bias"});
  CHECK(report.missing == strings{"fc.weight", "norm.weight"});
  CHECK(report.unused == strings{"other"});
  CHECK(model.bias == three);
  CHECK(model.weight == parameters_of_two_layers<float>().weight);

  pp::write_safetensors(folder.file("a"),
                        {entry("norm.weight", {3}, three), entry("fc.bias", {2}, two)});
  CHECK(sentence<pp::data_error>([&] {
          pp::load_weights(model.all(), folder.file("a"), pp::load_policy::partial);
        }) == "the weights in '" + folder.file("a") +
                  "' do not fit the model: tensor 'fc.bias': expected shape [3], found [2]");
  CHECK(model.scale == parameters_of_two_layers<float>().scale);
}

TEST_CASE("a partial load that would load nothing is refused and names what there is") {
  temporary_folder const folder;
  parameters_of_two_layers<float> model;
  std::vector<float> const three(3, -1);
  std::vector<pp::safetensors_entry> tensors;
  auto const said = [&] {
    pp::write_safetensors(folder.file("a"), tensors);
    std::string const text = sentence<pp::data_error>(
        [&] { pp::load_weights(model.all(), folder.file("a"), pp::load_policy::partial); });
    CHECK(model == parameters_of_two_layers<float>());
    return text;
  };
  std::string const start = "the weights in '" + folder.file("a") +
                            "' do not fit the model: no name in common: the file has ";
  std::string const end = "; the model wants 'fc.weight', 'fc.bias', 'norm.weight'";
  CHECK(said() == start + "none" + end);
  for (char const* const name : {"0.fc.bias", "0.norm.weight", "0.fc.weight", "x", "y"})
    tensors.push_back(entry(name, {3}, three));
  CHECK(said() == start + "'0.fc.bias', '0.norm.weight', '0.fc.weight' and 2 more" + end);
}

TEST_CASE("tensors of a type that is not known matter only to who asks for them") {
  temporary_folder const folder;
  std::string const header =
      R"({"scale":{"dtype":"F4","shape":[3],"data_offsets":[12,14]},"fc.bias":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}})";
  std::string bytes(8, '\0');
  bytes[0] = char(header.size());
  folder.write("a", bytes + header + std::string(14, '\0'));
  parameters_of_two_layers<float> model;
  pp::load_report const report =
      pp::load_weights(model.all(), folder.file("a"), pp::load_policy::partial);
  CHECK(report.loaded == strings{"fc.bias"});
  CHECK(report.unused == strings{"scale"});
  CHECK(model.bias == std::vector<float>(3));
  std::vector<float> values(3);
  CHECK(sentence<pp::data_error>([&] {
          pp::load_weights<float>({{"scale", {3}, false, 1, 3, values}}, folder.file("a"),
                                  pp::load_policy::partial);
        }).ends_with("tensor 'scale': expected F64, F32, F16 or BF16, found 'F4'"));
}

TEST_CASE("no memory is taken for tensors that are not loaded") {
  temporary_folder const folder;
  std::string const path = folder.file("a"), terabyte = "1099511627776";
  std::string const header = R"({"other":{"dtype":"U8","shape":[)" + terabyte +
                             R"(],"data_offsets":[0,)" + terabyte +
                             R"(]},"fc.bias":{"dtype":"F32","shape":[3],"data_offsets":[)" +
                             terabyte + R"(,1099511627788]}})";
  std::string bytes(8, '\0');
  bytes[0] = char(header.size());
  folder.write("a", bytes + header);
  std::error_code refused;
  std::filesystem::resize_file(path, 8 + header.size() + 1099511627788, refused);
  if (refused) {
    WARN("the file system has no sparse files of a terabyte");
    return;
  }
  parameters_of_two_layers<float> model;
  CHECK(pp::load_weights(model.all(), path, pp::load_policy::partial).loaded == strings{"fc.bias"});
  CHECK(model.bias == std::vector<float>(3));
  CHECK(sentence<pp::data_error>([&] {
          pp::load_weights(model.all(), path);
        }).find("'other': not in the model") != std::string::npos);
#if !PIPE_TESTS_SANITIZED  // a sanitizer ends the program that asks for so much
  resource_limit const limit(RLIMIT_AS, rlim_t(1) << 36);
  CHECK(sentence<pp::file_error>([&] { pp::safetensors_file file(path); }) ==
        "cannot read '" + path + "': no memory for the 1099511627788 bytes of its tensors");
#endif
}

TEST_CASE("whichever allocation or read fails, parameters change all or not at all") {
  temporary_folder const folder;
  std::string const path = folder.file("a");
  parameters_of_two_layers<float> const before;
  parameters_of_two_layers<float> source{std::vector<float>(6, -1), std::vector<float>(3, -2),
                                         std::vector<float>(3, -3)};
  pp::save_weights(source.all(), path);
  for (pp::load_policy const policy : {pp::load_policy::strict, pp::load_policy::partial}) {
    int failures = 0;
    for (bool failed = true; failed; ++failures) {
      parameters_of_two_layers<float> model;
      auto const parameters = model.all();
      failed = failing_allocation::happened(failures,
                                            [&] { pp::load_weights(parameters, path, policy); });
      CHECK(model == (failed ? before : source));
    }
    CHECK(failures > 20);
    int reads = 0;
    for (bool failed = true; failed; ++reads) {
      parameters_of_two_layers<float> model;
      planned_mishap const plan(mishap::fails, reads, EIO);
      std::string const said =
          sentence<pp::file_error>([&] { pp::load_weights(model.all(), path, policy); });
      failed = plan.happened();
      CHECK(said == (failed ? "cannot read '" + path + "': Input/output error" : "no error"));
      CHECK(model == (failed ? before : source));
    }
    CHECK(reads == 6);  // the length, the header, three tensors
  }
}

namespace {

/// Parameters that load_weights reads in place.
struct weights_in_place : trainer_with_names {
  static constexpr bool is_read_in_place = true;
  std::vector<float> other = std::vector<float>(2);
  std::vector<view_with_name> parameters() {
    return {{"w", 2, 3, true, {3, 2}, weight}, {"a", 1, 2, false, {2}, other}};
  }
};

}  // namespace

TEST_CASE("weights in place are compared with the file before one is read") {
  temporary_folder const folder;
  std::string const path = folder.file("a");
  std::vector<double> const six{1, 4, 2, 5, 3, 6}, two{7, 8}, large{9, 1e39};
  auto const load = [&](std::vector<double> const& of_a, std::string const& name) {
    weights_in_place to;
    to.weight.assign(6, 0);
    pp::write_safetensors(path, {entry("w", {3, 2}, six), entry(name, {2}, of_a)});
    std::string const text = sentence<pp::data_error>([&] { pp::load_weights(to, path); });
    if (text == "no error")
      CHECK(to.weight == std::vector<float>{1, 2, 3, 4, 5, 6});
    else
      CHECK(to.weight == std::vector<float>(6));
    return std::pair(text, to.other);
  };
  CHECK(load(two, "a") == std::pair(std::string("no error"), std::vector<float>{7, 8}));
  CHECK(load(two, "b").first.ends_with(
      "parameter 'a': not in the file; tensor 'b': not in the model"));
  CHECK(load(large, "a").first.ends_with("tensor 'a': number 1 is too large for F32"));
}

TEST_CASE("weights come from the files that an index names, or a folder has") {
  temporary_folder const folder;
  std::vector<float> const six{1, 4, 2, 5, 3, 6}, three{7, 8, 9};
  pp::write_safetensors(folder.file("one"), {entry("fc.weight", {3, 2}, six)});
  pp::write_safetensors(folder.file("two"),
                        {entry("norm.weight", {3}, three), entry("fc.bias", {3}, three)});
  std::string const name = "model.safetensors.index.json", path = folder.file(name);
  auto const index = [](std::string const& files) {
    return R"({"metadata": {"total_size": 48}, "weight_map": {)" + files + "}}\n";
  };
  std::string const good = index(R"("fc.bias": "two", "fc.weight": "one", "norm.weight": "two")");
  folder.write(name, good);
  std::string const here = std::filesystem::path(path).parent_path().string();
  // [folder]
  pp::weight_files const files(here);
  // [/folder]
  REQUIRE(files.tensors().size() == 3);
  CHECK(files.tensors()[0].name == "fc.weight");
  CHECK(files.has("fc.bias"));
  CHECK(!files.has("bias"));
  auto const expect_loaded = [&](auto const& source) {
    parameters_of_two_layers<float> model;
    model.weight.assign(6, 0);
    pp::load_weights(model.all(), source);
    CHECK(model == parameters_of_two_layers<float>{{1, 2, 3, 4, 5, 6}, three, three});
  };
  expect_loaded(files);
  expect_loaded(path);
  expect_loaded(here);
  // As editors and other programs write it.
  auto const spelled = [&](auto change) {
    std::string text;
    for (char const c : good) change(text, c);
    return text;
  };
  for (std::string const &text :
       {"\xEF\xBB\xBF" + good, spelled([](std::string& to, char c) {
                                 to += c == ' ' ? "\r\n\t" : std::string(1, c);
                               }) + "\r\n",
        "\n " + good + "\t\n \n", good.substr(0, good.find('\n')),
        R"({"a": NaN, "b": [-Infinity, {"c": Infinity}, -1.5e-3, true, null], )" +
            good.substr(1)}) {
    INFO(text);
    folder.write(name, text);
    expect_loaded(path);
  }

  parameters_of_two_layers<float> const before;
  parameters_of_two_layers<float> model;
  auto const said = [&](std::string const& text) {
    folder.write(name, text);
    std::string const message = sentence<pp::error>([&] { pp::load_weights(model.all(), path); });
    CHECK(model == before);
    return message;
  };
  CHECK(said(index(R"("fc.bias": "three")")) ==
        "cannot read '" + folder.file("three") + "': No such file or directory");
  CHECK(said(index(R"("fc.bias": "two", "fc.weight": "two")")) ==
        "'" + path + "': tensor 'fc.weight' is not in '" + folder.file("two") + "'");
  CHECK(said(index(R"("fc.bias": "one", "fc.weight": "two")")) ==
        "'" + path + "': tensor 'fc.bias' is not in '" + folder.file("one") + "'");
  CHECK(said(index(R"("fc.bias": "../two")")) ==
        "'" + path + "': '../two' is not a file beside it");
  CHECK(said("{}") == "'" + path + "' names no file");
  CHECK(said(good + "x")
            .starts_with("'" + path + "': byte " + std::to_string(good.size()) +
                         ": expected nothing"));
  CHECK(said("[]") == "'" + path + "': byte 0: expected an object, found '['");
  CHECK(said(R"({"a": Nan, "weight_map": {}})")
            .starts_with("'" + path + "': byte 6: expected a value"));
  CHECK(said("{\"weight_map\": {\"a\": 1}}").find("expected the name of a file") !=
        std::string::npos);
  CHECK(said(index(R"("fc.bias": "two")"))
            .ends_with("the model: parameter 'fc.weight': not in the file"));
  pp::write_safetensors(folder.file("one"), {entry("fc.weight", {3, 2}, six),
                                             entry("fc.bias", {3}, std::vector<float>{1, 2, 3})});
  CHECK(said(index(R"("fc.weight": "one", "norm.weight": "two")")) ==
        "tensor 'fc.bias' is in '" + folder.file("one") + "' and in '" + folder.file("two") + "'");
  // Of two files with a tensor, the index names one.
  folder.write(name, good);
  expect_loaded(path);
  CHECK(pp::weight_files(path).tensors().size() == 3);
  std::filesystem::remove(path);
  CHECK(sentence<pp::file_error>([&] { pp::load_weights(model.all(), here); }) ==
        "'" + here + "' has neither model.safetensors nor model.safetensors.index.json");
}

TEST_CASE("weights that cannot be stored leave the file as it was") {
  temporary_folder const folder;
  std::string const path = folder.write("a", "as it was");
  parameters_of_two_layers<float> model;
  auto const said = [&](pp::files::stored_type type) {
    return sentence<pp::data_error>([&] { pp::save_weights(model.all(), path, type); });
  };
  CHECK(said(pp::files::stored_type::i32) ==
        "save_weights: type: expected F64, F32, F16 or BF16, got I32");
  model.weight[4] = 70000;
  CHECK(said(pp::files::stored_type::f16) ==
        "parameter 'fc.weight': number 3, 70000.000000, is too large for F16");
  model.weight[4] = std::numeric_limits<float>::max();
  CHECK(said(pp::files::stored_type::bf16).ends_with(", is too large for BF16"));
  auto twice = model.all();
  twice[1].name = "norm.weight";
  CHECK(sentence<pp::data_error>([&] { pp::save_weights(twice, path); }) ==
        "tensor 'norm.weight': two tensors have this name");
  {
    planned_mishap const plan(mishap::fails, 2, ENOSPC);
    CHECK(sentence<pp::file_error>([&] { pp::save_weights(model.all(), path); }) ==
          "cannot write '" + path + "': No space left on device");
  }
  CHECK(content(path) == "as it was");
  CHECK(folder.names() == std::set<std::string>{"a"});
}

TEST_CASE("a parameter that contradicts itself is refused") {
  temporary_folder const folder;
  std::vector<float> values(6);
  auto const said = [&](std::vector<long> const& shape, int rows, int columns) {
    std::vector<pp::detail::named_parameter<float>> const one{
        {"a", shape, false, rows, columns, values}};
    std::string const saving =
        sentence<pp::error>([&] { pp::save_weights(one, folder.file("a")); });
    pp::write_safetensors(folder.file("b"),
                          {entry("a", shape, std::vector<float>(shape[0] == 7 ? 7 : 6))});
    CHECK(sentence<pp::error>([&] {
            pp::load_weights(one, folder.file("b"), pp::load_policy::partial);
          }) == saving);
    return saving;
  };
  CHECK(said({6}, 2, 3) == "no error");
  CHECK(said({7}, 2, 3) == "parameter 'a': 2 x 3 and shape [7] must both be its 6 numbers");
  CHECK(said({6}, 3, 3) == "parameter 'a': 3 x 3 and shape [6] must both be its 6 numbers");
  CHECK(said({6}, -2, -3) == "parameter 'a': -2 x -3 and shape [6] must both be its 6 numbers");
}

TEST_CASE("a trainer whose parameters have names is saved, loaded and told of the change") {
  temporary_folder const folder;
  trainer_with_names source, trainer;
  trainer.weight.assign(6, 0);
  std::string const path = folder.file("net.safetensors");
  pp::save_weights(source, path);
  // [load]
  pp::load_weights(trainer, path);
  // [/load]
  CHECK(trainer.weight == source.weight);
  CHECK(trainer.changes == 1);
  // [bf16]
  pp::save_weights(trainer, path, pp::files::stored_type::bf16,
                   {{"format", "pt"}, {"trained_by", "pipe"}});
  // [/bf16]
  pp::safetensors_file const file(path);
  CHECK(file.tensors()[0].type == pp::files::stored_type::bf16);
  CHECK(file.metadata().at("trained_by") == "pipe");
  std::vector<float> const four(4);
  pp::write_safetensors(folder.file("a"), {entry("w", {2, 2}, four)});
  CHECK_THROWS_AS(pp::load_weights(trainer, folder.file("a")), pp::data_error);
  CHECK(trainer.changes == 1);
}

namespace {

struct Net : pp::Model<pp::Input<5>, pp::Linear<7>, pp::GELUTanh, pp::Linear<3>, pp::MSE> {};
template <int Stages>
using Trainer = pp::Pipeline<Net, pp::Stages<Stages>, pp::MicroBatchSize<2>, pp::PortableHost>;

/// Its parameters with PyTorch's names for Sequential(Linear, GELU, Linear).
template <class T>
std::vector<pp::detail::named_parameter<float>> named(T& trainer) {
  std::vector<pp::detail::named_parameter<float>> all;
  char const* const names[] = {"0.weight", "0.bias", "2.weight", "2.bias"};
  for (auto const& p : trainer.parameters()) {
    bool const matrix = all.size() % 2 == 0;
    all.push_back({names[all.size()],
                   matrix ? std::vector<long>{p.columns, p.rows} : std::vector<long>{p.columns},
                   matrix, p.rows, p.columns, p.values});
  }
  return all;
}

}  // namespace

TEST_CASE(
    "a pipeline that loads another's weights computes the same bits, under other stages too") {
  temporary_folder const folder;
  Trainer<1> one({.seed = 1});
  Trainer<2> two({.seed = 2});
  std::vector<float> const inputs{1, 2, 3, 4, 5, -1, -2, -3, -4, -5};
  std::vector<float> expected(6), found(6);
  one.forward(inputs, expected);
  two.forward(inputs, found);
  REQUIRE(found != expected);
  pp::save_weights(named(one), folder.file("net.safetensors"));
  pp::load_weights(named(two), folder.file("net.safetensors"));
  two.parameters_changed();
  two.forward(inputs, found);
  CHECK(found == expected);
  std::vector<float> const labels(6);
  CHECK(two.gradients({inputs, labels}).gradient_norm ==
        one.gradients({inputs, labels}).gradient_norm);
}

TEST_CASE("a parameter of four extents has them in a file, and comes back") {
  struct Net : pp::Model<pp::Input<24>, pp::Custom<Scales>, pp::Linear<2>, pp::MSE> {};
  static_assert(Net::graph.parameters[0].form == pp::sample_shape(2, 3, 2, 2));
  static_assert(Net::graph.parameters[0].rows() == 12 && Net::graph.parameters[0].columns() == 2);
  using Trainer = pp::Pipeline<Net, pp::PortableHost>;
  Trainer from({.seed = 1}), to({.seed = 2});
  temporary_folder folder;
  pp::save_weights(from, folder.file("a"));
  pp::safetensors_file const file(folder.file("a"));
  pp::safetensors_entry const* const scales = file.find("0.scales");
  REQUIRE(scales != nullptr);
  CHECK(scales->shape == std::vector<long>{2, 3, 2, 2});
  auto const numbers = [](Trainer& t) {
    auto const values = t.parameters().front().values;
    return std::vector<float>(values.begin(), values.end());
  };
  CHECK(numbers(from) != numbers(to));
  pp::load_weights(to, folder.file("a"));
  CHECK(numbers(from) == numbers(to));
}
