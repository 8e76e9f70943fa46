// SPDX-License-Identifier: BSL-1.0
//
// A rank that fails or stalls: all others stop, the caller hears why, nothing was updated, and the
// executor stays usable. The kernels of a pipeline are wrapped in ones that fail on demand.
#include "catch.hpp"

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

#include "runtime/trainers.hpp"

using namespace pp;
using namespace pp::detail;

namespace {

using compiled = tiny::Regression::compiled;
constexpr int groups = compiled::groups;
auto const real = compiled::backend::kernels<compiled>();

std::atomic<int> bad_group{-1}, good_calls{0};  // so many calls of the group go well first
enum class trouble { none, fails, stalls, is_slow } how;
constexpr auto stall = std::chrono::milliseconds(500);

template <int G>
void wrapped(host::arguments<float> const& a) {
  if (bad_group == G && good_calls-- <= 0) {
    if (how == trouble::fails) throw std::runtime_error("kernel " + std::to_string(G) + " broke");
    if (how == trouble::stalls) std::this_thread::sleep_for(stall);
    if (how == trouble::is_slow) std::this_thread::sleep_for(stall * 3 / 10);
  }
  real.groups[G](a);
}
template <int... G>
list<host::kernel<float>, groups> wrap(std::integer_sequence<int, G...>) {
  return {{&wrapped<G>...}};
}
auto const kernels = wrap(std::make_integer_sequence<int, groups>{});

/// Plain gradient descent, slow on demand.
std::atomic<bool> update_is_slow{false};
void descend(void const*, update_request<float> const& r) {
  if (update_is_slow) std::this_thread::sleep_for(stall);
  for (long i = 0; i < r.range.shape.elements(); ++i)
    r.values[i] -= float(r.learning_rate) * r.gradients[i];
}

struct wrapped_executor {
  executor<float> m;
  laws::sample_batch<tiny::Regression> data{1};

  explicit wrapped_executor(std::chrono::milliseconds deadline,
                            void (*on_timeout)(std::string_view) = nullptr, slow_runs slow = {})
      : m(compiled::description(),
          {kernels.items, real.sum_of_squares, real.add, real.transpose, real.to_panels, &descend,
           nullptr},
          {.waiting = {.deadline = deadline}, .on_timeout = on_timeout, .slow = slow}) {
    for (int c = 0; c < compiled::stages; ++c) {
      chunk_description const& chunk = compiled::memory().chunks[c];
      for (parameter_place const& p : chunk.parameters)
        for (long e = 0; e < p.elements(); ++e)
          weights(c)[p.offset / 4 + e] =
              float(laws::uniform(3, std::uint64_t(c), std::uint64_t(e)));
    }
    m.parameters_changed();
  }
  float* weights(int chunk) {
    return reinterpret_cast<float*>(m.memory(chunk) + compiled::memory().chunks[chunk].values);
  }
  std::vector<float> all() {
    std::vector<float> values;
    for (int c = 0; c < compiled::stages; ++c)
      values.insert(values.end(), weights(c),
                    weights(c) + compiled::memory().chunks[c].sizes.parameters / 4);
    return values;
  }
  step_result train() { return run(job::kind::train); }
  step_result evaluate() { return run(job::kind::evaluate); }
  step_result run(job::kind what) {
    job j;
    j.what = what;
    j.batch.input[0] = data.inputs.data();
    j.batch.samples = tiny::Regression::samples;
    j.batch.label = data.labels.data();
    j.loss.terms = j.loss.gradient_terms = double(data.labels.size());
    j.update.learning_rate = 0.1;
    return m.run(j);
  }
};

/// The first group that stage s runs in a program.
int group_of(int s, detail::program p) {
  return compiled::description().chunk[s].set_for(0).programs[int(p)].launches[0].group;
}

void in_trouble(trouble t, int group, int after = 0) {
  how = t;
  good_calls = after;
  bad_group = group;
}

}  // namespace

TEST_CASE("a failing kernel stops every rank and changes nothing", "[runtime]") {
  using namespace std::chrono_literals;
  for (int stage = 0; stage < compiled::stages; ++stage)
    for (detail::program p : {detail::program::forward, detail::program::backward}) {
      wrapped_executor healthy(300s), troubled(300s);
      healthy.train();
      troubled.train();
      auto const before = troubled.all();
      int const group = group_of(stage, p);
      in_trouble(trouble::fails, group);
      CHECK_THROWS_WITH(troubled.train(), "kernel " + std::to_string(group) + " broke");
      CHECK_THROWS_WITH(troubled.train(), "kernel " + std::to_string(group) + " broke");
      in_trouble(trouble::none, -1);
      CHECK(laws::same_numbers(before, troubled.all()));
      CHECK(laws::same_bits(healthy.train().loss, troubled.train().loss));
      CHECK(laws::same_numbers(healthy.all(), troubled.all()));
    }
}

