// SPDX-License-Identifier: BSL-1.0
//
// Networks of every layer have the bits of a trainer's forward.
#include "catch.hpp"

#include "infer/network_law.hpp"
#include "laws/every_layer.hpp"
#include "laws/everything.hpp"
#include "laws/images.hpp"

using namespace pp;
using networks::has_the_bits_of_forward;

TEST_CASE("a network of every layer has the bits of a trainer's forward", "[infer]") {
  has_the_bits_of_forward<laws::EveryLayer>();
  has_the_bits_of_forward<laws::Everything>();
}
TEST_CASE("a network of pictures has the bits of a trainer's forward", "[infer]") {
  has_the_bits_of_forward<laws::Images>();
  has_the_bits_of_forward<laws::Vision>();
  has_the_bits_of_forward<laws::EveryResampling>();
}
