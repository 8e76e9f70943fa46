// SPDX-License-Identifier: BSL-1.0
//
// A fuzz target: schedules as text, read, judged, timed and written again. Whatever comes in is
// refused in printable characters, or is a table that the judge calls wrong, or one that runs to
// its end with the slots that its timeline needs and comes back the same.
#include <cstdint>
#include <string_view>
#include <vector>

#include <pipe/schedule/boundary_slots.hpp>
#include <pipe/schedule/catalog/torch_csv.hpp>
#include <pipe/schedule/simulate.hpp>
#include <pipe/schedule/validate.hpp>

#include "fuzz.hpp"

namespace {

using run_time_problem =
    pp::schedules::problem<std::vector<pp::schedules::chunk_cost>, std::vector<long>>;

void judge(pp::schedules::read_schedule const& read) {
  int const chunks = read.chunks;
  run_time_problem problem{read.table.ranks(), chunks, read.micro_batches, 1, {}};
  problem.costs.assign(std::size_t(chunks), pp::schedules::chunk_cost{3, 2, 4});
  pp::schedules::verdict const found = pp::schedules::validate(problem, read.table);
  if (!found.ok()) return;
  auto const when = pp::schedules::simulate(problem, read.table);
  law(when.complete && when.makespan >= 3);
  std::vector<pp::detail::slot_count> slots;
  for (int boundary = 0; boundary + 1 < chunks; ++boundary)
    slots.push_back(pp::schedules::boundary_slots(problem, read.table, when, boundary));
  law(pp::schedules::validate(problem, read.table, slots).ok());
  law(pp::schedules::simulate(problem, read.table, slots).makespan == when.makespan);
  std::string const text = pp::schedules::torch_csv(read.table);
  law(pp::schedules::torch_csv(pp::schedules::read_torch_csv(text).table) == text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  try {
    judge(pp::schedules::read_torch_csv({reinterpret_cast<char const*>(data), size}));
  } catch (pp::data_error const& e) {
    for (char const c : std::string_view(e.what())) law(c >= 0x20 && c < 0x7F);
  }
  return 0;
}
