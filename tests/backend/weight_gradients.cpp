// SPDX-License-Identifier: BSL-1.0
//
// The kernel of a weight's gradient where its left factor is copied to panels: right, inside its
// workspace, and with the same bits for any number of parts.
#include <cmath>
#include <vector>

#include "backend/lone_kernel.hpp"
#include "catch.hpp"
#include "laws/worse.hpp"

using namespace pp;

namespace {

using host::extent;

template <int Inner, int Width>
struct Net : Model<Input<Inner>, Linear<Width>, MSE> {};

template <int Inner, int Width, int Samples>
void check() {
  using compiled = lone::compiled<Net<Inner, Width>, MicroBatchSize<Samples>>;
  lone::kernel<compiled, op_kind::matmul_weight_gradient> kernel;
  exact<float> const x(Samples * Inner, 1), dy(Samples * Width, 2);
  kernel.in(0) = x.data(), kernel.in(1) = dy.data();
  on_every_isa([&](auto isa) {
    std::vector<float> whole;
    exact<float> bias(Width);
    for (int parts : {1, 2, 3})
      for (bool accumulates : {false, true}) {
        CAPTURE(isa.name, parts, accumulates);
        exact<float> dw(Inner * Width);
        for (extent i = 0; i < Inner * Width; ++i) dw[i] = accumulates ? 3 : 7;
        kernel.out(0) = dw.data();
        kernel.with.operand[kernel.g.prologue[0].store] = bias.data();
        kernel.with.accumulate = accumulates, kernel.with.parts = parts;
        for (kernel.with.part = 0; kernel.with.part < parts; ++kernel.with.part) kernel.run(isa);
        if (parts == 1 && !accumulates) {
          double error = 0;
          for (extent i = 0; i < Inner; ++i)
            for (extent j = 0; j < Width; ++j) {
              double sum = 0;
              for (extent r = 0; r < Samples; ++r)
                sum += double(x[r * Inner + i]) * double(dy[r * Width + j]);
              error = laws::worse(error, std::fabs(double(dw[i * Width + j]) - sum));
            }
          CHECK(error < 3e-5);
          whole.assign(dw.items.get(), dw.items.get() + dw.count);
        }
        bool same = true;
        for (extent i = 0; i < Inner * Width; ++i)
          same = same && dw[i] == whole[std::size_t(i)] + (accumulates ? 3 : 0);
        CHECK(same);
      }
  });
}

}  // namespace

TEST_CASE("a weight's gradient has the same bits for all parts, with panels of its left factor") {
  check<70, 200, 40>();
  check<301, 131, 150>();
  check<24, 1024, 48>();
  // Of two panels, with a left factor that is copied for one part, and read in place for several.
  check<330, 49, 800>();
}

TEST_CASE("a weight's gradient of few columns has the same bits for all parts") {
  check<64, 1, 64>();
  check<301, 1, 150>();
  check<70, 3, 40>();
  check<5, 2, 7>();
  check<130, 8, 33>();
  check<20, 7, 1>();
}
