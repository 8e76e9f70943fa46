// SPDX-License-Identifier: BSL-1.0
//
// Optimizers with rules of their own for matrices over the engine for a GPU.
#include "device/optimizer_laws.hpp"

using namespace pp;

namespace {

/// Every matrix in a batch of its own.
struct MuonOneByOne : Muon {
  static constexpr char const* name = "Muon, one matrix at a time";
  static constexpr long most_workspace = 1;
};

}  // namespace

TEST_CASE("Adafactor over the engine for a GPU", "[cuda]") {
  laws::holds_in_fp32<Adafactor>(2e-5);
  laws::holds_in_bf16<Adafactor>();
}
TEST_CASE("Muon over the engine for a GPU", "[cuda]") { laws::holds_in_fp32<Muon>(5e-5); }
TEST_CASE("Muon over the engine for a GPU in 16 bits", "[cuda]") { laws::holds_in_bf16<Muon>(); }
TEST_CASE("batches of matrices change no bit", "[cuda]") {
  using together = laws::trained<Muon, FP32>;
  using apart = laws::trained<MuonOneByOne, FP32>;
  laws::train_alike_from_the_start<together, apart>(7, 2);
  laws::asks_for_what_is_planned<apart>();
  CHECK(apart::plan.rank_bytes[0] < together::plan.rank_bytes[0]);
}
