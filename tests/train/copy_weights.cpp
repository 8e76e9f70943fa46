// SPDX-License-Identifier: BSL-1.0
//
// Weights under other names, out of a file or out of another trainer in memory.
#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"

#include <pipe/nn/activation.hpp>
#include <pipe/nn/compose.hpp>
#include <pipe/nn/group.hpp>
#include <pipe/nn/linear.hpp>
#include <pipe/nn/loss.hpp>
#include <pipe/nn/model.hpp>
#include <pipe/nn/named.hpp>
#include <pipe/train/pipeline.hpp>
#include <pipe/weights/copy_weights.hpp>

#include "folder.hpp"
#include "system_calls.hpp"

namespace {

using strings = std::vector<std::string>;
using texts = pp::detail::row_list<pp::detail::kept_text>;

/// What copying sees of a trainer: two layers under some prefix, and perhaps averages.
template <class T, bool Averages = false>
struct two_layers {
  static constexpr bool keeps_averages = Averages;
  std::string prefix;
  bool transposed = true;
  std::vector<T> weight = std::vector<T>(6), bias = std::vector<T>(3), average = std::vector<T>(6);
  int changes = 0;

  struct view {
    std::string name;
    std::vector<long> file_shape;
    bool stored_transposed;
    int rows, columns;
    std::span<T> values;
  };
  std::vector<view> views(std::vector<T>& of_weight) {
    return {
        {prefix + "weight", {3, 2}, transposed, transposed ? 2 : 3, transposed ? 3 : 2, of_weight},
        {prefix + "bias", {3}, false, 1, 3, bias}};
  }
  std::vector<view> parameters() { return views(weight); }
  std::vector<view> averaged() { return views(average); }  // the bias is not trained
  void parameters_changed() { ++changes; }
};

template <class Trainer>
std::string said_of_copy(Trainer& to, auto& from, pp::load_policy policy,
                         pp::name_map const& names = {}) {
  return sentence<pp::data_error>([&] { pp::copy_weights(from, to, policy, names); });
}

}  // namespace

TEST_CASE("names are mapped by their longest prefix, or whole") {
  texts const here{"body.0.weight", "body.1.weight", "head.weight", "headless"};
  CHECK(pp::detail::names_there(here, {}) == here);
  CHECK(pp::detail::names_there(here, {{"", "model."}}) ==
        texts{"model.body.0.weight", "model.body.1.weight", "model.head.weight", "model.headless"});
  CHECK(pp::detail::names_there(
            here, {{"body.", ""}, {"body.1.", "last."}, {"head.weight", "lm_head.weight"}}) ==
        texts{"0.weight", "last.weight", "lm_head.weight", "headless"});

  auto const said = [&](pp::name_map const& map) {
    return sentence<pp::data_error>([&] { pp::detail::names_there(here, map); });
  };
  CHECK(said({{"head", "x"}}) ==
        "map of names: 'head' -> 'x' applies to no parameter of the model");
  CHECK(said({{"body.", "x."}, {"tail.", ""}}) ==
        "map of names: 'tail.' -> '' applies to no parameter of the model");
  CHECK(said({{"body.", "x"}}) ==
        "map of names: 'body.' -> 'x' is a prefix and a whole name: a prefix ends in '.' or is "
        "empty");
  CHECK(said({{"headless", "x."}}) ==
        "map of names: 'headless' -> 'x.' is a prefix and a whole name: a prefix ends in '.' or is "
        "empty");
  CHECK(said({{"body.", "x."}, {"body.", "y."}}) ==
        "map of names: there are two entries for 'body.'");
  CHECK(
      said({{"body.0.", "body.1."}}) ==
      "map of names: parameters 'body.0.weight' and 'body.1.weight' would both be 'body.1.weight'");
  CHECK(said({{"body.0.", "body.1."}, {"body.1.", "body.0."}}) == "no error");
}

TEST_CASE("a file is loaded under other names") {
  temporary_folder const folder;
  two_layers<float> old{"0.body."}, now{"body."};
  old.weight = {1, 2, 3, 4, 5, 6}, old.bias = {7, 8, 9};
  std::string const path = folder.file("a");
  pp::save_weights(old, path);
  two_layers<float>& trainer = now;
  // [map]
  pp::load_weights(trainer, path, pp::load_policy::strict, {{"body.", "0.body."}});
  // [/map]
  CHECK(now.weight == old.weight);
  CHECK(now.bias == old.bias);
  CHECK(sentence<pp::data_error>([&] {
          pp::load_weights(now, path, pp::load_policy::strict,
                           {{"body.weight", "w"}, {"body.bias", "0.body.bias"}});
        })
            .ends_with("parameter 'body.weight' ('w' there): not in the file; tensor "
                       "'0.body.weight': not in the model"));
}

