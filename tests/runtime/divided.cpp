// SPDX-License-Identifier: BSL-1.0
//
// Parameters and gradients that replicas divide, launch by launch.
#include "catch.hpp"

#include "runtime/replicas.hpp"

using namespace replicas;

namespace {

using results = std::vector<std::string>;

/// Runs an action of an accumulation as the executor does; returns what is wrong.
std::string run(replica& r, program p) {
  pp::schedules::action const& a = r.of.training[p == program::backward];
  program_set const& set = r.of.chunk.keeping;
  program_view const& view = set.programs[int(p)];
  region_bases const at = arena_bases(
      r.of.d, 0, 0, [&](int) { return r.start(); },
      [](pp::transports::transfer const&) -> char* { return nullptr; });
  for (int i = 0; i < view.count; ++i) {
    void* operand[group::max_operands];
    if (r.sums.place(0, set, p, i, at, operand) != waited::done)
      return "a launch did not get its operands";
    int const layer = p == program::forward ? i : view.count - 1 - i;
    parameter_place const& of = r.of.place(layer);
    float const* const read = static_cast<float const*>(operand[p == program::forward]);
    for (long k = 0; k < of.elements(); ++k) {
      long const row = k / of.columns, column = k % of.columns;
      float const found = p == program::forward ? read[k] : read[column * of.rows + row];
      if (r.of.d.zero > 2 && found != number(layer, k)) return "a launch reads something else";
      if (p == program::backward)
        static_cast<float*>(operand[1])[k] = number(layer, k) + float(r.place.replica);
    }
    r.sums.after_launch(0, set, view, i);
  }
  r.sums.after(a);
  return {};
}
/// An accumulation, of which the first `busy` replicas have a sample. Then the own parts of
/// gradients are sums over these.
std::string run_accumulation(replica& r, int busy) {
  r.now.batch.samples = r.place.replica < busy;
  r.sums.begin(r.now);
  for (program p : {program::forward, program::backward}) {
    if (r.now.batch.samples == 0) {
      if (r.sums.skip(r.of.training[p == program::backward]) != waited::done)
        return "a replica without samples did not go on";
    } else if (std::string const wrong = run(r, p); !wrong.empty()) {
      return wrong;
    }
  }
  if (r.sums.finish() != waited::done) return "the run did not finish";
  std::string wrong;
  for (int i = 0; i + 1 < int(r.of.places.size()); ++i)
    r.for_each_own(i, [&](long k, float&, float& gradient) {
      if (gradient != float(busy) * number(i, k) + float(busy * (busy - 1) / 2))
        wrong = "a gradient is another sum";
    });
  return wrong;
}

/// The accumulations of a replica, of `accumulations` in all, which replicas cannot divide evenly.
std::string run_accumulations(replica& r, int accumulations) {
  int const count = r.shares[std::size_t(r.place.replica)];
  r.now.batch.samples = 1;
  r.now.part.accumulations = count;
  for (r.now.part.accumulation = 0; r.now.part.accumulation < count; ++r.now.part.accumulation) {
    r.sums.begin(r.now);
    for (program p : {program::forward, program::backward})
      if (std::string const wrong = run(r, p); !wrong.empty()) return wrong;
    if (r.sums.finish() != waited::done) return "the run did not finish";
  }
  int added = 0;  // by the numbers of the replicas
  for (int i = 0; i < int(r.shares.size()); ++i) added += i * r.shares[std::size_t(i)];
  std::string wrong;
  for (int i = 0; i + 1 < int(r.of.places.size()); ++i)
    r.for_each_own(i, [&](long k, float&, float& gradient) {
      if (gradient != float(accumulations) * number(i, k) + float(added))
        wrong = "a gradient is another sum";
    });
  return wrong;
}

}  // namespace

