// SPDX-License-Identifier: BSL-1.0
//
// The parts of a trainer, each alone: accumulation, averages, initial values, the first number that
// is not finite, and where everything lies.
#include <climits>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "catch.hpp"

#include <pipe/nn/activation.hpp>
#include <pipe/nn/linear.hpp>
#include <pipe/nn/loss.hpp>
#include <pipe/nn/model.hpp>
#include <pipe/nn/named.hpp>
#include <pipe/optim/adam.hpp>
#include <pipe/optim/muon.hpp>
#include <pipe/plan/compiled/memory_map.hpp>
#include <pipe/plan/compiled/ties.hpp>
#include <pipe/plan/compiled/update_ranges.hpp>
#include <pipe/train/parts/accumulated_batches.hpp>
#include <pipe/train/parts/accumulation_runs.hpp>
#include <pipe/train/parts/averages.hpp>
#include <pipe/train/parts/find_nonfinite.hpp>
#include <pipe/train/parts/initialize_parameters.hpp>

using namespace pp;
using namespace pp::detail;

namespace {

/// The text of the E that call() throws.
template <class E, class Call>
std::string text_of(Call call) {
  try {
    call();
  } catch (E const& e) {
    return e.what();
  }
  return "no error";
}

job of_terms(double terms, int samples) {
  job j;
  j.loss.count(terms);
  j.batch.samples = samples;
  return j;
}

constexpr std::string_view names[]{"labels", "kind"};
/// Adds a job with one loss. Returns the loss over all so far.
template <int Losses>
double add(detail::accumulated_batches<Losses>& all, job const& j, double loss) {
  step_result r{.loss = loss, .losses = {&loss, 1}};
  all.add(j, r);
  return r.loss;
}

TEST_CASE("Accumulated mini-batches have the loss and the scale of one with all of their terms") {
  detail::accumulated_batches<1> all;
  job first = of_terms(4, 2), second = of_terms(0, 1), third = of_terms(12, 3);
  all.extend(first, false, names);
  CHECK(
      (!first.part.continues && first.part.first_sample == 0 && first.update.gradient_scale == 1));
  CHECK(add(all, first, 2.5) == 2.5);
  all.extend(second, false, names);  // nothing counts: its loss is 0 over one term
  CHECK((second.part.continues && second.part.first_sample == 2));
  CHECK(add(all, second, 0) == 2.5);
  all.extend(third, false, names);
  CHECK(third.loss.gradient_terms == 4);           // as if the first were alone
  CHECK(third.update.gradient_scale == 4.0 / 16);  // and then as a mean over all
  CHECK(third.part.first_sample == 3);
  CHECK(add(all, third, 0.5) == (4 * 2.5 + 12 * 0.5) / 16);
  CHECK(all.count() == 3);
}

TEST_CASE("Mini-batches without a label have no loss, and no step has none") {
  detail::accumulated_batches<1> all;
  job none = of_terms(0, 2), last = of_terms(0, 2), some = of_terms(2, 2);
  none.update.applies = false;
  all.extend(none, false, names);
  CHECK(std::isnan(add(all, none, 0)));
  CHECK(text_of<data_error>([&] { detail::accumulated_batches(all).extend(last, false, names); }) ==
        "labels: none of this step counts, so it has no loss: leave its mini-batch out");
  all.extend(some, false, names);
  CHECK(some.update.gradient_scale == 1.0 / 2);  // backward has divided by 1
  CHECK(add(all, some, 3) == 3);
}

TEST_CASE("Accumulated sums are added") {
  detail::accumulated_batches<1> all;
  job first = of_terms(1, 2), second = of_terms(1, 2);
  all.extend(first, true, names);
  add(all, first, 3);
  all.extend(second, true, names);
  CHECK((second.update.gradient_scale == 1 && add(all, second, 4) == 7));
}

TEST_CASE("The gradients of each loss are divided by its own terms") {
  auto const of_both = [](double terms, double of_kind) {
    job j = of_terms(terms, 2);
    j.update.applies = false;
    j.loss.further.count = 1;
    j.loss.further.items[0].weight = 3;
    j.loss.further.items[0].counted = of_kind;
    return j;
  };
  detail::accumulated_batches<2> counted, other;
  job const jobs[]{of_both(4, 0), of_both(0, 5), of_both(6, 15)};
  for (job const& j : jobs) counted.count_ahead(j, false);
  for (job j : jobs) {
    counted.extend(j, false, names);
    CHECK((j.loss.gradient_terms == 10 && j.loss.further.items[0].factor == 3 * 10.0 / 20));
    double const losses[] = {double(j.loss.counted > 0),
                             2. * (j.loss.further.items[0].counted > 0)};
    step_result r{.losses = {losses, 2}};
    counted.add(j, r);
    if (counted.count() == 3)
      CHECK((j.update.gradient_scale == 1 && r.losses[1] == 2 && r.loss == 7));
  }
  job first = of_both(4, 2), second = of_both(4, 3);
  other.extend(first, false, names);
  add(other, first, 1);
  other.extend(second, false, names);  // what comes may have the terms that lack
  second.update.applies = true;
  CHECK(text_of<data_error>([&] {
          detail::accumulated_batches<2>(other).extend(second, false, names);
        }).starts_with("step(): the gradients of 2 mini-batches"));
  second.loss.further.items[0].weight = 0;  // only measured
  detail::accumulated_batches<2>(other).extend(second, false, names);
}

struct Net : Model<Input<3>, Linear<4>, ReLU, Linear<2>, MSE> {};

/// Two chunks in memory of their own, each with a parameter and its average.
struct memory_of_chunks {
  std::vector<float> numbers[2]{std::vector<float>(64), std::vector<float>(64)};
  parameter_place places[2];
  chunk_description chunks[2];
  static inline bool second_is_local = true;

