// SPDX-License-Identifier: BSL-1.0
//
// Chains of launches by a rule of the tests' own: what is found, what has no place in memory, and
// that everything else is where nothing overlaps it.
#include "catch.hpp"

#include <array>
#include <vector>

#include <pipe/pipe.hpp>

using namespace pp;
using namespace pp::detail;

namespace {

/// Launches go together, up to `most`, that begin with what the one before has made.
template <int Most>
struct in_a_row {
  struct rule_type {
    constexpr int taken(detail::group const& g) const { return g.in[0]; }
    constexpr int handed(detail::group const& g) const {
      return g.epilogue.empty() ? g.out[0] : g.epilogue.back().store;
    }
    constexpr bool is_optional(detail::group const& g, int index) const {
      return index == handed(g);
    }
    constexpr detail::recomputed_launches recomputed(detail::unplaced_program const&,
                                                     detail::view<detail::launch_chain>,
                                                     detail::unplaced_program const&,
                                                     detail::launch_chain const&, bool) const {
      return {};
    }
    constexpr bool may_join(detail::group const& g, int) const {
      return g.anchor != op_kind::squared_error;
    }
    constexpr detail::launch_chain longest(detail::unplaced_program const& p, int first) const {
      detail::launch_chain c{first, 1, 7};
      while (first + c.count < p.size() && c.count < Most) {
        detail::operand const made =
            p.operand_of(first + c.count - 1, handed(p.shape(first + c.count - 1)));
        if (p.shape(first + c.count).anchor == op_kind::squared_error) break;
        if (made == detail::operand{} ||
            made != p.operand_of(first + c.count, taken(p.shape(first + c.count))))
          break;
        ++c.count;
      }
      return c;
    }
  };
  static constexpr bool any = true;
  static constexpr rule_type rule{};
  static constexpr bool may_take_loss() { return false; }
  static constexpr int number(detail::chain_kernel const& k) { return 1000 + k.groups[0]; }
};

struct Mlp
    : Model<Input<6>, Linear<9>, Tanh, Linear<5>, LayerNorm, Linear<7>, Softmax, Linear<2>, MSE> {};
using passes = Pipeline<Mlp, PortableHost, RecomputeAll, MicroBatchSize<4>>::compiled::passes;

/// The chains of a list, found by the program.
template <class Rule>
std::vector<detail::launch_chain> found(Rule const& rule, detail::unplaced_program const& p,
                                        bool* alone) {
  std::vector<detail::launch_chain> all(static_cast<std::size_t>(p.size()));
  detail::sink<detail::launch_chain> to{all.data()};
  std::array<bool, passes::groups> may_join{};
  for (int g = 0; g < passes::groups; ++g)
    may_join[std::size_t(g)] = rule.may_join(passes::shapes[g], passes::samples);
  detail::find_chains(rule, may_join.data(), p, to, alone);
  all.resize(std::size_t(to.count));
  return all;
}

template <class Chains, detail::program Which, bool Drops>
void holds() {
  using with = passes::programs<0, Drops, Chains>;
  using without = passes::programs<0, Drops>;
  detail::unplaced_program const p = with::template unplaced<Which>;
  std::array<bool, passes::groups> alone{};
  std::vector<detail::launch_chain> const chains = found(Chains::rule, p, alone.data());
  REQUIRE(int(chains.size()) == with::template chains<Which>.count);
  int end = 0, joined = 0;
  for (std::size_t c = 0; c < chains.size(); ++c) {
    CHECK(chains[c] == with::template chains<Which>[int(c)]);
    CHECK((chains[c].first >= end && chains[c].count > 1 && chains[c].form == 7));
    end = chains[c].first + chains[c].count;
    joined += chains[c].count - 1;
  }
  CHECK(end <= p.size());

  // launches: fewer, with the same operands in the same order
  auto const& few = with::template launches<Which>();
  auto const& many = without::template launches<Which>();
  REQUIRE(few.items.size() == many.items.size() - joined);
  REQUIRE(few.operands.size() == many.operands.size());
  int operands = 0, numbered = 0;
  for (launch const& l : few.items) {
    CHECK(l.first == operands);
    operands += l.count;
    numbered += l.group >= 1000;
    // Every group that is launched by itself is known, and no other.
    if (l.group < passes::groups) {
      CHECK(alone[std::size_t(l.group)]);
      CHECK(with::plain_chains.alone[l.group]);
    }
  }
  for (int g = 0; g < passes::groups; ++g) {
    bool is_launched = false;
    for (launch const& l : few.items) is_launched = is_launched || l.group == g;
    CHECK(alone[std::size_t(g)] == is_launched);
  }
  CHECK(operands == few.operands.size());
  CHECK(numbered == int(chains.size()));

  // places: what lives at one time does not overlap; a value without one is handed on in a chain
  detail::chain_walk walk{with::template chains<Which>};
  for (int i = 0; i < p.size(); ++i) {
    bool const is_joined = walk.meets(i);
    int const handed = is_joined ? Chains::rule.handed(p.shape(i)) : -1,
              taken = is_joined && i > walk.chains[walk.next].first ? Chains::rule.taken(p.shape(i))
                                                                    : -1;
    for (int index = 0; index < p.shape(i).operands; ++index) {
      detail::operand const x = p.operand_of(i, index);
      if (x.where == detail::space::value &&
          with::template resolve<Which>(x).where == detail::region::none)
        CHECK((index == handed || index == taken));
    }
  }
  std::vector<detail::range> live(std::size_t(with::range.local_values()), detail::range{-1, -1});
  std::vector<int> index(live.size());
  detail::chain_walk again{with::template chains<Which>};
  for (int i = 0; i < p.size(); ++i) {
    detail::launch_chain const c =
        again.meets(i) ? again.chains[again.next] : detail::launch_chain{i, 1, 0};
    int const first = c.first, last = c.first + c.count;
    for (int k = 0; k < p.shape(i).operands; ++k) {
      detail::operand const x = p.operand_of(i, k);
      if (x.where != detail::space::value || with::range.local(x.index) < 0) continue;
      auto const v = std::size_t(with::range.local(x.index));
      index[v] = x.index;
      live[v] = detail::range{live[v].begin < 0 ? first : live[v].begin, last};
    }
  }
  for (std::size_t a = 0; a < live.size(); ++a)
    for (std::size_t b = 0; b < a; ++b) {
      if (live[a].begin >= live[b].end || live[b].begin >= live[a].end) continue;
      detail::address const x = with::template resolve<Which>(detail::value_operand(index[a])),
                            y = with::template resolve<Which>(detail::value_operand(index[b]));
      if (x.where != detail::region::scratch || y.where != detail::region::scratch) continue;
      CHECK((x.offset + passes::values.bytes(index[a]) <= y.offset ||
             y.offset + passes::values.bytes(index[b]) <= x.offset || x.offset == y.offset));
    }
}

}  // namespace

TEST_CASE("chains are found before memory is planned", "[passes]") {
  holds<in_a_row<16>, detail::program::forward, false>();
  holds<in_a_row<16>, detail::program::backward, false>();
  holds<in_a_row<16>, detail::program::forward, true>();
  holds<in_a_row<2>, detail::program::forward, true>();
  holds<in_a_row<3>, detail::program::backward, true>();
}

TEST_CASE("what a chain alone has needs no memory", "[passes]") {
  auto const scratch = []<class Chains>(Chains) {
    return passes::programs<0, true, Chains>::layout.bytes.scratch;
  };
  long const apart = scratch(detail::no_chains{}), pairs = scratch(in_a_row<2>{}),
             all = scratch(in_a_row<16>{});
  CHECK(all < apart);
  CHECK(all <= pairs);
  // the kernel of a chain knows whose result it need not store
  detail::chain_kernel const& k =
      passes::programs<0, true, in_a_row<16>>::chain_kernels<detail::program::forward>[0];
  CHECK(k.count > 2);
  CHECK(k.form == 7);
  CHECK(k.dropped != 0);
  CHECK((k.dropped >> (k.count - 1) & 1) == 0);
}
