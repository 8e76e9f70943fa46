// SPDX-License-Identifier: BSL-1.0
//
// Drawn weights of a model, for decoders.
#pragma once

#include <cstddef>
#include <cstdint>

#include <pipe/infer/model_weights.hpp>
#include <pipe/pipe.hpp>

#include "laws/data.hpp"

template <class M, class Backend = pp::PortableHost>
struct disturbed_weights : pp::model_weights<M, float, Backend> {
  disturbed_weights() {
    for (auto const& p : this->parameters())
      for (std::size_t i = 0; i < p.values.size(); ++i)
        p.values[i] =
            (p.rows == 1 ? 1.0f : 0.3f) * float(laws::uniform(7, std::uint64_t(p.index), i));
  }
};
