// SPDX-License-Identifier: BSL-1.0
//
// A right table with one action dropped, doubled or moved is a wrong one, and is refused; or it is
// right in another order, and then it runs to its end.
#include "catch.hpp"
#include <pipe/schedule/catalog/catalog.hpp>
#include <pipe/schedule/communication.hpp>

#include "reference.hpp"
#include "rendezvous.hpp"

namespace {

using namespace pp;
using namespace pp::schedules;
using namespace pp::detail;
using reference::dice;

TEST_CASE("ten thousand mutations of right tables", "[mutation]") {
  dice roll(23);
  int refused[3]{}, still_right = 0;
  for (int tried = 0; tried < 10000;) {
    family const& f = catalog[std::size_t(roll(0, int(std::size(catalog)) - 1))];
    int const p = roll(1, 5), m = roll(1, 10),
              chunks = chunks_for(f.where, p, f.chunks_per_rank > 0 ? f.chunks_per_rank : 2);
    if (f.searches) continue;
    run_time_problem const problem{
        p, chunks, m, 1, std::vector<chunk_cost>(std::size_t(chunks), chunk_cost{3, 2, 4})};
    if (f.refuses(problem)) continue;
    auto table = make_dynamic_table(f, problem);
    auto& row = table.row(roll(0, p - 1));
    int const at = roll(0, int(row.size()) - 1), how = roll(0, 2);
    if (how == 0) {
      row.erase(row.begin() + at);
    } else if (how == 1) {
      row.insert(row.begin() + roll(0, int(row.size())), row[std::size_t(at)]);
    } else {
      int const other = roll(0, int(row.size()) - 1);
      if (other == at) continue;
      std::swap(row[std::size_t(at)], row[std::size_t(other)]);
    }
    ++tried;
    verdict const found = validate(problem, table);
    INFO(f.name << ", p " << p << ", m " << m << ", way " << how << ", at " << at << ": "
                << found.text());
    if (how < 2) {
      REQUIRE(!found.ok());
    } else if (found.ok()) {
      REQUIRE(simulate(problem, table).complete);
      REQUIRE(check_rendezvous(problem, communicate(problem, table)).ok());
      ++still_right;
    }
    if (!found.ok()) {
      REQUIRE(found.rank >= 0);
      REQUIRE(found.rank < p);
      ++refused[how];
    } else if (table.mini_batch == 0) {
      REQUIRE(reference::is_right(problem, table));
    }
    if (!found.ok() && how == 2 && table.mini_batch == 0)
      REQUIRE(!reference::is_right(problem, table));
  }
  for (int count : refused) REQUIRE(count > 2000);
  REQUIRE(still_right > 50);  // such as two Ws of different chunks
}

}  // namespace