TEST_CASE("a stalled rank is not waited for beyond the deadline", "[runtime]") {
  using namespace std::chrono_literals;
  wrapped_executor healthy(300s), troubled(200ms);
  healthy.train();
  troubled.train();
  auto const before = troubled.all();

  in_trouble(trouble::stalls,
             group_of(0, detail::program::forward));  // the others wait for its result
  CHECK_THROWS_AS(troubled.train(), rank_error);
  CHECK(laws::same_numbers(before, troubled.all()));

  CHECK_THROWS_AS(troubled.evaluate(), rank_error);  // which has no barrier

  // It stalls in its last action, when all others wait for the end of the step: they give up, and
  // when it arrives in the end it must not go on to an update that the others have not made.
  in_trouble(trouble::stalls, group_of(0, detail::program::backward), compiled::micro_batches - 1);
  CHECK_THROWS_AS(troubled.train(), rank_error);
  CHECK(laws::same_numbers(before, troubled.all()));

  in_trouble(trouble::none, -1);
  CHECK(laws::same_bits(healthy.train().loss, troubled.train().loss));
  CHECK(laws::same_numbers(healthy.all(), troubled.all()));
}

TEST_CASE("a rank may wait longer than the deadline for one that gets ahead", "[runtime]") {
  using namespace std::chrono_literals;
  wrapped_executor slow(300ms);
  in_trouble(trouble::is_slow, group_of(0, detail::program::backward));
  CHECK_NOTHROW(slow.train());
  in_trouble(trouble::none, -1);
  long const last = slow.m.executed(2)[slow.m.executed_count(2) - 1].end;
  long const first = slow.m.executed(0)[slow.m.executed_count(0) - 1].end;
  CHECK(first - last > 300'000'000);  // so long the last rank waited for the end of the step
}

namespace {
int reports = 0;
std::string last_report;
void keep(std::string_view report) {
  ++reports;
  last_report = report;
}
}  // namespace

TEST_CASE("the report says what every rank does, while the stuck one is waited for", "[runtime]") {
  using namespace std::chrono_literals;
  wrapped_executor troubled(200ms, keep);
  reports = 0;
  in_trouble(trouble::stalls, group_of(1, detail::program::forward));
  try {
    troubled.train();
    FAIL("no exception");
  } catch (rank_error const& e) {
    std::string const text = e.what();
    CHECK(text == last_report);
    CHECK_THAT(
        text,
        Catch::StartsWith(
            "timed out after 200 ms waiting for rank 1 (F of chunk 1, micro-batch 0, in layer "));
    CHECK_THAT(text, Catch::Contains(
                         "\nrank 0: BW of chunk 0, micro-batch 0, waiting for chunk 1, for 0 s"));
    CHECK_THAT(text, Catch::Contains("\nrank 1: F of chunk 1, micro-batch 0, in layer "));
    CHECK_THAT(text, Catch::Contains(
                         "\nrank 2: F of chunk 2, micro-batch 0, waiting for chunk 1, for 0 s"));
  }
  CHECK(reports == 1);
  in_trouble(trouble::none, -1);
}

