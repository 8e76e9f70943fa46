// SPDX-License-Identifier: BSL-1.0
//
// Optimizers of whole tensors stay inside the memory that they say they need, on every instruction
// set and for every shape, and rely on nothing that was in their workspace.
#include "catch.hpp"

#include <cmath>
#include <string>

#include "backend/host_kernels.hpp"
#include <pipe/pipe.hpp>

using namespace pp;

namespace {

/// `count` numbers between two cache lines of a mark that must stay.
template <class T>
struct fenced {
  static constexpr long fence = 64 / long(sizeof(T));
  exact<T> items;
  long count;
  fenced(long n, unsigned seed) : items(n + 2 * fence, seed), count(n) {
    for (long i = 0; i < fence; ++i) items[i] = items[fence + n + i] = T(12345);
  }
  T* data() const { return items.data() + fence; }
  bool holds() const {
    for (long i = 0; i < fence; ++i)
      if (items[i] != T(12345) || items[fence + count + i] != T(12345)) return false;
    return true;
  }
  bool is_finite() const {
    for (long i = 0; i < count; ++i)
      if (!std::isfinite(data()[i])) return false;
    return true;
  }
};

template <class Optimizer, class T>
void stays_inside(custom::tensor_shape const& shape) {
  if (!Optimizer::takes(shape.kind)) return;
  on_every_isa([&](auto kernels) {
    INFO(Optimizer::name << " on " << kernels.name << ", " << shape.rows << " x " << shape.columns);
    fenced<T> const w(shape.elements(), 1), g(shape.elements(), 2),
        state(Optimizer::state_elements(shape), 3),
        room(Optimizer::template workspace_elements<Host, T>(shape), 4);
    for (long i = 0; i < state.count; ++i) state.data()[i] = 0;
    for (long i = 0; i < room.count; ++i) room.data()[i] = std::numeric_limits<T>::quiet_NaN();
    fenced<T> const before(shape.elements(), 1);
    Optimizer const o{};
    for (long step = 1; step <= 3; ++step)
      kernels.update(o, custom::update_context{step, 0.1, 0.5, 1},
                     custom::tensor_update<T>{shape, w.data(), g.data(), state.data(), room.data()},
                     true, host::everything);
    CHECK((w.holds() && g.holds() && state.holds() && room.holds()));
    CHECK((w.is_finite() && state.is_finite()));
    bool moved = false;
    for (long i = 0; i < shape.elements(); ++i) moved = moved || w.data()[i] != before.data()[i];
    CHECK(moved);
  });
}

template <class Optimizer>
void stays_inside() {
  constexpr long sizes[][2] = {{17, 5},  {5, 17},   {1, 7},    {7, 1},   {1, 1},
                               {64, 64}, {100, 33}, {33, 100}, {70, 260}};
  for (auto const& [rows, columns] : sizes) {
    stays_inside<Optimizer, float>({custom::tensor_kind::matrix, rows, columns});
    stays_inside<Optimizer, double>({custom::tensor_kind::matrix, rows, columns});
    stays_inside<Optimizer, float>({custom::tensor_kind::table, rows, columns});
    stays_inside<Optimizer, float>({custom::tensor_kind::vector, 1, columns});
  }
}

}  // namespace

TEST_CASE("LAMB stays inside its memory", "[optim]") { stays_inside<LAMB>(); }
TEST_CASE("Adafactor stays inside its memory", "[optim]") { stays_inside<Adafactor>(); }
TEST_CASE("Muon stays inside its memory", "[optim]") { stays_inside<Muon>(); }
