// SPDX-License-Identifier: BSL-1.0
//
// Runs the launches of a compiled pipeline on paper. Memory holds names of values instead of
// numbers, in pieces of one cache line: a launch must find under every address it reads the value
// that it was meant to read, whole, and a region ends where the plan says. So two values alive at
// the same time can share no byte.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <utility>

#include <pipe/pipe.hpp>

namespace paper {

using namespace pp;
using namespace pp::detail;

/// Which of a group's operands a launch writes.
inline bool writes(detail::group const& g, int index) {
  for (signed char const out : g.out)
    if (out == index) return true;
  for (auto const* chain : {&g.prologue, &g.epilogue})
    for (detail::pointwise_op const& s : *chain)
      if (s.store == index) return true;
  return false;
}

/// What went wrong first, if anything did.
struct findings {
  std::string problem;
  void must(bool fine, char const* what, int stage, detail::operand x, detail::address a) {
    if (fine || !problem.empty()) return;
    problem = std::string(what) + ": stage " + std::to_string(stage) + ", operand " +
              std::to_string(x.index) + " of space " + std::to_string(int(x.where)) + ", region " +
              std::to_string(int(a.where)) + " at " + std::to_string(a.offset);
  }
};

/// Memory by stage, region and cache line.
using piece = std::tuple<int, detail::region, long>;
using contents = std::map<piece, detail::operand>;

/// Readers of a boundary look into the maker's slot.
inline piece at(int stage, detail::address a, long line) {
  if (a.where == detail::region::boundary_in)
    return {stage - 1, detail::region::boundary_out, a.offset / detail::alignment + line};
  if (a.where == detail::region::gradient_in)
    return {stage + 1, detail::region::gradient_out, a.offset / detail::alignment + line};
  return {stage, a.where, a.offset / detail::alignment + line};
}
inline void read(findings& f, contents const& memory, int stage, detail::operand x,
                 detail::address a, long bytes) {
  f.must(a.where != detail::region::none, "has no address", stage, x, a);
  for (long line = 0; line < bytes / detail::alignment; ++line) {
    auto const found = memory.find(at(stage, a, line));
    f.must(found != memory.end() && found->second == x, "is not there when it is read", stage, x,
           a);
  }
}
inline void write(findings& f, contents& memory, int stage, detail::operand x, detail::address a,
                  long bytes, long room) {
  f.must(a.offset % detail::alignment == 0, "is not aligned", stage, x, a);
  f.must(a.offset >= 0 && a.offset + bytes <= room, "is not inside its region", stage, x, a);
  for (long line = 0; line < bytes / detail::alignment; ++line) memory[at(stage, a, line)] = x;
}
inline bool overlap(int stage, detail::address a, long bytes_a, detail::address b, long bytes_b) {
  for (long i = 0; i < bytes_a / detail::alignment; ++i)
    for (long k = 0; k < bytes_b / detail::alignment; ++k)
      if (at(stage, a, i) == at(stage, b, k)) return true;
  return false;
}

/// The operands of one launch, with their sizes and the rooms of their regions.
struct call {
  detail::group g;
  detail::launch_operands with;
  detail::placed_operand const* resolved;
  long bytes[detail::group::max_operands], room[detail::group::max_operands];
  detail::address at(int k) const { return resolved[k].at; }
};

/// Each datum has one writer: what other programs or stages read of a stage is written by one
/// program alone, once in a micro-batch.
inline bool may_write(detail::program p, detail::region to) {
  switch (to) {
    case detail::region::scratch: return true;
    case detail::region::record:
    case detail::region::boundary_out: return p == detail::program::forward;
    case detail::region::gradient_out:
      return p == detail::program::backward_input || p == detail::program::backward;
    case detail::region::pending:
      return p == detail::program::backward_input || p == detail::program::backward ||
             p == detail::program::recompute;
    case detail::region::parameter_gradients:
    case detail::region::buffer_sums:
      return p == detail::program::backward_weight || p == detail::program::backward;
    case detail::region::none:
    case detail::region::parameters:
    case detail::region::copies:
    case detail::region::transposed:
    case detail::region::buffers:
    case detail::region::boundary_in:
    case detail::region::gradient_in:
    case detail::region::random:
    case detail::region::label:
    case detail::region::input: break;
  }
  return false;
}

/// Reads first, then writes. A kernel writes rows while it still reads others: no operand may lie
/// where a result goes. (A loss
/// may: it reads a row before it writes it.)
inline void execute(findings& f, contents& memory, int stage, call const& c) {
  auto const region_outside = [](detail::operand x) {
    return x.where == detail::space::input    ? detail::input_region(x.index)
           : x.where == detail::space::label  ? detail::region::label
           : x.where == detail::space::random ? detail::region::random
                                              : detail::region::none;
  };
  auto const outside = [&](int k) {
    return region_outside(c.with[std::size_t(k)]) != detail::region::none;
  };
  int const count = int(c.with.size());
  f.must(count == c.g.operands, "operands do not fit the group", stage, detail::operand{},
         detail::address{});
  for (int k = 0; k < count; ++k) {
    detail::operand const x = c.with[std::size_t(k)];
    f.must((c.resolved[k].elements > 0) == writes(c.g, k),
           "is written, or only read, and its launch says otherwise", stage, x, c.at(k));
    if (outside(k))
      f.must(c.at(k).where == region_outside(x), "is elsewhere", stage, x, c.at(k));
    else if (!writes(c.g, k))
      read(f, memory, stage, x, c.at(k), c.bytes[k]);
  }
  for (int k = 0; k < count; ++k) {
    if (!writes(c.g, k)) continue;
    for (int other = 0; other < count; ++other)
      if (!writes(c.g, other) && !outside(other) && !detail::is_loss(c.g.anchor))
        f.must(!overlap(stage, c.at(k), c.bytes[k], c.at(other), c.bytes[other]),
               "lies on what the same launch reads", stage, c.with[std::size_t(k)], c.at(k));
    write(f, memory, stage, c.with[std::size_t(k)], c.at(k), c.bytes[k], c.room[k]);
  }
}

/// Micro-batch 0 through all stages of compilation C, forward and back. Drops: by the programs that
/// make values again.
template <class C, bool Drops = false>
class run : public findings {
  template <int S>
  using programs = typename C::template programs<S, Drops>;

