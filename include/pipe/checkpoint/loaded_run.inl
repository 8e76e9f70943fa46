// SPDX-License-Identifier: BSL-1.0
//
// Definitions of checkpoint/loaded_run.hpp.

namespace pp::detail {

PIPE_DEFINED bool require_numbers(expected_run const& here, open_checkpoint const& file,
                                  row_list<run_numbers> const& of) {
  auto const is_below = [](double n, double end) { return n >= 0 && n < end; };
  run_numbers const &sum = of[of_run::accumulated], &scaling = of[of_run::loss_scale];
  double const count = sum.real(0);
  if (of[of_run::steps].bits[0] >> 62 != 0 || !sum.is_count(0, 2e9) ||
      !is_below(sum.real(1), 1e300) || !is_below(sum.real(2), 1e300) || !sum.is_count(4, 9e15) ||
      !is_below(scaling.real(0), 1e38) || !scaling.is_count(1, 2e9))
    file.refuse({"its numbers of steps or of accumulated mini-batches are those of no run"});
  for (std::size_t i = 5; i < sum.bits.size(); i += 3)
    if (!is_below(sum.real(i), 1e300) || !is_below(sum.real(i + 1), 1e300))
      file.refuse({"its numbers of the terms of further losses are those of no run"});
  if (count > 0 && !here.accumulates)
    file.refuse(
        {"it has accumulated gradients, to which a mini-batch of several accumulations, or with "
         "divided gradients, adds none"});
  return count > 0;
}

}  // namespace pp::detail