TEST_CASE("a parameter is joined from tensors of a file") {
  temporary_folder const folder;
  two_layers<float> net{"fc."};
  std::vector<float> const query{1, 4}, others{2, 5, 3, 6}, bias{7, 8, 9};
  auto const entry = [](std::string name, std::vector<long> shape, auto const& numbers) {
    return pp::safetensors_entry{std::move(name), pp::files::stored_type::f32, std::move(shape),
                                 std::as_bytes(std::span(numbers))};
  };
  std::string const path = folder.file("a");
  two_layers<float>& trainer = net;
  pp::write_safetensors(path, {entry("key_value.weight", {2, 2}, others),
                               entry("query.weight", {1, 2}, query), entry("bias", {3}, bias)});
  // [joined]
  pp::name_map const names{{"fc.weight", "query.weight", {"key_value.weight"}},
                           {"fc.bias", "bias"}};
  pp::load_weights(trainer, path, pp::load_policy::strict, names);
  // [/joined]
  CHECK(net.weight == std::vector<float>{1, 2, 3, 4, 5, 6});
  CHECK(net.bias == bias);
  two_layers<float> again{"fc."};
  auto const of_again = pp::detail::named_parameters(again);
  std::vector const parameters(of_again.begin(), of_again.end());
  pp::load_weights(parameters, pp::safetensors_file(path), pp::load_policy::strict, names);
  CHECK(again.weight == net.weight);

  auto const said = [&](pp::name_map const& map) {
    std::string const text = sentence<pp::data_error>(
        [&] { pp::load_weights(again, path, pp::load_policy::strict, map); });
    CHECK(again.weight == net.weight);
    return text;
  };
  CHECK(said({{"fc.weight", "query.weight", {"x"}}, {"fc.bias", "bias"}})
            .ends_with(
                "parameter 'fc.weight' ('x' there): not in the file; tensor "
                "'key_value.weight': not in the model; tensor 'query.weight': not in the model"));
  CHECK(said({{"fc.weight", "query.weight", {"bias"}}, {"fc.bias", "key_value.weight"}})
            .ends_with("tensors 'query.weight', 'bias': expected shape [3, 2], found [1, 2], [3]; "
                       "tensor 'key_value.weight': expected shape [3], found [2, 2]"));
  CHECK(said({{"fc.", "", {"x"}}}) ==
        "map of names: 'fc.' -> '' is a prefix, and only whole names are joined");
  CHECK(said({{"fc.weight", "bias", {"bias"}}, {"fc.bias", "x"}}) ==
        "map of names: parameters 'fc.weight' and 'fc.weight' would both be 'bias'");
  std::vector<double> const doubles{1, 4};
  pp::write_safetensors(
      path,
      {{"query.weight", pp::files::stored_type::f64, {1, 2}, std::as_bytes(std::span(doubles))},
       entry("key_value.weight", {2, 2}, others),
       entry("bias", {3}, bias)});
  CHECK(said(names).ends_with(
      "tensors 'query.weight', 'key_value.weight': expected one type, found F64 and F32"));
  CHECK(sentence<pp::data_error>([&] {
          pp::copy_weights(net, again, pp::load_policy::strict,
                           {{"fc.weight", "fc.weight", {"fc.bias"}}, {"fc.bias", "x"}});
        }).ends_with("parameter 'fc.bias' ('x' there): not in the source"));
  CHECK(sentence<pp::data_error>([&] {
          pp::copy_weights(net, again, pp::load_policy::partial,
                           {{"fc.weight", "fc.weight", {"fc.bias"}}, {"fc.bias", "x"}});
        }).ends_with("tensors 'fc.weight', 'fc.bias': only tensors of a file are joined"));
  CHECK(sentence<pp::data_error>([&] { pp::detail::names_there({"a"}, {{"a", "b", {"c"}}}); }) ==
        "map of names: 'b' and 'c': only weights that are loaded from a file are joined");
}

