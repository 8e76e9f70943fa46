// SPDX-License-Identifier: BSL-1.0
//
// Tables of text files: what is read, what is refused and where, and a model that is trained on one
// until its validation loss falls no more.
#include "catch.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>

#include <pipe/data.hpp>
#include <pipe/pipe.hpp>
#include <pipe/train/fit.hpp>
#include <pipe/train/predict.hpp>
#include <pipe/weights/weights.hpp>

#include "message_of.hpp"
#include "train/folder.hpp"

using namespace pp;

namespace {

tables::table read(std::string const& text, tables::csv_format const& format = {}) {
  temporary_folder const folder;
  return tables::read_csv(folder.write("homes.csv", text), format);
}
/// The message for a text, from the name of the file on.
std::string refused(std::string const& text, tables::csv_format const& format = {}) {
  std::string const all = message_of([&] { read(text, format); });
  std::size_t const at = all.find("homes.csv");
  return at == std::string::npos ? all : all.substr(at);
}

}  // namespace

TEST_CASE("fields of a table are what RFC 4180 says", "[train]") {
  auto const t = read(
      "\xef\xbb\xbf"
      "a,b,c\r\n1,\"x, y\",\"say \"\"so\"\"\"\r\n\n ,\"two\nlines\",\n");
  CHECK(t.columns() == std::vector<std::string>{"a", "b", "c"});
  REQUIRE(t.rows() == 2);
  CHECK(t.field(0, 0) == "1");
  CHECK(t.field(0, 1) == "x, y");
  CHECK(t.field(0, 2) == "say \"so\"");
  CHECK(t.field(1, 0) == " ");
  CHECK(t.field(1, 1) == "two\nlines");
  CHECK(t.field(1, 2).empty());
  CHECK(t.column("c") == 2);
  auto const without = read("1;2,5\n3;4", {.separator = ';', .decimal = ',', .has_names = false});
  CHECK(without.rows() == 2);
  CHECK(tables::numbers<double>(without, {"1", "0"}) == std::vector<double>{2.5, 1, 4, 3});
  CHECK(read("only\n").rows() == 0);
}

TEST_CASE("what is no table is refused with its line", "[train]") {
  CHECK(refused("") == "homes.csv': the table is empty");
  CHECK(refused("\n\n") == "homes.csv': the table is empty");
  CHECK(refused("a,b\n1,2\n\n3\n") == "homes.csv', line 4: expected 2 fields, got 1");
  CHECK(refused("a,b\n\"1\n\n2,3\n") == "homes.csv', line 2: the quotes of a field do not end");
  CHECK(refused("a,b\n\"1\n\"2,3\n") ==
        "homes.csv', line 3: expected a separator after the quotes of a field, got '2'");
  CHECK(refused("a,b,a\n") == "homes.csv', line 1: column 3 has the name \"a\" a second time");
  CHECK(refused("a,,b\n") == "homes.csv', line 1: column 2 has no name");
}

TEST_CASE("numbers of a table, and missing ones", "[train]") {
  auto const t = read("x,y\n 1.5 ,+2e1\nNA,-3\n,7\n");
  auto const kept = tables::numbers(t, {"y", "x"}, tables::missing::kept);
  CHECK(kept[0] == 20);
  CHECK(kept[1] == 1.5f);
  CHECK(std::isnan(kept[3]));
  CHECK(std::isnan(kept[5]));
  CHECK(tables::numbers(t.complete({"x"}), {"x", "y"}) == std::vector<float>{1.5f, 20});
  auto const message = [](std::string const& text, auto... rule) {
    auto const of = read(text);
    std::string const all = message_of([&] { tables::numbers(of, {"x"}, rule...); });
    return all.substr(std::min(all.find("homes.csv"), all.size()));
  };
  CHECK(message("x\n1\n\"\"\n") == "homes.csv', line 3, column \"x\": a number is missing");
  CHECK(message("x\n1\n\n?\n") == "homes.csv', line 4, column \"x\": a number is missing");
  CHECK(message("x\n1 2\n", tables::missing::kept) ==
        "homes.csv', line 2, column \"x\": '1 2' is no number");
  CHECK(message("x\ninf\n") == "homes.csv', line 2, column \"x\": 'inf' is no number");
  CHECK(message("x\n0x10\n") == "homes.csv', line 2, column \"x\": '0x10' is no number");
  CHECK(message("x\n1e50\n") == "homes.csv', line 2, column \"x\": 1e50 is too large");
  CHECK(message("x\n1e500\n") ==
        "homes.csv', line 2, column \"x\": '1e500' is no number that a double holds");
  CHECK(message("z\n1\n").find("there is no column \"x\" among \"z\"") != std::string::npos);
}

