// SPDX-License-Identifier: BSL-1.0
//
// Optimizers of two passes over the engine for a GPU.
#include "device/optimizer_laws.hpp"
#include "laws/own_optimizer.hpp"

using namespace pp;

TEST_CASE("LAMB over the engine for a GPU", "[cuda]") {
  laws::holds_in_fp32<LAMB>(2e-5);
  laws::holds_in_bf16<LAMB>();
}
TEST_CASE("a step of whole tensors that is rejected changes nothing", "[cuda]") {
  laws::a_rejected_step_changes_nothing<LAMB>();
}
TEST_CASE("a user's optimizer of two passes over the engine for a GPU", "[cuda]") {
  laws::holds_in_fp32<laws::Normed>(2e-5);
}
