// SPDX-License-Identifier: BSL-1.0
//
// Curves of bounded memory: nothing of a long run is lost but detail, and a reader that asks for
// news has what a reader that asks for everything gets.
#include <cmath>
#include <limits>
#include <string>

#include "catch.hpp"

#include <pipe/report/run_history.hpp>

namespace {

using pp::detail::run_history;

pp::step_metrics record(long step, double loss) {
  return {.step = step, .loss = loss, .scalars = {{"own", 2.0 * double(step)}}};
}
std::string all_of(run_history const& h) { return h.json_since(-1, 0); }

}  // namespace

TEST_CASE("records are points until there are too many, then neighbours are one") {
  run_history h;
  h.add(record(1, 4));
  h.add(record(2, std::numeric_limits<double>::quiet_NaN()));
  std::string const text = all_of(h);
  CHECK(text.find("\"stride\":1,\"begin\":1,\"steps\":[1,2]") != text.npos);
  CHECK(text.find("{\"name\":\"loss\",\"mean\":[4,null]}") != text.npos);
  CHECK(text.find("{\"name\":\"own\",\"mean\":[2,4]}") != text.npos);

  run_history longer;
  for (long step = 1; step <= 100'000; ++step) longer.add(record(step, step == 50'001 ? 9 : 1));
  std::string const merged = all_of(longer);
  CHECK(merged.size() < run_history::most_points * 200);
  CHECK(merged.find("\"stride\":128,\"begin\":1,\"steps\":[128,256,") != merged.npos);
  CHECK(merged.find(",1,1,9,1,1,") != merged.npos);       // the greatest of its point
  CHECK(merged.find(",1,1,1.0625,1,1,") != merged.npos);  // the mean: 1 + 8 / 128
  CHECK(merged.find(",99968,100000],") !=
        merged.npos);  // the last step, which is in no whole point
}

TEST_CASE("the axis of a run that goes on begins where the run does") {
  run_history h;
  for (long step = 5001; step <= 9000; ++step) h.add(record(step, 1));
  CHECK(all_of(h).find("\"stride\":4,\"begin\":5001,\"steps\":[5004,5008,") != std::string::npos);
}

TEST_CASE("a metric that comes late has a curve from there on, and there are not too many curves") {
  run_history h;
  h.add({.step = 1});
  h.add(record(2, 1));
  CHECK(all_of(h).find("{\"name\":\"own\",\"mean\":[null,4]}") != std::string::npos);
  for (int n = 0; n < 100; ++n) {
    pp::step_metrics m{.step = 3 + n};
    m.scalars.push_back({"metric " + std::to_string(n), 1});
    h.add(m);
  }
  std::string const text = all_of(h);
  std::size_t curves = 0;
  for (std::size_t at = 0; (at = text.find("\"name\"", at)) != text.npos; ++at) ++curves;
  CHECK(curves == run_history::most_curves);
}

TEST_CASE("a reader that asks for news gets the points since its last one") {
  run_history h;
  for (long step = 1; step <= 3; ++step) h.add(record(step, 1));
  std::string const first = all_of(h);
  long const version = std::stol(first.substr(first.find(':') + 1));
  h.add(record(4, 1));
  CHECK(h.json_since(version, 3).find("\"first\":2,\"stride\":1,\"begin\":1,\"steps\":[3,4]") !=
        std::string::npos);
  CHECK(h.json_since(version, 4).find("\"first\":3,\"stride\":1,\"begin\":1,\"steps\":[4]") !=
        std::string::npos);
  CHECK(h.json_since(version, 5) == all_of(h));      // more than there are
  CHECK(h.json_since(version + 1, 3) == all_of(h));  // of another state
  for (long step = 5; step <= long(run_history::most_points) + 1; ++step) h.add(record(step, 1));
  CHECK(h.json_since(version, 4) == all_of(h));  // points have become others
}
