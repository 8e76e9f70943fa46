// SPDX-License-Identifier: BSL-1.0
//
// Work that all processes do, or none: two threads stand for two processes.
#include "catch.hpp"

#include <pipe/base/function_ref.hpp>
#include <pipe/base/together.hpp>

#include <array>
#include <barrier>
#include <string>
#include <thread>

using namespace pp;
using namespace pp::detail;

namespace {

/// Two processes, which agree once both have come.
struct pair_of_processes {
  std::array<bool, 2> says{};
  std::barrier<> met{2};

  struct process {
    pair_of_processes& all;
    int number;
    bool agree(bool here) const {
      all.says[std::size_t(number)] = here;
      all.met.arrive_and_wait();
      bool const is_so = all.says[0] && all.says[1];
      all.met.arrive_and_wait();
      return is_so;
    }
  };
};

/// Calls use(process) in both, and returns what each has thrown, as text; "" for nothing.
template <class Use>
std::array<std::string, 2> in_both(Use const& use) {
  pair_of_processes all;
  std::array<std::string, 2> texts;
  auto const run = [&](int number) {
    try {
      use(pair_of_processes::process{all, number});
    } catch (std::exception const& e) {
      texts[std::size_t(number)] = e.what();
    }
  };
  std::thread other(run, 1);
  run(0);
  other.join();
  return texts;
}
using texts = std::array<std::string, 2>;

}  // namespace

TEST_CASE("Work that one process cannot do throws in all") {
  std::array<int, 2> done{}, undone{};
  for (int failing : {-1, 0, 1}) {
    auto const found = in_both([&](auto const& process) {
      together<data_error>(
          process, "another process could not load", "a\nb",
          [&] {
            if (process.number == failing) throw file_error("no file");
            ++done[std::size_t(process.number)];
          },
          [&] { ++undone[std::size_t(process.number)]; });
    });
    std::string const other = "another process could not load 'a\\x0ab'";
    CHECK(found == (failing < 0    ? texts{}
                    : failing == 0 ? texts{"no file", other}
                                   : texts{other, "no file"}));
  }
  CHECK(done == std::array<int, 2>{2, 2});
  CHECK(undone == std::array<int, 2>{2, 2});
}

TEST_CASE("A failure of processes is no question to them") {
  // The other process does not come to the agreement.
  auto const found = in_both([&](auto const& process) {
    if (process.number == 0)
      together<data_error>(process, "never", "", [] { throw rank_error("process 1 was lost"); });
  });
  CHECK(found == texts{"process 1 was lost", ""});
}

TEST_CASE("What others wait for is done before an exception goes on") {
  bool is_read = false;
  CHECK_THROWS_AS(with_rest([] { throw error("no"); }, [&] { is_read = true; }), error);
  CHECK(is_read);
}

TEST_CASE("Nothing is written before all have checked, and a write that fails spoils all") {
  std::array<int, 2> written{}, spoiled{};
  auto const load = [&](bool checks, bool writes) {
    written = spoiled = {};
    return in_both([&](auto const& process) {
      bool const is_first = process.number == 0;
      auto const found = load_together(
          process, "x",
          [&] {
            if (!checks && is_first) throw data_error("does not fit");
            return 7;
          },
          [&](int n) {
            if (!writes && is_first) throw file_error("has gone");
            written[std::size_t(process.number)] = n;
          },
          [&] { ++spoiled[std::size_t(process.number)]; });
      if (*found != 7) throw error("another result");
    });
  };
  std::string const other = "another process could not load 'x'";
  CHECK(load(true, true) == texts{});
  CHECK(written == std::array<int, 2>{7, 7});
  CHECK(load(false, true) == texts{"does not fit", other});
  CHECK(written == std::array<int, 2>{});
  CHECK(spoiled == std::array<int, 2>{});
  CHECK(load(true, false) == texts{"has gone", other});
  CHECK(spoiled == std::array<int, 2>{1, 1});
}

TEST_CASE("a function_ref calls the function that the caller keeps") {
  int calls = 0;
  auto const add = [&](int by) { return calls += by; };
  function_ref<int(int)> const first(add), second = first;
  CHECK(first(2) == 2);
  CHECK(second(3) == 5);
  CHECK(calls == 5);
}
