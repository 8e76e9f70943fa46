// SPDX-License-Identifier: BSL-1.0
//
// The kernel of a product of few columns, whose transpose is computed: right, inside its workspace,
// through its epilogue, and with the same bits for any number of parts and on all instruction sets
// that fuse, of which some compute the transpose and some do not.
#include <cmath>
#include <string_view>
#include <vector>

#include "backend/lone_kernel.hpp"
#include "catch.hpp"
#include "laws/worse.hpp"

using namespace pp;

namespace {

using host::extent;

template <int Inner, int Width>
struct Net : Model<Input<Inner>, Linear<Width>, Tanh, MSE> {};

template <int Inner, int Width, int Samples>
void check() {
  using compiled = lone::compiled<Net<Inner, Width>, MicroBatchSize<Samples>>;
  lone::kernel<compiled, op_kind::matmul> kernel;
  auto const& bias_then_tanh = kernel.g.epilogue;
  REQUIRE(bias_then_tanh.size() == 2);
  exact<float> const x(Samples * Inner, 1), w(Inner * Width, 2), bias(Width, 3);
  kernel.in(0) = x.data(), kernel.in(1) = w.data();
  kernel.with.operand[bias_then_tanh[0].operand] = const_cast<float*>(bias.data());
  std::vector<float> fused;
  on_every_isa([&](auto isa) {
    bool const fuses = std::string_view(isa.name) != "portable";
    std::vector<float> whole;
    for (int parts : {1, 2, 3}) {
      CAPTURE(isa.name, parts);
      exact<float> y(Samples * Width), before(Samples * Width);
      if (kernel.g.out[0] >= 0) kernel.out(0) = before.data();
      if (bias_then_tanh[0].store >= 0)
        kernel.with.operand[bias_then_tanh[0].store] = before.data();
      kernel.with.operand[bias_then_tanh[1].store] = y.data();
      kernel.with.parts = parts;
      for (kernel.with.part = 0; kernel.with.part < parts; ++kernel.with.part) kernel.run(isa);
      std::vector<float> const result(y.items.get(), y.items.get() + y.count);
      if (parts == 1) {
        double error = 0;
        for (extent r = 0; r < Samples; ++r)
          for (extent j = 0; j < Width; ++j) {
            double sum = bias[j];
            for (extent i = 0; i < Inner; ++i)
              sum += double(x[r * Inner + i]) * double(w[i * Width + j]);
            error = laws::worse(error, std::fabs(double(y[r * Width + j]) - std::tanh(sum)));
          }
        CHECK(error < 1e-5);
        whole = result;
        if (fuses && fused.empty()) fused = whole;
        if (fuses) CHECK(whole == fused);
      }
      CHECK(result == whole);
    }
  });
}

}  // namespace

TEST_CASE("a product of few columns has the same bits for all parts and sets that fuse") {
  check<64, 1, 64>();
  check<300, 1, 50>();
  check<17, 3, 100>();
  check<140, 4, 37>();
  check<5, 2, 16>();
  check<33, 1, 3>();
}