TEST_CASE("a map transposes matrices of a file and passes over tensors, and saving does it too") {
  temporary_folder const folder;
  std::string const path = folder.file("a");
  std::vector<float> const matrix{1, 2, 3, 4, 5, 6}, bias{7, 8, 9}, mask(4);
  auto const entry = [](std::string name, std::vector<long> shape, auto const& numbers) {
    return pp::safetensors_entry{std::move(name), pp::files::stored_type::f32, std::move(shape),
                                 std::as_bytes(std::span(numbers))};
  };
  pp::write_safetensors(path,
                        {entry("c_fc.weight", {2, 3}, matrix), entry("c_fc.bias", {3}, bias),
                         entry("attn.bias", {2, 2}, mask), entry("heads.0.weight", {4}, mask)});
  // [transposed]
  pp::name_map const names{{.here = "fc.", .there = "c_fc.", .transposed = true},
                           {.there = "attn.bias", .passed_over = true},
                           {.there = "heads.", .passed_over = true}};
  // [/transposed]
  for (bool const lies_transposed : {true, false}) {
    two_layers<float> net{"fc.", lies_transposed};
    pp::load_report const report = pp::load_weights(net, path, pp::load_policy::strict, names);
    CHECK(net.weight == (lies_transposed ? matrix : std::vector<float>{1, 4, 2, 5, 3, 6}));
    CHECK(net.bias == bias);
    CHECK(report.unused.empty());
    pp::save_weights(net, folder.file("b"), names);
    pp::safetensors_file const saved(folder.file("b"));
    REQUIRE(saved.find("c_fc.weight") != nullptr);
    CHECK(saved.find("c_fc.weight")->shape == std::vector<long>{2, 3});
    CHECK(std::ranges::equal(saved.find("c_fc.weight")->bytes, std::as_bytes(std::span(matrix))));
  }

  two_layers<float> net{"fc."};
  auto const said = [&](pp::name_map const& map) {
    std::string const text = sentence<pp::data_error>(
        [&] { pp::load_weights(net, path, pp::load_policy::strict, map); });
    CHECK(net.weight == std::vector<float>(6));
    return text;
  };
  CHECK(said({{"fc.", "c_fc."}, names[1], names[2]})
            .ends_with("tensor 'c_fc.weight': expected shape [3, 2], found [2, 3]"));
  CHECK(said({names[0], names[2]}).ends_with("model: tensor 'attn.bias': not in the model"));
  CHECK(said({{.here = "fc.", .there = "c_fc.", .passed_over = true}}) ==
        "map of names: 'fc.' -> 'c_fc.' is passed over: it has only a name there");
  CHECK(said({{"fc.weight", "c_fc.weight", {"x"}, true}}) ==
        "map of names: 'fc.weight' -> 'c_fc.weight' is transposed, and only tensors that lie as "
        "here are joined");
  CHECK(said({{.there = "c_fc.", .passed_over = true}, names[1], names[2]})
            .ends_with("parameter 'fc.weight': not in the file; parameter 'fc.bias': not in the "
                       "file"));
  two_layers<float> other{"c_fc."};
  CHECK(said_of_copy(net, other, pp::load_policy::strict, {names[0]})
            .find("'c_fc.weight': only tensors of a file are transposed") != std::string::npos);
  CHECK(sentence<pp::data_error>([&] { pp::detail::names_there({"fc.a"}, names); }) ==
        "map of names: 'c_fc.a': only weights in files are transposed");
  CHECK(sentence<pp::data_error>([&] {
          pp::save_weights(net, path, {{"fc.weight", "a", {"b"}}});
        }) == "map of names: 'a' and 'b': only weights that are loaded from a file are joined");
}

TEMPLATE_TEST_CASE("weights are copied whatever lies transposed in memory", "", float, double) {
  std::vector<TestType> const straight{1, 2, 3, 4, 5, 6}, turned{1, 4, 2, 5, 3, 6};
  for (bool const from_transposed : {false, true})
    for (bool const to_transposed : {false, true}) {
      two_layers<double> from{"", from_transposed,
                              from_transposed ? std::vector<double>{1, 2, 3, 4, 5, 6}
                                              : std::vector<double>{1, 4, 2, 5, 3, 6}};
      from.bias = {7, 8, 9};
      two_layers<TestType> to{"", to_transposed};
      pp::load_report const report = pp::copy_weights(from, to);
      CHECK(to.weight == (to_transposed ? straight : turned));
      CHECK(to.bias == std::vector<TestType>{7, 8, 9});
      CHECK(to.changes == 1);
      CHECK(report.loaded == strings{"weight", "bias"});
    }
}

