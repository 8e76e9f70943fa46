// SPDX-License-Identifier: BSL-1.0
//
// Both namespaces at once: what a program means by a name of the standard library is that name, and
// words that programs have types of their own for are not taken; nor are names of layers, losses
// and optimizers that other libraries have and this one lacks.
#include <algorithm>
#include <barrier>
#include <cmath>
#include <complex>
#include <functional>
#include <future>
#include <iterator>
#include <list>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <ranges>
#include <ratio>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <pipe/infer/generate.hpp>
#include <pipe/pipe.hpp>
#include <pipe/schedule.hpp>

using namespace std;
using namespace pp;

struct action {};
struct address {};
struct builder {};
struct cost {};
struct drawing {};
struct graph {};
struct group {};
struct op {};
struct parameter {};
struct placement {};
struct problem {};
struct program {};
struct region {};
struct step {};
struct transfer {};
struct value {};
struct view {};
using of_the_program = tuple<action, address, builder, cost, drawing, graph, group, op, parameter,
                             placement, problem, program, region, step, transfer, value, view>;
static_assert(tuple_size_v<of_the_program> == 17);

template <int Channels, int Size>
struct Conv3d {};
struct CrossEntropyLoss {};
struct LSTM {};
struct Shampoo {};
using of_other_libraries = tuple<Conv3d<16, 3>, CrossEntropyLoss, LSTM, Shampoo>;
static_assert(tuple_size_v<of_other_libraries> == 4);

namespace {

struct Net : Model<Input<3>, Linear<4>, Tanh, Linear<2>, MSE> {};
using Trainer = Pipeline<Net, SGD, Stages<2>, MicroBatches<2>, OneFOneB, PortableHost>;
static_assert(Trainer::plan().stages[0].rank == 0);
constexpr auto question = schedules::equal_times(2, 4);
static_assert(schedules::validate(question, schedules::make_table<GPipe, 2, 4>(question)).ok());

[[maybe_unused]] bool use(vector<int>& v) {
  mt19937 bits(1);
  vector<int> taken;
  sample(v.begin(), v.end(), back_inserter(taken), 2, bits);
  generate(v.begin(), v.end(), [] { return 1; });
  transform(v.begin(), v.end(), v.begin(), negate<>{});
  sort(v.begin(), v.end(), greater<int>{});
  barrier all(1);
  all.arrive_and_wait();
  span<int const> const part(v);
  shared_ptr<int> const share = make_shared<int>(accumulate(part.begin(), part.end(), 0));
  unique_ptr<int[]> const array = make_unique<int[]>(3);
  array[0] = gcd(midpoint(1, 3), clamp(*share, 1, 2));
  optional<string> const text = to_string(reduce(v.begin(), v.end()));
  variant<int, double> const value = abs(-1.0);
  set<pair<int, int>> const places{{min(1, 2), max(1, 2)}};
  function<bool(int)> const fits = [&](int x) { return find(v.begin(), v.end(), x) != v.end(); };
  return fits(get<0>(make_tuple(array[0]))) && text &&
         !visit([](auto x) { return x > 2; }, value) && places.size() == 1 &&
         search(v.begin(), v.end(), v.begin(), v.end()) == v.begin() &&
         async(launch::deferred, [] { return true; }).get() && distance(v.begin(), v.end()) == 1;
}

[[maybe_unused]] int of_lists(list<int> l, int first, int second) {
  tie(first, second) = pair(l.front(), l.back());
  return int(ratio<1, 2>::num) + first + second + *ranges::find(l, 1) + *next(l.begin());
}

}  // namespace
