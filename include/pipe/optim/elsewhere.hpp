// SPDX-License-Identifier: BSL-1.0
//
// Optimizers of other libraries that this one does not have; the diagnostic names a replacement.
#pragma once

#include <pipe/nn/elsewhere.hpp>

namespace pp {

struct Adam;
struct RMSprop : no_such<Adam> {};
struct Adagrad : no_such<Adam> {};
struct Adamax : no_such<Adam> {};

}  // namespace pp
