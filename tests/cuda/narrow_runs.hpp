// SPDX-License-Identifier: BSL-1.0
//
// Runs of narrow layers as one kernel against the kernels of their launches: the same memory, full
// of numbers, before; the same bits after.
#pragma once

#include <catch2/catch.hpp>

#include <cstring>
#include <map>
#include <vector>

#include "cuda/one_group.hpp"

#include <pipe/backend/cuda/narrow_mlp/narrow_mlp.hpp>

namespace narrow {

/// The numbers of a pipeline's kernels, whatever its own are; Format: what products are computed
/// in.
template <class Trainer, class T, pp::cuda::product_format Format>
struct source
    : pp::cuda::kernel_source<typename Trainer::compiled::passes, T,
                              Format == pp::cuda::product_format::tf32 ? pp::dtype::tf32
                                                                       : pp::dtype_of<T>::value> {};

/// The programs of stage S as the last micro-batch runs them, or the first, which may recompute.
template <class Trainer, int S>
using programs_of =
    typename Trainer::compiled::passes::template programs<S, Trainer::compiled::some_drop>;

/// Memory of a stage by region, as large as what its kernels may touch of it.
template <class T>
class memory {
 public:
  /// An operand of so many bytes.
  void has(pp::address const& a, std::size_t bytes) {
    std::size_t& most = bytes_[a.where];
    most = std::max(most, std::size_t(a.offset) + bytes);
  }
  void fill() {
    int stream = 0;
    for (auto const& [where, size] : bytes_) {
      std::size_t const bytes = size;  // clang++ before 16 captures no structured binding
      auto& b = at_.emplace(where, on_host::buffer<unsigned char>(bytes)).first->second;
      auto const numbers = [&]<class Number>(Number const*, auto make) {
        for (std::size_t i = 0; i + sizeof(Number) <= bytes; i += sizeof(Number)) {
          Number const x = make(i);
          std::memcpy(b.data() + i, &x, sizeof x);
        }
      };
      auto const random = [&](std::size_t i) {
        return float(0.5 * laws::uniform(9, std::uint64_t(stream), i));
      };
      if (where == pp::region::random)
        numbers(static_cast<int const*>(nullptr),
                [](std::size_t i) { return int(i / sizeof(int)); });
      else if (where == pp::region::parameter_gradients)
        numbers(static_cast<float const*>(nullptr), random);
      else
        numbers(static_cast<T const*>(nullptr), [&](std::size_t i) { return T(random(i)); });
      ++stream;
    }
  }
  void* find(pp::address const& a) {
    return a.where == pp::region::none ? nullptr : at_.at(a.where).data() + a.offset;
  }
  friend bool operator==(memory const& a, memory const& b) {
    for (auto const& [where, bytes] : a.bytes_)
      if (std::memcmp(&a.at_.at(where)[0], &b.at_.at(where)[0], bytes) != 0) return false;
    return true;
  }

 private:
  std::map<pp::region, std::size_t> bytes_;
  std::map<pp::region, on_host::buffer<unsigned char>> at_;
};

/// Bytes of slot `slot` of a launch of group g.
template <class P>
std::size_t bytes_of_slot(pp::group const& g, int slot) {
  using pp::op_kind;
  std::size_t const T = sizeof(typename P::element), rows = std::size_t(g.rows) * P::samples,
                    inner = std::size_t(g.attributes.contraction().inner),
                    columns = std::size_t(g.columns);
  bool const weight = g.anchor == op_kind::matmul_weight_gradient;
  if (slot == g.in[0]) return rows * inner * T;
  if (slot == g.in[1]) return (weight ? rows : inner) * columns * T;
  if (slot == g.out[0]) return weight ? inner * columns * sizeof(float) : rows * columns * T;
  if (weight) return columns * sizeof(float);  // of the bias
  for (pp::step const& s : g.epilogue)
    if (slot == s.slot)
      return s.kind == op_kind::dropout    ? sizeof(int)
             : s.kind == op_kind::bias     ? columns * T
             : s.kind == op_kind::row_bias ? std::size_t(g.rows) * columns * T
                                           : rows * columns * T;
  return rows * columns * T;
}

/// Run I of a program as one kernel changes memory as its launches do, in every order of the
/// threads.
template <class P, class Programs, pp::program Which, int I>
void is_its_launches(bool accumulate) {
  using runs = pp::cuda::narrow_runs_of<P, Programs, Which>;
  constexpr pp::cuda::narrow_run run = runs::runs.items[I];
  using mlp = typename runs::template kernels<I>;
  auto const& program = Programs::template launches<Which>;

  memory<typename P::element> before;
  std::vector<pp::cuda::arguments> each(std::size_t(run.count));
  auto const prepare = [&](memory<typename P::element>& m) {
    for (bool const places : {false, true}) {
      for (int k = 0; k < run.count; ++k) {
        pp::launch const& l = program.items[run.first + k];
        pp::group const g = P::group_at(l.group);
        for (int slot = 0; slot < l.count; ++slot) {
          pp::address const at = program.operands[l.first + slot].at;
          if (places)
            each[std::size_t(k)].slot[slot] = m.find(at);
          else
            m.has(at, bytes_of_slot<P>(g, slot));
        }
        each[std::size_t(k)].accumulate = accumulate;
        each[std::size_t(k)].training = true;
        each[std::size_t(k)].seed = 7, each[std::size_t(k)].step = 3;
      }
      if (!places) m.fill();
    }
  };
  memory<typename P::element> expected;
  prepare(expected);
  [&]<int... K>(std::integer_sequence<int, K...>) {
    auto const launch = [&]<int G>(std::integral_constant<int, G>, int k) {
      using kernels = pp::cuda::lowered<P, G>;
      on_host::buffer<unsigned char> workspace(std::size_t(pp::cuda::workspace_of(kernels{})) + 1);
      each[std::size_t(k)].workspace = workspace.data();
      on_host::run_bodies(kernels{}, each[std::size_t(k)]);
    };
    (launch(std::integral_constant<int,
                                   Programs::template launches<Which>.items[run.first + K].group>{},
            K),
     ...);
  }(std::make_integer_sequence<int, run.count>{});

  using pp::cuda::thread_order;
  for (thread_order const order :
       {thread_order::ascending, thread_order::descending, thread_order::interleaved}) {
    memory<typename P::element> found;
    prepare(found);
    CHECK_FALSE(found == expected);
    on_host::buffer<unsigned char> workspace(std::size_t(mlp::workspace_bytes) + 1);
    typename mlp::arguments const a = mlp::pack(each.data(), workspace.data());
    [&]<class... Body>(pp::cuda::bodies<Body...>) {
      (pp::cuda::run_on_host<Body>(a, order), ...);
    }(mlp::kernels());
    CHECK(found == expected);
  }
}

/// All runs of a program, of which there are `Count`.
template <class P, class Programs, pp::program Which, int Count>
void are_their_launches(bool accumulate = false) {
  STATIC_REQUIRE(pp::cuda::narrow_runs_of<P, Programs, Which>::count == Count);
  [&]<int... I>(std::integer_sequence<int, I...>) {
    (is_its_launches<P, Programs, Which, I>(accumulate), ...);
  }(std::make_integer_sequence<int, Count>{});
}

}  // namespace narrow
