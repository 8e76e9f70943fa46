// SPDX-License-Identifier: BSL-1.0
//
// The memory that a model's parameters, gradients and optimizer take in each replica, by formula:
// what one asks before there is a model. The plan of a pipeline has the bytes themselves.
#pragma once

namespace pp {

/// Bytes for each parameter.
struct state_widths {
  double parameter = 4, gradient = 4, optimizer = 8;
};
/// AdamW in 32 bits, as on the host; and as published, with parameters and gradients in 16 bits and
/// a copy of the parameters in 32 beside the two moments.
inline constexpr state_widths adam_fp32{}, adam_mixed{2, 2, 12};

/// Bytes of a replica's model states at a level of ZeRO. Source: Rajbhandari et al., 2020,
/// figure 1.
///
/// law: model_states(7.5e9, level, 64, adam_mixed) is 120e9, 31.4e9, 16.6e9 and 1.9e9 for levels
///      0 to 3, as published
constexpr double model_states(double parameters, int level, int replicas,
                              state_widths const& each = adam_fp32) {
  auto const part = [&](int from, double bytes) { return level < from ? bytes : bytes / replicas; };
  return parameters * (part(3, each.parameter) + part(2, each.gradient) + part(1, each.optimizer));
}

}  // namespace pp