TEST_CASE("categories are ids of sorted names", "[train]") {
  auto const t = read("city\nRome\nOslo\nRome\nBern\n");
  auto const names = tables::categories(t, "city");
  CHECK(names == std::vector<std::string>{"Bern", "Oslo", "Rome"});
  CHECK(tables::ids(t, "city", names) == std::vector<int>{2, 1, 2, 0});
  auto const other = read("city\nOslo\nKyiv\n");
  CHECK(tables::ids(other, "city", names, 3) == std::vector<int>{1, 3});
  std::string const all = message_of([&] { tables::ids(other, "city", names); });
  CHECK(all.find("line 3, column \"city\": 'Kyiv' is none of the categories") != std::string::npos);
}

TEST_CASE("a scale makes columns numbers around 0, and is kept as text", "[train]") {
  float const none = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> x{1, 10, 5, 3, none, 5, 5, 40, 5};
  auto const s = tables::scale::of(x, 3);
  CHECK(s.mean[0] == 3);
  CHECK(s.mean[1] == 25);
  CHECK(s.deviation[2] == 1);
  auto scaled = x;
  s.apply(scaled);
  CHECK(scaled[4] == 0);
  for (std::size_t c = 0; c < 2; ++c) {
    double sum = 0, squares = 0;
    for (std::size_t r = 0; r < 3; ++r)
      if (c != 1 || r != 1)
        sum += scaled[3 * r + c], squares += scaled[3 * r + c] * scaled[3 * r + c];
    CHECK(sum == Approx(0).margin(1e-5));
    CHECK(squares == Approx(c == 0 ? 3 : 2).epsilon(1e-5));
  }
  CHECK(scaled[2] == 0);
  s.undo(scaled);
  CHECK(scaled[0] == Approx(1));
  CHECK(scaled[7] == Approx(40));
  auto const again = tables::scale::parse(s.text());
  CHECK(again.mean == s.mean);
  CHECK(again.deviation == s.deviation);
  for (char const* text : {"", "1", "1 0", "1 x", "1  2", "1 2 ", "nan 1", "1 inf"})
    CHECK_THROWS_AS(tables::scale::parse(text), data_error);
  CHECK_THROWS_AS(tables::scale::of(std::vector<float>{1, 2, 3}, 2), data_error);
  CHECK_THROWS_AS(tables::scale::of(std::vector<float>{1, none, 3, none}, 2), data_error);
}

TEST_CASE("divisions have every row once", "[train]") {
  auto const d = tables::divide(10, 0.3, 1);
  CHECK(d.validation.size() == 3);
  std::set<std::size_t> all(d.training.begin(), d.training.end());
  all.insert(d.validation.begin(), d.validation.end());
  CHECK(all.size() == 10);
  CHECK(tables::divide(10, 0.3, 1).validation == d.validation);
  CHECK(tables::divide(10, 0.3, 2).validation != d.validation);
  CHECK(tables::divide(2, 0.01, 1).validation.size() == 1);
  CHECK(tables::divide(2, 0.99, 1).training.size() == 1);
  std::multiset<std::size_t> held_out;
  for (auto const& f : tables::folds(11, 3, 1)) {
    CHECK(f.training.size() + f.validation.size() == 11);
    held_out.insert(f.validation.begin(), f.validation.end());
  }
  CHECK(held_out.size() == 11);
  CHECK(*held_out.rbegin() == 10);
  CHECK(std::set<std::size_t>(held_out.begin(), held_out.end()).size() == 11);
  std::vector<int> const pairs{0, 1, 2, 3, 4, 5};
  std::vector<std::size_t> const rows{2, 0};
  CHECK(tables::take(pairs, rows, 2) == std::vector<int>{4, 5, 0, 1});
  CHECK_THROWS_AS(tables::divide(1, 0.5, 1), data_error);
  CHECK_THROWS_AS(tables::divide(5, 1, 1), data_error);
  CHECK_THROWS_AS(tables::folds(3, 4, 1), data_error);
}

