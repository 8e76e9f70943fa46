// SPDX-License-Identifier: BSL-1.0
#include "train_with.hpp"

network mnist_network() { return network_of<ResidualNet<1, 10>>(false); }
