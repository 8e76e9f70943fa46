// SPDX-License-Identifier: BSL-1.0
//
// What is drawn from logits, against definitions: which probabilities stay, and how often each
// token comes.
#include "catch.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <pipe/infer/sampling.hpp>

using namespace pp;
using namespace pp::detail;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

template <class Error, class Call>
std::string message_of(Call call) {
  try {
    call();
  } catch (Error const& e) {
    return e.what();
  }
  return "no error";
}

double sum_of(std::vector<double> const& p) { return std::accumulate(p.begin(), p.end(), 0.0); }

/// The indices that stay, from the definition: every subset of p is tried.
std::vector<std::size_t> smallest_set(std::vector<double> const& p, double mass) {
  std::vector<std::size_t> best;
  double best_sum = -1;
  for (unsigned set = 1; set < 1u << p.size(); ++set) {
    std::vector<std::size_t> members;
    double sum = 0;
    for (std::size_t i = 0; i < p.size(); ++i)
      if (set >> i & 1) members.push_back(i), sum += p[i];
    if (sum < mass) continue;
    bool const fewer = best.empty() || members.size() < best.size();
    if (fewer || (members.size() == best.size() && sum > best_sum)) best = members, best_sum = sum;
  }
  return best;
}

std::vector<std::size_t> positive(std::vector<double> const& p) {
  std::vector<std::size_t> at;
  for (std::size_t i = 0; i < p.size(); ++i)
    if (p[i] > 0) at.push_back(i);
  return at;
}

}  // namespace

TEST_CASE("probabilities are those of a softmax") {
  std::vector<float> const logits{1, -2, 0.5f, 3};
  for (double const temperature : {0.5, 1.0, 2.0}) {
    std::vector<double> const p = sampling::probabilities(logits, temperature);
    double sum = 0;
    for (float const x : logits) sum += std::exp(x / temperature);
    for (std::size_t i = 0; i < p.size(); ++i)
      CHECK(p[i] == Approx(std::exp(logits[i] / temperature) / sum));
  }
  CHECK(sampling::probabilities(std::vector{1e30, -infinity, 1e30}) ==
        std::vector<double>{0.5, 0, 0.5});
}

TEST_CASE("top-k keeps the k largest, the first of equal ones") {
  std::vector<double> const p{0.1, 0.25, 0.25, 0.15, 0.25};
  auto const kept = [&](int k) {
    auto q = p;
    sampling::keep_top_k(q, k);
    CHECK(sum_of(q) == Approx(1));
    for (std::size_t const i : positive(q))
      CHECK(q[i] / q[positive(q)[0]] == Approx(p[i] / p[positive(q)[0]]));
    return positive(q);
  };
  using set = std::vector<std::size_t>;
  CHECK(kept(1) == set{1});
  CHECK(kept(2) == set{1, 2});
  CHECK(kept(3) == set{1, 2, 4});
  CHECK(kept(4) == set{1, 2, 3, 4});
  CHECK(kept(5) == set{0, 1, 2, 3, 4});
  CHECK(kept(9) == set{0, 1, 2, 3, 4});
  std::vector<double> weights{3, 1, 0.5};  // of any sum
  sampling::keep_top_k(weights, 2);
  CHECK(positive(weights) == set{0, 1});
  CHECK(sum_of(weights) == Approx(1));
}

TEST_CASE("top-p keeps the smallest set that is likely enough") {
  for (std::uint64_t draw = 0; draw < 200; ++draw) {
    std::vector<float> logits;
    for (std::uint64_t i = 0; i < 6; ++i)
      logits.push_back(6 * math::unit_uniform(math::random_block(1, draw, i).word[0]));
    std::vector<double> const p = sampling::probabilities(logits);
    for (double const mass : {0.05, 0.5, 0.8, 0.95, 0.999}) {
      auto q = p;
      sampling::keep_top_p(q, mass);
      CHECK(positive(q) == smallest_set(p, mass));
      CHECK(sum_of(q) == Approx(1));
      double in = 0;
      for (std::size_t const i : positive(q)) in += p[i];
      for (std::size_t const i : positive(q)) CHECK(q[i] == Approx(p[i] / in));
    }
  }
  std::vector<double> exact{0.25, 0.5, 0.25};
  sampling::keep_top_p(exact, 0.5);
  CHECK(exact == std::vector<double>{0, 1, 0});
}

TEST_CASE("an index is drawn as often as it is likely") {
  std::vector<double> const p{0, 0.125, 0.5, 0, 0.375, 0};
  std::vector<int> times(p.size());
  for (int i = 0; i < 1024; ++i) ++times[std::size_t(sampling::draw_index(p, (i + 0.5) / 1024))];
  CHECK(times == std::vector{0, 128, 512, 0, 384, 0});
  CHECK(sampling::draw_index(p, 0) == 1);
  CHECK(sampling::draw_index(p, std::nextafter(1.0, 0.0)) == 4);
  CHECK(sampling::draw_index(std::vector{0.3, 0.3, 0.0}, 0.9) ==
        1);  // rounding may leave a little over
  CHECK(sampling::draw_index(std::vector{0.0, 0.0}, 0.5) == -1);
}

