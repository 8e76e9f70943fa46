// SPDX-License-Identifier: BSL-1.0
//
// A fuzz target: scheduling problems as text. Whatever comes in is refused in printable characters,
// or is a problem that comes back the same, and whose times and memory can be added up: where it is
// small, those of a schedule of its chunks.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <pipe/report/problem_file.hpp>
#include <pipe/schedule/appraise.hpp>
#include <pipe/schedule/certificate.hpp>

#include "fuzz.hpp"

namespace {

void judge(pp::schedules::run_time_problem const& problem) {
  std::string const text = pp::schedules::problem_json(problem);
  law(pp::schedules::problem_json(pp::schedules::read_problem(text, "f")) == text);
  if (problem.ranks > 8 || problem.micro_batches > 16) return;
  for (char const* name : {"gpipe", "1f1b", "zb-h1"}) {
    pp::schedules::family const& f = *pp::schedules::find_family(name);
    if (f.refuses(problem) != nullptr) continue;
    auto const table = pp::schedules::make_dynamic_table(f, problem);
    auto unlimited = problem;
    unlimited.limit = 0;
    unlimited.rooms.clear();
    pp::schedules::appraisal const found = pp::schedules::appraise(unlimited, table);
    law(found.found.ok());
    law(pp::schedules::certify(unlimited, table, found.when, found.peak).gap() >= 0);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  try {
    judge(pp::schedules::read_problem({reinterpret_cast<char const*>(data), size}, "f"));
  } catch (pp::data_error const& e) {
    for (char const c : std::string_view(e.what())) law(c >= 0x20 && c < 0x7F);
  }
  return 0;
}
