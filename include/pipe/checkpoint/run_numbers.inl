// SPDX-License-Identifier: BSL-1.0
//
// Definitions of checkpoint/run_numbers.hpp.

namespace pp::detail {

PIPE_DEFINED row_list<std::byte> run_numbers::bytes() const {
  row_list<std::byte> to(8 * bits.size());
  for (std::size_t i = 0; i < bits.size(); ++i) put_little_endian(bits[i], to.data() + 8 * i);
  return to;
}
PIPE_DEFINED void run_numbers::push_back(double real) {
  bits.push_back(std::bit_cast<std::uint64_t>(real));
}
PIPE_DEFINED void run_numbers::set(std::byte const* bytes) {
  for (std::size_t i = 0; i < bits.size(); ++i)
    bits[i] = little_endian<std::uint64_t>(bytes + 8 * i);
}

}  // namespace pp::detail
