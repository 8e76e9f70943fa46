// SPDX-License-Identifier: BSL-1.0
//
// The names of milesial's Pytorch-UNet, unet_carvana of PyTorch's hub.
#pragma once

#include <string>

#include <pipe/weights/name_map.hpp>

namespace models::hub {

/// From the names of a BatchNormUNet of ../unet.hpp to those of a UNet without `bilinear`.
template <class UNet>
pp::name_map milesial_unet() {
  constexpr int depth = UNet::depth;
  std::string const last = std::to_string(2 * depth + 1) + ".";
  pp::name_map names{{"0.0.", "inc.double_conv."}, {last, "outc.conv."}};
  for (int i = 1; i <= depth; ++i) {
    std::string const level = std::to_string(i), up = std::to_string(depth + i) + ".";
    names.push_back(
        {level + (i < depth ? ".0." : "."), "down" + level + ".maxpool_conv.1.double_conv."});
    names.push_back({up + "0.", "up" + level + ".up."});
    names.push_back({up + "4.", "up" + level + ".conv.double_conv."});
  }
  return names;
}

}  // namespace models::hub