TEST_CASE("averages are copied too, and without any the parameters take their place") {
  two_layers<float, true> from, to;
  two_layers<float> plain;
  from.weight.assign(6, 1), from.average.assign(6, 2), from.bias.assign(3, 3);
  pp::copy_weights(from, plain);
  CHECK(plain.weight == from.weight);
  CHECK(plain.average == std::vector<float>(6));
  pp::copy_weights(from, to);
  CHECK(to.weight == from.weight);
  CHECK(to.average == from.average);
  CHECK(to.bias == from.bias);
  plain.weight.assign(6, 4);
  pp::copy_weights(plain, to);
  CHECK(to.average == plain.weight);
}

TEST_CASE("a parameter that only the source trains gets no average of it") {
  struct trained_bias : two_layers<float, true> {
    std::vector<float> bias_average{5, 5, 5};
    std::vector<view> averaged() {
      auto all = two_layers::averaged();
      all[1].values = bias_average;
      return all;
    }
  } from;
  from.bias = {1, 2, 3};
  two_layers<float, true> to;
  pp::copy_weights(from, to);
  CHECK(to.bias == from.bias);
}

TEST_CASE("a copy is all or nothing") {
  two_layers<double, true> from{"a."};
  from.weight.assign(6, 1), from.bias.assign(3, 2), from.average.assign(6, 3);
  two_layers<float, true> to{"b."};
  pp::name_map const map{{"b.", "a."}};
  using enum pp::load_policy;
  CHECK(said_of_copy(to, from, strict) ==
        "the weights to copy do not fit the model: parameter 'b.weight': not in the source; "
        "parameter 'b.bias': not in "
        "the "
        "source; tensor 'a.weight': not in the model; tensor 'a.bias': not in the model");
  CHECK(said_of_copy(to, from, partial) ==
        "the weights to copy do not fit the model: no name in common: the source has 'a.weight', "
        "'a.bias'; the model "
        "wants "
        "'b.weight', 'b.bias'");
  CHECK(said_of_copy(to, from, partial, {{"b.weight", "a.bias"}, {"b.bias", "x"}}) ==
        "the weights to copy do not fit the model: tensor 'a.bias': expected shape [3, 2], found "
        "[3]");
  from.average[4] = 1e39;
  CHECK(said_of_copy(to, from, strict, map) ==
        "the weights to copy do not fit the model: parameter 'a.weight': number 4 is too large");
  from.average[4] = 3;
  CHECK_THROWS_WITH(pp::copy_weights(to, to),
                    "copy_weights: source and destination are the same trainer");
  int failures = 0;
  for (bool failed = true; failed; ++failures) {
    CHECK(to.weight == std::vector<float>(6));
    CHECK(to.bias == std::vector<float>(3));
    CHECK(to.average == std::vector<float>(6));
    failed =
        failing_allocation::happened(failures, [&] { pp::copy_weights(from, to, strict, map); });
    CHECK(to.changes == !failed);
  }
  CHECK(failures > 20);
  CHECK(to.weight == std::vector<float>(6, 1));
  CHECK(to.average == std::vector<float>(6, 3));
}

namespace {

// [nets]
using Encoder = pp::Seq<pp::Linear<4>, pp::Tanh, pp::Linear<2>>;
struct Autoencoder : pp::Model<pp::Input<6>, pp::Named<"encoder", Encoder>,
                               pp::Named<"decoder", pp::Linear<6>>, pp::MSE> {};
struct Classifier : pp::Model<pp::Input<6>, pp::Frozen<pp::Named<"encoder", Encoder>>,
                              pp::Named<"head", pp::Linear<3>>, pp::CrossEntropy> {};
// [/nets]

}  // namespace

TEST_CASE("a pretrained part goes from one model into another that keeps it frozen") {
  pp::Pipeline<Autoencoder, pp::PortableHost> autoencoder({.seed = 1});
  pp::Pipeline<Classifier, pp::PortableHost> classifier({.seed = 2});
  // [copy]
  pp::load_report const report =
      pp::copy_weights(autoencoder, classifier, pp::load_policy::partial);
  // [/copy]
  CHECK(report.loaded.size() == 4);
  CHECK(report.missing == strings{"head.weight", "head.bias"});
  CHECK(report.unused == strings{"decoder.weight", "decoder.bias"});
  auto const from = autoencoder.parameters(), to = classifier.parameters();
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(to[i].name == from[i].name);
    CHECK(std::equal(to[i].values.begin(), to[i].values.end(), from[i].values.begin(),
                     from[i].values.end()));
  }
}
