// SPDX-License-Identifier: BSL-1.0
#include "train_with.hpp"

network cifar_network() { return network_of<ResidualNet<3, 10>>(true); }
