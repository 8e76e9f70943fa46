// SPDX-License-Identifier: BSL-1.0
//
// The names of torchvision's residual networks: resnet18 to resnet152, wide_resnet and resnext.
#pragma once

#include <string>

#include <pipe/weights/name_map.hpp>

namespace models::hub {

/// From the names of a ResNet of ../resnet.hpp to torchvision's.
template <class ResNet>
pp::name_map torchvision_resnet() {
  pp::name_map names{{"stem.0.0.", "conv1."}, {"stem.0.1.", "bn1."}};
  for (int l = 1; l <= 4; ++l)
    for (int b = 0; b < ResNet::blocks[l - 1]; ++b) {
      std::string const layer = "layer" + std::to_string(l) + ".";
      std::string const there = layer + std::to_string(b) + ".";
      std::string const here = layer + (b == 0 ? "0" : "1." + std::to_string(b - 1)) + ".0.";
      for (int c = 1; c <= ResNet::convolutions; ++c) {
        std::string const unit = here + "0." + std::to_string(2 * (c - 1)) + ".";
        names.push_back({unit + "0.", there + "conv" + std::to_string(c) + "."});
        names.push_back({unit + "1.", there + "bn" + std::to_string(c) + "."});
      }
      bool const is_projected = b == 0 && (l > 1 || ResNet::convolutions == 3);
      if (is_projected) names.push_back({here + "1.", there + "downsample."});
    }
  return names;
}

}  // namespace models::hub
