// SPDX-License-Identifier: BSL-1.0
//
// Chains of narrow layers as one kernel against the kernels of their launches: the same memory,
// full of numbers, before; the same bits after, in all of it that the chain has.
#pragma once

#include "catch.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "cuda/one_group.hpp"

#include <pipe/backend/cuda/lowering/lowering.hpp>
#include <pipe/passes/stage_programs.hpp>

namespace narrow {

/// The numbers of a pipeline's kernels, whatever its own are; Format: what products are computed
/// in.
template <class Trainer, class T, pp::cuda::product_format Format>
struct source : pp::cuda::kernel_source<typename Trainer::compiled::passes, T,
                                        Format == pp::cuda::product_format::tf32
                                            ? pp::dtype::tf32
                                            : pp::detail::dtype_of<T>::value> {};

/// The chains of a trainer's passes in a number format, without the trainer's backend. number: a
/// program's own.
template <class T, pp::cuda::product_format Format, bool TakesLoss = false>
struct chains_in : pp::cuda::narrow_chains<T, Format == pp::cuda::product_format::tf32
                                                  ? pp::dtype::tf32
                                                  : pp::detail::dtype_of<T>::value> {
  static constexpr int number(pp::detail::chain_kernel const&) { return 1 << 20; }
  static constexpr bool may_take_loss() { return TakesLoss; }
};
/// The programs of stage S as the last micro-batch runs them, or the first, which may recompute.
template <class Trainer, int S, class T, pp::cuda::product_format Format, bool TakesLoss = false>
using programs_of =
    typename Trainer::compiled::passes::template programs<S, Trainer::compiled::some_drop,
                                                          chains_in<T, Format, TakesLoss>>;

/// Chain Index of a program, as a constant for device code.
template <class Programs, pp::detail::program Which, int Index>
struct kernel_constant {
  static constexpr pp::detail::chain_kernel value = Programs::template chain_kernels<Which>[Index];
};

/// A buffer for each operand of a chain.
template <class T>
class memory {
 public:
  /// An operand of so many bytes.
  void has(pp::detail::operand const& x, std::size_t bytes) {
    std::size_t& most = bytes_[name(x)];
    most = std::max(most, bytes);
  }
  void labels_are_ids() { has_ids_ = true; }
  void fill() {
    int stream = 0;
    for (auto const& of : bytes_) {  // clang++ before 16 captures no structured binding
      key const which = of.first;
      std::size_t const bytes = of.second;
      auto& b = at_.emplace(which, on_host::buffer<unsigned char>(bytes)).first->second;
      auto const numbers = [&]<class Number>(Number const*, auto make) {
        for (std::size_t i = 0; i + sizeof(Number) <= bytes; i += sizeof(Number)) {
          Number const x = make(i);
          std::memcpy(b.data() + i, &x, sizeof x);
        }
      };
      auto const random = [&](std::size_t i) {
        return float(0.5 * laws::uniform(9, std::uint64_t(stream), i));
      };
      if (which.first == pp::detail::space::random)
        numbers(static_cast<int const*>(nullptr), [&](std::size_t) { return which.second; });
      else if (which.first == pp::detail::space::label && has_ids_)
        numbers(static_cast<int const*>(nullptr), [](std::size_t i) { return int(i % 4) - 1; });
      else if (which.first == pp::detail::space::parameter_gradient ||
               which.first == pp::detail::space::label)
        numbers(static_cast<float const*>(nullptr), random);
      else
        numbers(static_cast<T const*>(nullptr), [&](std::size_t i) { return T(random(i)); });
      ++stream;
    }
  }
  void* find(pp::detail::operand const& x) { return at_.at(name(x)).data(); }
  /// Whether all but some operands are the same.
  bool equals(memory const& other, std::vector<pp::detail::operand> const& but) const {
    for (auto const& [which, bytes] : bytes_) {
      bool left_out = false;
      for (pp::detail::operand const& x : but) left_out = left_out || name(x) == which;
      if (!left_out && std::memcmp(&at_.at(which)[0], &other.at_.at(which)[0], bytes) != 0)
        return false;
    }
    return true;
  }
  /// Whether one operand is the same.
  bool equals(memory const& other, pp::detail::operand const& x) const {
    std::size_t const bytes = bytes_.at(name(x));
    return std::memcmp(&at_.at(name(x))[0], &other.at_.at(name(x))[0], bytes) == 0;
  }