TEST_CASE("a run that takes much longer than those before is reported once, and goes on",
          "[runtime]") {
  using namespace std::chrono_literals;
  for (auto const deadline : {300'000ms, 0ms})
    for (job::kind const what : {job::kind::train, job::kind::evaluate}) {
      wrapped_executor healthy(300s),
          slow(deadline, nullptr, {.factor = 2, .at_least = 100ms, .report = keep});
      auto const before = [&](int runs) {
        for (int i = 0; i < runs; ++i) healthy.run(what), slow.run(what);
      };
      auto const run_slowly = [&] {
        in_trouble(trouble::is_slow, group_of(1, detail::program::forward));
        step_result const r = slow.run(what);
        in_trouble(trouble::none, -1);
        CHECK(laws::same_bits(healthy.run(what).loss, r.loss));
      };
      reports = 0;
      before(recent_times::enough - 1);
      run_slowly();  // too few before it
      CHECK(reports == 0);
      run_slowly();
      CHECK(reports == 1);
      CHECK_THAT(last_report, Catch::StartsWith(what == job::kind::train
                                                    ? "the run of step 1 has not ended after "
                                                    : "an evaluation before step 1 has not "));
      CHECK_THAT(last_report, Catch::Contains(": the median of those before is "));
      CHECK_THAT(last_report, Catch::Contains("\nrank 1: F of chunk 1, micro-batch "));
    }
}

TEST_CASE("what the report of a slow run throws comes out, and nothing has changed", "[runtime]") {
  using namespace std::chrono_literals;
  wrapped_executor slow(300s, nullptr,
                        {.factor = 2, .at_least = 50ms, .report = [](std::string_view) {
                           throw std::logic_error("too slow");
                         }});
  for (int i = 0; i < recent_times::enough; ++i) slow.train();
  auto const before = slow.all();
  in_trouble(trouble::is_slow, group_of(0, detail::program::forward));
  CHECK_THROWS_WITH(slow.train(), "too slow");
  in_trouble(trouble::none, -1);
  CHECK(laws::same_numbers(before, slow.all()));
  CHECK_NOTHROW(slow.train());
}

TEST_CASE("the median is that of the last runs", "[runtime]") {
  recent_times times;
  for (int i = 1; i < recent_times::enough; ++i) {
    times.add(i);
    CHECK(times.median() == 0);
  }
  times.add(0.5);
  CHECK(times.median() == 3);
  for (int i = 0; i < 2 * recent_times::most; ++i) times.add(100 - i);
  CHECK(times.median() == 100 - 2 * recent_times::most + 1 + recent_times::most / 2);
}

namespace {
/// Runs `what` in a child process with its standard error in `text`; returns the child's status.
template <class What>
int status_of(std::string& text, What what) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  pid_t const child = fork();
  if (child == 0) {
    alarm(60);
    dup2(ends[1], STDERR_FILENO);
    signal(SIGABRT, SIG_DFL);  // not Catch's
    what();
    _exit(0);
  }
  close(ends[1]);
  char bytes[4096];
  for (ssize_t n = 0; (n = read(ends[0], bytes, sizeof(bytes))) > 0;)
    text.append(bytes, std::size_t(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}
}  // namespace

TEST_CASE("a report is printed, and may be the end of the process", "[runtime]") {
  using namespace std::chrono_literals;
  for (auto const on_timeout : {executor_settings{}.on_timeout, &abort_with_report}) {
    std::string text;
    int const status = status_of(text, [&] {
      wrapped_executor troubled(200ms, on_timeout);
      in_trouble(trouble::stalls, group_of(1, detail::program::forward));
      try {
        troubled.train();
      } catch (rank_error const& e) {
        _exit(5);
      }
    });
    CHECK_THAT(text,
               Catch::StartsWith("timed out after 200 ms waiting for rank 1 (F of chunk 1, "));
    CHECK_THAT(text,
               Catch::Contains("\nrank 0: BW of chunk 0, micro-batch 0, waiting for chunk 1"));
    CHECK(text.back() == '\n');
    if (on_timeout == &abort_with_report)
      CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT));
    else
      CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 5));
  }
}

TEST_CASE("an update is reported after the deadline, and never left half done", "[runtime]") {
  using namespace std::chrono_literals;
  wrapped_executor healthy(300s), slow(200ms, keep);
  reports = 0;
  update_is_slow = true;
  CHECK_NOTHROW(slow.train());
  update_is_slow = false;
  CHECK(reports == 1);
  CHECK_THAT(last_report, Catch::Contains("\nrank 0: in the optimizer's update, for 0 s"));
  healthy.train();
  CHECK(laws::same_numbers(healthy.all(), slow.all()));
}

TEST_CASE("what the report's callback throws comes out, and nothing has changed", "[runtime]") {
  using namespace std::chrono_literals;
  wrapped_executor troubled(200ms, [](std::string_view) { throw std::logic_error("enough"); });
  auto const before = troubled.all();
  in_trouble(trouble::stalls, group_of(1, detail::program::forward));
  CHECK_THROWS_WITH(troubled.train(), "enough");
  in_trouble(trouble::none, -1);
  CHECK(laws::same_numbers(before, troubled.all()));
  CHECK_NOTHROW(troubled.train());
}

TEST_CASE("time in which the process was stopped does not count", "[runtime]") {
  using namespace std::chrono_literals;
  pid_t const child = fork();
  if (child == 0) {
    alarm(60);
    wrapped_executor slow(400ms);
    in_trouble(trouble::is_slow, group_of(0, detail::program::forward));
    try {
      for (int i = 0; i < 3; ++i) slow.train();
    } catch (...) {
      _exit(1);
    }
    _exit(0);
  }
  for (int i = 0; i < 2; ++i) {
    std::this_thread::sleep_for(200ms);
    kill(child, SIGSTOP);
    std::this_thread::sleep_for(800ms);
    kill(child, SIGCONT);
  }
  int status = 1;
  waitpid(child, &status, 0);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
}