TEST_CASE("launches read whole parameters, and replicas keep their parts of the sums") {
  for (int zero : {2, 3})
    for (int count : {1, 2, 4}) {
      matrices const model(6, zero);
      CHECK(of_all(model, count, [&](replica& r) { return run_accumulation(r, count); }) ==
            results(std::size_t(count)));
    }
}
TEST_CASE("replicas without samples take part, launch by launch") {
  for (int zero : {2, 3})
    for (int busy : {1, 2}) {
      matrices const model(6, zero);
      CHECK(of_all(model, 3, [&](replica& r) { return run_accumulation(r, busy); }) == results(3));
    }
}
TEST_CASE("replicas that run different numbers of accumulations keep their parts of the sum") {
  for (int count : {3, 5, 7}) {
    matrices const model(4, 2, 8);
    CHECK(of_all(model, count, [&](replica& r) { return run_accumulations(r, 8); }) ==
          results(std::size_t(count)));
  }
}
TEST_CASE("between runs all replicas have whole parameters, and take their parts of new ones") {
  matrices const model(3, 3);
  auto const takes_over = [&](replica& r) -> std::string {
    auto& windows = r.sums.windows();
    std::vector<float> all(std::size_t(model.bytes) / sizeof(float), -1.0F);
    if (windows.collect(0, reinterpret_cast<char*>(all.data())) != waited::done)
      return "parameters do not come";
    for (int i = 0; i < 3; ++i)
      for (long k = 0; k < model.place(i).elements(); ++k) {
        float& x = all[std::size_t(model.place(i).offset / matrices::width + k)];
        if (x != number(i, k)) return "a parameter is another one";
        x += 1;
      }
    windows.distribute(0, reinterpret_cast<char const*>(all.data()));
    std::string wrong;
    for (int i = 0; i < 3; ++i)
      r.for_each_own(i, [&](long k, float& own, float&) {
        if (own != number(i, k) + 1) wrong = "an own part is not taken over";
      });
    return wrong;
  };
  CHECK(of_all(model, 2, takes_over) == results(2));
}
TEST_CASE("operands of divided parameters are found by launch") {
  matrices const model(3, 3);
  divided_operands all;
  all.assemble(model.d, matrices::width, 0);
  CHECK(all.parameters().size() == 3);
  program_set const& set = model.chunk.keeping;
  int const forward = divided_operands::program_number(model.d, 0, set, program::forward),
            backward = divided_operands::program_number(model.d, 0, set, program::backward);
  auto const first = all.of_launch(forward, 1);
  REQUIRE(first.size() == 1);
  CHECK((first[0].operand == 1 && first[0].parameter == 1 && first[0].offset == 0));
  CHECK(all.after_launch(forward, 0).size() == 2);
  CHECK(all.after_launch(forward, 2).size() == 0);
  // The transposed copy and the gradient; not the gradient of the vector.
  auto const last = all.of_launch(backward, 2);
  REQUIRE(last.size() == 2);
  CHECK((!last[0].is_gradient && last[0].parameter == 0));
  CHECK(last[0].offset == all.parameters()[0].bytes);
  CHECK((last[1].is_gradient && last[1].operand == 1 && last[1].offset == 0));
  // Each matrix has a bucket of its own here.
  for (int b = 0; b < 3; ++b) CHECK(all.parameter_of(0, b) == b);
  CHECK(all.parameter_of(0, 3) == -1);
  // With ZeRO<2> only gradients are divided.
  matrices const whole(3, 2);
  divided_operands gradients;
  gradients.assemble(whole.d, matrices::width, 0);
  CHECK(gradients.after_launch(forward, 0).size() == 0);
  CHECK(gradients.of_launch(backward, 2).size() == 1);
}
TEST_CASE("buckets come in the order in which backward completes them") {
  matrices const model(3, 2);
  auto const buckets = gradient_buckets(model.d, matrices::width, 0);
  REQUIRE(buckets.size() == 4);
  for (int i = 0; i < 3; ++i) {
    CHECK(buckets[i].launch[0] == i);
    CHECK(buckets[i].begin == model.place(2 - i).offset);
  }
  CHECK(buckets[3].launch[0] == 2);  // the vector, of the last launch, too
  CHECK(buckets[3].begin == model.chunk.sizes.divided);
  CHECK(gradient_buckets(model.d, matrices::width, 1).size() == 0);
}