  memory_of_chunks() {
    for (int c = 0; c < 2; ++c) {
      places[c] = parameter_place{2 * c, true, false, c == 0 ? 3 : 4, c == 0 ? 4 : 2, 0, -1};
      chunks[c].parameters = {&places[c], 1};
      chunks[c].values = 0;
      chunks[c].average = 32 * long(sizeof(float));
      chunks[c].sizes.trained = places[c].elements() * long(sizeof(float));
    }
  }
  char* memory(int chunk) { return reinterpret_cast<char*>(numbers[chunk].data()); }
  static bool is_local(int chunk) { return chunk == 0 || second_is_local; }
  detail::parameter_memory<memory_of_chunks> parameters() { return {chunks, 2, this}; }
};

TEST_CASE("Initial values depend on seed, parameter and element, and averages begin with them") {
  memory_of_chunks one, same, other;
  detail::initialize_parameters<Net, float, true>(one.parameters(), 1);
  detail::initialize_parameters<Net, float, true>(same.parameters(), 1);
  detail::initialize_parameters<Net, float, true>(other.parameters(), 2);
  for (int c = 0; c < 2; ++c) {
    long const n = one.places[c].elements();
    CHECK(one.numbers[c] == same.numbers[c]);
    CHECK(one.numbers[c] != other.numbers[c]);
    CHECK(std::memcmp(&one.numbers[c][0], &one.numbers[c][32], sizeof(float) * std::size_t(n)) ==
          0);
    CHECK(one.numbers[c][std::size_t(n)] == 0);  // and nothing beyond
    CHECK(one.numbers[c][0] ==
          detail::initial_value<float>(Net::graph.parameters[2 * c].initial, 1, one.places[c], 0));
  }
}

TEST_CASE("Averages are swapped in and out, of the chunks of this process") {
  memory_of_chunks m;
  for (int c = 0; c < 2; ++c)
    for (int i = 0; i < 64; ++i) m.numbers[c][std::size_t(i)] = float(100 * c + i);
  auto const before = std::vector{m.numbers[0], m.numbers[1]};
  detail::averages averages;
  memory_of_chunks::second_is_local = false;
  averages.swap(m.parameters());
  CHECK((m.numbers[0][0] == 32 && m.numbers[0][32] == 0));
  CHECK(m.numbers[0][11] == 43);
  CHECK(m.numbers[0][12] == 12);  // no parameter
  CHECK(m.numbers[1] == before[1]);
  CHECK(text_of<error>([&] { averages.require_out(7); }) ==
        "step 7: averages stand in for the parameters: call swap_averages() first");
  averages.swap(m.parameters());
  memory_of_chunks::second_is_local = true;
  CHECK(std::vector{m.numbers[0], m.numbers[1]} == before);
  averages.require_out(7);
}

TEST_CASE("The first fault is the first on the way of a micro-batch through the model") {
  detail::fault_place const forward{1, 2, 3, 4, true, true}, later_launch{1, 2, 4, 5, true, true},
      next_chunk{1, 3, 0, 6, true, true}, backward{1, 3, 0, 6, false, true},
      earlier_chunk{1, 2, 0, 4, false, true}, next_micro_batch{2, 0, 0, 0, true, true},
      many{5'000'000, 0, 0, 0, true, true}, last{INT_MAX, 0, 100'000, 0, false, true};
  detail::fault_place const in_order[] = {forward,       later_launch,     next_chunk, backward,
                                          earlier_chunk, next_micro_batch, many,       last};
  for (int i = 0; i < 8; ++i)
    for (int k = 0; k < 8; ++k) {
      INFO(i << " " << k);
      CHECK((in_order[i].order() < in_order[k].order()) == (i < k));
    }
}

TEST_CASE("A parameter that is not finite is named with its layer and place") {
  memory_of_chunks m;
  m.numbers[1][5] = std::numeric_limits<float>::infinity();
  detail::finding const found = detail::find_in_parameters<Net, float>({3, ""}, m.parameters());
  CHECK(found.order == (2L << 44) + 5);  // by parameter, and by position in it
  CHECK(found.text ==
        "step 3 rejected: a parameter of layer 2 (Linear<2>), 4 x 2: inf at position 5, written or "
        "made by an update of an earlier step: was its learning rate too large?");
  m.numbers[1][5] = 1;
  m.numbers[1][8] = NAN;  // beyond the parameter
  CHECK(detail::find_in_parameters<Net, float>({3, ""}, m.parameters()).text == "");
}

TEST_CASE("An accumulation is the part of a mini-batch that its number says, or nothing") {
  float x[10 * 3], y[10 * 2];
  detail::job whole;
  whole.batch.input[0] = x;
  whole.batch.label = y;
  whole.batch.samples = 10;
  whole.part.first_sample = 100;
  detail::batch_accumulations const four{4, 4, 1, 0, 1, {}};
  auto const accumulation = [&](int i) { return four.part_of<Net, float>(whole, i, 1); };
  constexpr long inputs = 3, labels = 2;
  CHECK((accumulation(0).batch.samples == 4 && accumulation(1).batch.samples == 4 &&
         accumulation(2).batch.samples == 2));
  CHECK((accumulation(2).batch.input[0] == x + 8 * inputs &&
         accumulation(2).batch.label == y + 8 * labels));
  CHECK((accumulation(1).part.first_sample == 104 && accumulation(3).part.first_sample == 110));
  CHECK((accumulation(3).batch.samples == 0 && accumulation(3).batch.input[0] == x + 10 * inputs));
  CHECK(accumulation(0).batch.output[0] == nullptr);
}

constexpr memory_map<3, 2> three_chunks() {
  memory_map<3, 2> m;
  for (int s = 0; s < 3; ++s) {
    m.chunks[s].rank = s % 2;
    m.chunks[s].gradients = 64;
    m.chunks[s].first_holder = s;
    m.chunks[s].sizes.weights = 64;
    m.chunks[s].sizes.values = 128 * (s + 1) - 64;
    m.holders[s] = chunk_holder{s, s % 2, 0};
  }
  for (int r = 0; r < 2; ++r)
    lay_out_rank(m, r, list<long, 3>{{100, 300, 200}}, /*threads=*/2, /*workspace_bytes=*/64);
  return m;
}
TEST_CASE(
    "A rank's arena has its chunks, the largest of their scratches, and a workspace per thread") {
  constexpr auto m = three_chunks();
  CHECK((m.chunks[0].values == 0 && m.chunks[0].gradients == 64));
  CHECK((m.chunks[2].values == 128 && m.chunks[2].gradients == 192));  // after chunk 0
  CHECK(m.rank[0].scratch == 128 + 384);
  CHECK(m.rank[0].workspace == 512 + detail::align_up(200));
  CHECK(m.rank[0].bytes == m.rank[0].workspace + 2 * 64);
  CHECK((m.rank[1].scratch == 256 && m.rank[1].bytes == 256 + detail::align_up(300) + 2 * 64));
}

struct found_ranges {
  list<update_range, 4> ranges;
  int count = 0;
  long state = 0;
};
template <class Optimizer>
constexpr found_ranges ranges_for() {
  constexpr list<int, 4> order{{0, 1, 2, 3}};  // weight, bias, weight, bias
  found_ranges found;
  detail::sink<update_range> into{found.ranges.items};
  found.state = find_update_ranges<Optimizer, float>({Net::graph.parameters, 4}, order.items, into);
  found.count = into.count;
  return found;
}

TEST_CASE("An optimizer for single elements takes neighbours at once, one for tensors each alone") {
  constexpr found_ranges single = ranges_for<AdamW>(), whole = ranges_for<Muon>();
  for (auto const* u : {&single, &whole}) {  // side by side, from the first number to the last
    long end = 0;
    for (int i = 0; i < u->count; ++i) {
      CHECK(u->ranges[i].begin == end);
      end = u->ranges[i].end;
    }
    CHECK(end == detail::padded<float>(12) + detail::padded<float>(4) + detail::padded<float>(8) +
                     detail::padded<float>(2));
  }
  CHECK(single.count == 4);  // weights decay, biases do not
  CHECK(single.state == 2 * single.ranges[3].end);
  CHECK((whole.ranges[0].whole && !whole.ranges[1].whole));
  CHECK((whole.ranges[0].shape.rows == 3 && whole.ranges[0].shape.columns == 4));
}

struct TiedNet : Model<Input<4>, Named<"a", Linear<4>>, ReLU, Tied<"a">, Linear<2>, MSE> {};
TEST_CASE("A tie has the places of a shared parameter and of its owner") {
  constexpr auto const& graph = TiedNet::graph;
  constexpr int count = count_ties(graph);
  REQUIRE(count > 0);
  parameter_place places[8];
  for (int i = 0; i < graph.size.parameters; ++i) places[i].index = i;
  short const stage_of_unit[] = {0, 0, 1, 1};
  int const second = detail::graph_view(graph).first_parameter(2);
  parameter_place const* const of_stage[] = {places, places + second};
  list<tie, count> ties;
  find_ties(graph, of_stage, stage_of_unit, ties.items);
  for (int i = 0; i < count; ++i) {
    CHECK((ties[i].chunk == 1 && ties[i].owner_chunk == 0));
    CHECK(graph.parameters[ties[i].place.index].tied_to == ties[i].owner.index);
  }
}

}  // namespace