 public:
  run() {
    stages([&]<int S>() { set_up<S>(); });
    stages([&]<int S>() {
      launch_all<S, detail::program::forward>();
      relay<S>(C::boundaries[S + 1].forward, programs<S>::passed_values);
    });
    if constexpr (C::whole.recomputes_ahead)
      stages([&]<int S>() { launch_all<S, detail::program::recompute>(); });  // as early as can be
    stages([&]<int Reversed>() {
      constexpr int S = C::stages - 1 - Reversed;
      launch_all<S, C::whole.splits_backward ? detail::program::backward_input
                                             : detail::program::backward>();
      relay<S>(C::boundaries[S].gradient, programs<S>::passed_gradients);
    });
    if constexpr (C::whole.splits_backward)
      stages([&]<int S>() {
        launch_all<S, detail::program::backward_weight>();
      });  // as late as can be
    stages([&]<int S>() {
      for (int i = C::ranges[S].parameters.begin; i < C::ranges[S].parameters.end; ++i) {
        detail::parameter const& p = C::forward.parameters[i];
        detail::operand const x{
            p.is_buffer ? detail::space::buffer_sum : detail::space::parameter_gradient, i};
        if (!p.trained && !p.is_committed()) continue;
        read(*this, memory_, S, x, programs<S>::template resolve<detail::program::forward>(x),
             bytes_of(x));
      }
    });
  }
  int launches = 0;

 private:
  template <class Use>
  static void stages(Use use) {
    [&]<int... S>(std::integer_sequence<int, S...>) {
      (use.template operator()<S>(), ...);
    }(std::make_integer_sequence<int, C::stages>{});
  }

  /// What leaves stage S without being made there.
  template <int S, class Leaves, class Passed>
  void relay(Leaves const& leaves, Passed const& passed) {
    for (detail::copied const& p : passed)
      for (detail::handed_on const& x : leaves)
        if (x.offset == p.to.offset) {
          read(*this, memory_, S, x.what, p.from, p.bytes);
          write(*this, memory_, S, x.what, p.to, p.bytes, room<S>(p.to.where));
        }
  }

  template <int S>
  void set_up() {
    for (int i = C::ranges[S].parameters.begin; i < C::ranges[S].parameters.end; ++i)
      for (detail::space const where :
           {detail::space::parameter, detail::space::parameter_transposed, detail::space::buffer}) {
        detail::operand const x{where, i};
        if (C::forward.parameters[i].is_buffer != (where == detail::space::buffer)) continue;
        if (where == detail::space::parameter_transposed && !C::backward.transposed[i]) continue;
        detail::address const a = programs<S>::template resolve<detail::program::forward>(x);
        write(*this, memory_, S, x, a, bytes_of(x), room<S>(a.where));
      }
  }

  static long bytes_of(detail::operand x) {
    if (x.where == detail::space::value) return C::values.bytes(x.index);
    if (x.where == detail::space::input || x.where == detail::space::label ||
        x.where == detail::space::random)
      return 0;
    return detail::align_up(C::forward.parameters[x.index].elements() * C::widths.element);
  }
  /// The size of a region of stage S, one record of it.
  template <int S>
  static long room(detail::region where) {
    detail::stage_bytes const& b = programs<S>::layout.bytes;
    switch (where) {
      case detail::region::parameters: return b.parameters;
      case detail::region::parameter_gradients: return b.trained;
      case detail::region::buffers: return b.buffers;
      case detail::region::buffer_sums: return b.sums;
      case detail::region::transposed: return b.transposed;
      case detail::region::record: return b.record;
      case detail::region::pending: return b.pending;
      case detail::region::scratch: return b.scratch;
      case detail::region::boundary_out: return b.boundary;
      case detail::region::gradient_out: return b.gradient;
      case detail::region::none:
      case detail::region::copies:
      case detail::region::boundary_in:
      case detail::region::gradient_in:
      case detail::region::random:
      case detail::region::label:
      case detail::region::input: break;
    }
    return 0;
  }

  template <int S, detail::program P>
  void launch_all() {
    std::erase_if(memory_, [](auto const& m) {
      return std::get<0>(m.first) == S && std::get<1>(m.first) == detail::region::scratch;
    });
    auto const& resolved = programs<S>::template launches<P>();
    auto const& order = programs<S>::template order<P>;
    for (int i = 0; i < order.size(); ++i, ++launches) {
      auto const [g, with] = C::kernels.describe(order[i].list, order[i].index);
      launch const& l = resolved.items[i];
      call c{g, with, resolved.operands.items + l.first, {}, {}};
      must(C::group_at(l.group) == g && l.count == g.operands, "is launched as another group", S,
           detail::operand{}, detail::address{});
      for (int k = 0; k < l.count; ++k) {
        c.bytes[k] = bytes_of(with[std::size_t(k)]);
        c.room[k] = room<S>(c.at(k).where);
        must(!writes(g, k) || may_write(P, c.at(k).where), "is written by another program", S,
             with[std::size_t(k)], c.at(k));
      }
      execute(*this, memory_, S, c);
    }
  }

  contents memory_;
};

}  // namespace paper