 private:
  using key = std::pair<pp::detail::space, int>;
  /// A weight and its transpose are one piece of memory, as on a GPU.
  static key name(pp::detail::operand const& x) {
    using pp::detail::space;
    return {x.where == space::parameter_transposed ? space::parameter : x.where, x.index};
  }
  bool has_ids_ = false;  // for labels
  std::map<key, std::size_t> bytes_;
  std::map<key, on_host::buffer<unsigned char>> at_;
};

/// Bytes of operand `index` of a launch of group g.
template <class P>
std::size_t bytes_of_operand(pp::detail::group const& g, int index) {
  using pp::op_kind;
  std::size_t const T = sizeof(typename P::element), rows = std::size_t(g.rows) * P::samples,
                    columns = std::size_t(g.columns);
  if (pp::detail::is_loss(g.anchor)) {
    if (index != g.in[1]) return rows * columns * T;  // logits and their gradient
    return rows * (g.anchor == op_kind::cross_entropy ? sizeof(int) : columns * sizeof(float));
  }
  std::size_t const inner = std::size_t(g.attributes.contraction().inner);
  bool const weight = g.anchor == op_kind::matmul_weight_gradient;
  if (index == g.in[0]) return rows * inner * T;
  if (index == g.in[1]) return (weight ? rows : inner) * columns * T;
  if (index == g.out[0]) return weight ? inner * columns * sizeof(float) : rows * columns * T;
  if (weight) return columns * sizeof(float);  // of the bias
  for (pp::detail::pointwise_op const& s : g.epilogue)
    if (index == s.operand)
      return s.kind == op_kind::dropout    ? sizeof(int)
             : s.kind == op_kind::bias     ? columns * T
             : s.kind == op_kind::row_bias ? std::size_t(g.rows) * columns * T
                                           : rows * columns * T;
  return rows * columns * T;
}

/// Operands of a chain that are in one region do not overlap: all of them live at once.
template <class P, class Programs, pp::detail::program Which, int Index>
void has_room_for_all() {
  constexpr pp::detail::launch_chain chain = Programs::template chains<Which>[Index];
  constexpr pp::detail::unplaced_program list = Programs::template unplaced<Which>;
  struct piece {
    pp::detail::operand what;
    pp::detail::address at;
    long end;
  };
  std::vector<piece> pieces;
  for (int i = chain.first; i < chain.first + chain.count; ++i)
    for (int index = 0; index < list.shape(i).operands; ++index) {
      pp::detail::operand const x = list.operand_of(i, index);
      pp::detail::address const at = Programs::template resolve<Which>(x);
      if (x.where == pp::detail::space::value && at.where != pp::detail::region::none)
        pieces.push_back({x, at, at.offset + long(bytes_of_operand<P>(list.shape(i), index))});
    }
  for (piece const& a : pieces)
    for (piece const& b : pieces)
      if (!(a.what == b.what) && a.at.where == b.at.where)
        CHECK((a.end <= b.at.offset || b.end <= a.at.offset));
}

/// Chain Index of a program as one kernel changes memory as its launches do, in every order of the
/// threads; what it hands on within itself has no place.
template <class P, class Programs, pp::detail::program Which, int Index>
void is_its_launches(bool accumulate) {
  constexpr pp::detail::launch_chain chain = Programs::template chains<Which>[Index];
  constexpr pp::detail::unplaced_program list = Programs::template unplaced<Which>;
  using constant = kernel_constant<Programs, Which, Index>;
  using mlp = pp::cuda::lowered_chain<P, constant>;
  has_room_for_all<P, Programs, Which, Index>();

  // what has no place
  std::vector<pp::detail::operand> dropped;
  for (int k = 0; k < chain.count; ++k)
    for (int index = 0; index < list.shape(chain.first + k).operands; ++index) {
      pp::detail::operand const x = list.operand_of(chain.first + k, index);
      if (x.where == pp::detail::space::value &&
          Programs::template resolve<Which>(x).where == pp::detail::region::none)
        dropped.push_back(x);
    }
  pp::cuda::arguments shared;
  shared.accumulate = accumulate;
  shared.training = true;
  auto const state = std::make_unique<pp::cuda::run_state>();
  state->seed = 7, state->step = 3, state->loss_scale = 0.125f;
  shared.run = state.get();
  shared.valid_samples = P::samples - 1;
  // of a loss, if the chain has one
  on_host::buffer<double> expected_losses(std::size_t(P::samples * 64)),
      losses(expected_losses.size());
  std::fill(expected_losses.data(), expected_losses.data() + losses.size(), -1.0);
  shared.loss = expected_losses.data();
  std::vector<void*> operands;
  auto const prepare = [&](memory<typename P::element>& m) {
    for (int i = chain.first; i < chain.first + chain.count; ++i) {
      if (list.shape(i).anchor == pp::op_kind::cross_entropy) m.labels_are_ids();
      for (int index = 0; index < list.shape(i).operands; ++index)
        m.has(list.operand_of(i, index), bytes_of_operand<P>(list.shape(i), index));
    }
    m.fill();
    operands.clear();
    for (int i = chain.first; i < chain.first + chain.count; ++i)
      for (int index = 0; index < list.shape(i).operands; ++index)
        operands.push_back(m.find(list.operand_of(i, index)));
  };
  memory<typename P::element> expected;
  prepare(expected);
  std::size_t next = 0;
  [&]<int... K>(std::integer_sequence<int, K...>) {
    auto const launch = [&]<int G>(std::integral_constant<int, G>) {
      using kernels = pp::cuda::lowered<P, G>;
      on_host::buffer<unsigned char> workspace(std::size_t(pp::cuda::workspace_of(kernels{})) + 1);
      pp::cuda::arguments a = shared;
      a.workspace = workspace.data();
      for (int index = 0; index < P::group_at(G).operands; ++index)
        a.operand[index] = operands[next++];
      on_host::run_bodies(kernels{}, a);
    };
    (launch(std::integral_constant<int, constant::value.groups[K]>{}), ...);
  }(std::make_integer_sequence<int, chain.count>{});

  using pp::cuda::thread_order;
  for (thread_order const order :
       {thread_order::ascending, thread_order::descending, thread_order::interleaved}) {
    memory<typename P::element> found;
    prepare(found);
    CHECK_FALSE(found.equals(expected, dropped));
    std::size_t n = 0;
    for (int i = chain.first; i < chain.first + chain.count; ++i)
      for (int index = 0; index < list.shape(i).operands; ++index, ++n)
        for (pp::detail::operand const& x : dropped)
          if (list.operand_of(i, index) == x) operands[n] = nullptr;
    on_host::buffer<unsigned char> workspace(std::size_t(mlp::workspace_bytes) + 1);
    shared.workspace = workspace.data();
    std::fill(losses.data(), losses.data() + losses.size(), -1.0);
    shared.loss = losses.data();
    typename mlp::arguments const a = mlp::pack(shared, operands.data());
    [&]<class... Body>(pp::cuda::kernel_list<Body...>) {
      (pp::cuda::run_on_host<Body>(a, order), ...);
    }(mlp::kernels());
    CHECK(found.equals(expected, dropped));
    CHECK(std::memcmp(losses.data(), expected_losses.data(), losses.size() * sizeof(double)) == 0);
  }
}

/// Forward's chain Index stores what only backward reads in training, and not in evaluation.
template <class P, class Programs, int Index>
void stores_for_training() {
  using pp::detail::program;
  constexpr pp::detail::launch_chain chain = Programs::template chains<program::forward>[Index];
  constexpr pp::detail::unplaced_program list = Programs::template unplaced<program::forward>;
  using constant = kernel_constant<Programs, program::forward, Index>;
  using mlp = pp::cuda::lowered_chain<P, constant>;
  std::vector<pp::detail::operand> operands, hidden;
  for (int i = chain.first; i < chain.first + chain.count; ++i)
    for (int index = 0; index < list.shape(i).operands; ++index) {
      pp::detail::operand const x = list.operand_of(i, index);
      operands.push_back(x);
      if (pp::cuda::narrow_chain_rule{}.is_optional(list.shape(i), index) &&
          Programs::template resolve<program::forward>(x).where == pp::detail::region::record)
        hidden.push_back(x);
    }
  REQUIRE(int(hidden.size()) >= chain.count - 1);
  auto const state = std::make_unique<pp::cuda::run_state>();
  pp::cuda::arguments shared;
  shared.run = state.get();
  auto const filled = [&] {
    memory<typename P::element> m;
    for (int i = chain.first; i < chain.first + chain.count; ++i)
      for (int index = 0; index < list.shape(i).operands; ++index)
        m.has(list.operand_of(i, index), bytes_of_operand<P>(list.shape(i), index));
    m.fill();
    return m;
  };
  for (bool const training : {true, false}) {
    auto const before = filled();
    auto after = filled();
    std::vector<void*> places;
    for (pp::detail::operand const& x : operands) places.push_back(after.find(x));
    shared.training = training;
    auto const a = mlp::pack(shared, places.data());
    [&]<class... Body>(pp::cuda::kernel_list<Body...>) {
      (pp::cuda::run_on_host<Body>(a), ...);
    }(mlp::kernels());
    for (pp::detail::operand const& x : hidden) CHECK(after.equals(before, x) == !training);
    CHECK_FALSE(after.equals(before, hidden));  // the last layer's result
  }
}

/// All chains of a program, of which there are `Count`.
template <class P, class Programs, pp::detail::program Which, int Count>
void are_their_launches(bool accumulate = false) {
  STATIC_REQUIRE(Programs::template chains<Which>.count == Count);
  [&]<int... Is>(std::integer_sequence<int, Is...>) {
    (is_its_launches<P, Programs, Which, Is>(accumulate), ...);
  }(std::make_integer_sequence<int, Count>{});
}

}  // namespace narrow
