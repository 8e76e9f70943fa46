// SPDX-License-Identifier: BSL-1.0
//
// Models for transports.
#pragma once

#include <pipe/pipe.hpp>

namespace test_transports {

template <class M, class... More>
using Small = pp::Pipeline<M, pp::PortableHost, pp::AdamW, pp::MicroBatches<4>,
                           pp::MicroBatchSize<2>, More...>;

/// Skips over any number of stages, one within the other; a table in three places, which on two
/// ranks and on four are on different ones, owned by a rank that also has a later place.
struct Shared
    : pp::Model<pp::Tokens<11, 4>, pp::Named<"table", pp::Embedding<6>>, pp::Stash<"outer">,
                pp::Linear<6>, pp::Tanh, pp::Stash<"inner">, pp::Named<"right", pp::Tokens<11, 4>>,
                pp::Tied<"table">, pp::Pop<"inner">, pp::Linear<6>, pp::Pop<"outer">,
                pp::Tied<"table">, pp::CrossEntropy> {};

}  // namespace test_transports