namespace {

// [model]
/// The price of a home by two numbers and its city.
struct Price : Model<Tokens<4, 1>, ConcatOf<Embedding<2>, Named<"home", Input<1, 2>>>, Linear<16>,
                     Tanh, Linear<1>, MSE> {};
using Trainer = Pipeline<Price, MicroBatches<2>, MicroBatchSize<16>, PortableHost, Adam>;
// [/model]

/// A table of homes, some of whose sizes are missing.
std::string homes() {
  std::string text = "size,rooms,city,price\n";
  char const* const cities[] = {"Bern", "Oslo", "Rome"};
  for (int i = 0; i < 300; ++i) {
    int const size = 30 + i * 37 % 120, rooms = 1 + i * 7 % 5, city = i * 11 % 3;
    text += (i % 25 == 0 ? "NA" : std::to_string(size)) + "," + std::to_string(rooms) + "," +
            cities[city] + "," + std::to_string(1000 * size * (city + 2) + 5000 * rooms) + "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("a model learns from a table until its validation loss falls no more", "[train]") {
  temporary_folder const folder;
  std::string const path = folder.write("homes.csv", homes()),
                    weights = folder.file("price.safetensors");
  // [read]
  auto const table = tables::read_csv(path);
  auto const parts = tables::divide(table.rows(), 0.2, /*seed=*/1);
  auto const training = table.take(parts.training), held_out = table.take(parts.validation);

  auto const cities = tables::categories(training, "city");
  auto homes = tables::numbers(training, {"size", "rooms"}, tables::missing::kept);
  auto prices = tables::numbers(training, {"price"});
  auto const of_homes = tables::scale::of(homes, 2), of_prices = tables::scale::of(prices, 1);
  of_homes.apply(homes), of_prices.apply(prices);
  auto const city = tables::ids(training, "city", cities, /*otherwise=*/3);
  // [/read]
  auto more_homes = tables::numbers(held_out, {"size", "rooms"}, tables::missing::kept);
  auto more_prices = tables::numbers(held_out, {"price"});
  of_homes.apply(more_homes), of_prices.apply(more_prices);
  auto const more_city = tables::ids(held_out, "city", cities, 3);

  // [fit]
  Trainer trainer({.seed = 1, .optimizer = {.learning_rate = 0.01}});
  Trainer::batch data{city, prices}, validation{more_city, more_prices};
  data.set<"home">(homes);
  validation.set<"home">(more_homes);
  auto const found = fit(trainer, data, validation, {.epochs = 200, .patience = 8, .seed = 1});
  save_weights(trainer, weights, files::stored_type::f32,
               {{"homes", of_homes.text()}, {"prices", of_prices.text()}});
  // [/fit]
  CHECK(found.best_loss < 0.1);
  CHECK(evaluate_all(trainer, validation) == found.best_loss);
  CHECK(found.epochs[std::size_t(found.best)].validation_loss == found.best_loss);
  long epochs = 0;
  for (auto const& epoch : found.epochs) {
    CHECK(epoch.validation_loss >= found.best_loss);
    CHECK(epoch.epoch == epochs++);
  }
  CHECK((found.has_stopped ? found.epochs.back().epoch - found.best == 8 : epochs == 200));

  // The same steps by hand.
  Trainer by_hand({.seed = 1, .optimizer = {.learning_rate = 0.01}});
  for (long epoch = 0; epoch <= found.best; ++epoch)
    for (auto const& batch : batches<Trainer>(data, {.shuffle = true, .seed = 1, .epoch = epoch}))
      by_hand.step(batch);
  CHECK(evaluate_all(by_hand, validation) == found.best_loss);

  // [again]
  safetensors_file const file(weights);
  auto const scale = tables::scale::parse(file.metadata().at("prices"));
  Trainer loaded;
  load_weights(loaded, weights);
  std::vector<float> price = predict(loaded, validation);
  scale.undo(price);
  // [/again]
  auto const truth = tables::numbers(held_out, {"price"});
  double off = 0;
  for (std::size_t i = 0; i < truth.size(); ++i) off += std::abs(double(price[i]) - truth[i]);
  CHECK(off / double(truth.size()) < 0.3 * of_prices.deviation[0]);

  long calls = 0;
  auto const stopped = fit(trainer, data, validation, {.after_epoch = [&](auto const& epoch) {
                             ++calls;
                             return epoch.epoch < 1;
                           }});
  CHECK(calls == 2);
  CHECK(stopped.epochs.size() == 2);
  CHECK(stopped.has_stopped);
  CHECK_THROWS_AS(fit(trainer, data, validation, {.patience = 0}), data_error);
}