TEST_CASE("tokens come as often as their probabilities say") {
  std::vector<float> const logits{0, 1, 2, 3, -1};
  auto const check = [&](sampling_settings const& s, std::vector<double> const& p) {
    constexpr int draws = 20000;
    std::vector<double> times(logits.size());
    for (int i = 0; i < draws; ++i)
      ++times[std::size_t(sampling::sample(logits, s, std::uint64_t(i)))];
    double square = 0;
    for (std::size_t i = 0; i < p.size(); ++i)
      if (p[i] > 0)
        square += (times[i] - draws * p[i]) * (times[i] - draws * p[i]) / (draws * p[i]);
      else
        CHECK(times[i] == 0);
    CHECK(square < 18.5);  // chi-squared with 4 degrees of freedom: one in a thousand is larger
  };
  check({}, sampling::probabilities(logits));
  check({.seed = 7}, sampling::probabilities(logits));
  check({.temperature = 3}, sampling::probabilities(logits, 3));
  double const e = std::exp(1);
  check({.top_k = 2}, {0, 0, 1 / (1 + e), e / (1 + e), 0});
  check({.top_p = 0.8}, {0, 0, 1 / (1 + e), e / (1 + e), 0});
  check({.top_k = 2, .top_p = 0.7}, {0, 0, 0, 1, 0});  // 0.73 of what top-k has kept, 0.64 of all
}

TEST_CASE("temperature 0 takes the largest, and a place always the same") {
  std::vector<double> const logits{1, 5, 5, -infinity};
  for (std::uint64_t place = 0; place < 5; ++place) {
    CHECK(sampling::sample(logits, {.temperature = 0, .seed = place}, place) == 1);
    CHECK(sampling::sample(logits, {.seed = 3}, place) ==
          sampling::sample(logits, {.seed = 3}, place));
  }
}

TEST_CASE("what cannot be drawn from is refused") {
  float const nan = std::nanf("");
  std::vector<float> const fine{1, 2};
  for (double const temperature : {0.0, 1.0}) {
    sampling_settings const s{.temperature = temperature};
    CHECK(message_of<not_finite>([&] { sampling::sample(std::vector{1.f, nan}, s, 0); }) ==
          "logit 1 of 2: expected a finite number or -infinity, got nan");
    CHECK(message_of<not_finite>([&] { sampling::sample(std::vector{infinity, 1.0}, s, 0); }) ==
          "logit 0 of 2: expected a finite number or -infinity, got inf");
    CHECK(message_of<not_finite>([&] {
            sampling::sample(std::vector{-infinity, -infinity}, s, 0);
          }) == "logits: expected at least 1 finite number, got none of 2");
  }
  using bad_value = std::pair<double, std::string>;
  for (auto const& [bad, text] :
       {bad_value{-1, "-1"}, bad_value{infinity, "inf"}, bad_value{std::nan(""), "nan"}})
    CHECK(message_of<data_error>([&, t = bad] { sampling::sample(fine, {.temperature = t}, 0); }) ==
          "temperature: expected a finite number above 0, got " + text);
  CHECK(message_of<data_error>([&] { sampling::sample(fine, {.top_k = -1}, 0); }) ==
        "top-k: expected 0 or more, got -1");
  for (auto const& [bad, text] : {bad_value{0, "0"}, bad_value{-0.5, "-0.5"}, bad_value{1.5, "1.5"},
                                  bad_value{std::nan(""), "nan"}}) {
    CHECK(message_of<data_error>([&, t = bad] { sampling::sample(fine, {.top_p = t}, 0); }) ==
          "top-p: expected a number above 0 and up to 1, got " + text);
    std::vector<double> p{0.5, 0.5};
    CHECK(message_of<data_error>([&, t = bad] { sampling::keep_top_p(p, t); }) ==
          "top-p: expected a number above 0 and up to 1, got " + text);
  }
  std::vector<double> none{0, 0}, negative{0.5, -1}, p{1};
  CHECK(message_of<data_error>([&] { sampling::keep_top_k(none, 1); }) ==
        "probabilities: expected at least 1 above 0, got none of 2");
  CHECK(message_of<data_error>([&] { sampling::keep_top_k(negative, 1); }) ==
        "probability 1 of 2: expected 0 or more, got -1");
  CHECK(message_of<data_error>([&] { sampling::keep_top_k(p, 0); }) ==
        "top-k: expected 1 or more, got 0");
}
