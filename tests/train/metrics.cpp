// SPDX-License-Identifier: BSL-1.0
//
// Records of steps: to all sinks, into a file that is complete after each row, and a clear word
// when that cannot be.
#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "catch.hpp"

#include <pipe/metrics/metrics.hpp>
#include <pipe/metrics/tensorboard.hpp>

#include "folder.hpp"
#include "system_calls.hpp"

namespace {

std::string const heading =
    "step,loss,learning_rate,gradient_norm,samples_per_second,seconds,bubble";

pp::step_metrics record(long step, std::vector<pp::detail::named_scalar> scalars = {}) {
  return {.step = step,
          .loss = 1.5,
          .learning_rate = 3e-4,
          .gradient_norm = 0.5,
          .samples_per_second = 20000,
          .seconds = 0.125,
          .bubble = 0.25,
          .scalars = std::move(scalars)};
}

std::string message(std::string const& path) {
  return sentence<pp::file_error>([&] {
    pp::metrics_file metrics(path);
    metrics.write({});
  });
}

}  // namespace

TEST_CASE("a row per step, readable at once") {
  temporary_folder const folder;
  std::string const path = folder.write("m.csv", "of an earlier run");
  pp::metrics_file metrics(path);
  CHECK(content(path) == heading + "\n");
  metrics.write(record(1));
  CHECK(content(path) == heading + "\n1,1.5,0.0003,0.5,20000,0.125,0.25\n");
  metrics.write(record(2));
  CHECK(content(path) ==
        heading + "\n1,1.5,0.0003,0.5,20000,0.125,0.25\n2,1.5,0.0003,0.5,20000,0.125,0.25\n");
}

TEST_CASE("the user's own numbers have columns of their own") {
  temporary_folder const folder;
  std::string const path = folder.file("m.csv");
  pp::metrics_file metrics(path, {"valid/loss", "a, \"b\""});
  metrics.write(record(1, {{"a, \"b\"", 0.1234567891}}));
  metrics.write(record(2, {{"a, \"b\"", -1}, {"valid/loss", 2}}));
  std::string const rows =
      heading +
      ",valid/loss,\"a, \"\"b\"\"\"\n1,1.5,0.0003,0.5,20000,0.125,0.25,,0.123456789\n"
      "2,1.5,0.0003,0.5,20000,0.125,0.25,2,-1\n";
  CHECK(content(path) == rows);
  CHECK(sentence<pp::data_error>(
            [&] { metrics.write(record(3, {{"other", 1}, {"valid/loss", 2}})); }) ==
        "metrics in '" + path +
            "': step 3: 'other' has no column; columns are declared in metrics_file's constructor");
  CHECK(sentence<pp::data_error>([&] {
          metrics.write(record(3, {{"valid/loss", 1}, {"a", 1}, {"valid/loss", 2}}));
        }) == "metrics in '" + path +
                  "': step 3: 'a' has no column, 'valid/loss' is given twice; columns are declared "
                  "in metrics_file's constructor");
  CHECK(content(path) == rows);
}

TEST_CASE("a file that cannot be written is named with the reason") {
  temporary_folder const folder;
  CHECK(message(folder.file("none/m.csv")) ==
        "cannot write metrics to '" + folder.file("none/m.csv") + "': No such file or directory");
  CHECK(message(folder.file("")) ==
        "cannot write metrics to '" + folder.file("") + "': Is a directory");
  if (!std::filesystem::exists("/dev/full"))
    WARN("skipped: there is no /dev/full");
  else
    CHECK(message("/dev/full") == "cannot write metrics to '/dev/full': No space left on device");
}

TEST_CASE("a file of another run can be left alone") {
  temporary_folder const folder;
  std::string const rows = heading + "\n";
  auto const begin = [&](std::string const& name) {
    pp::metrics_file const metrics(folder.file(name), {}, pp::files::record_file::start::beside);
    CHECK(content(metrics.path()) == rows);
    return metrics.path();
  };
  CHECK(begin("m.csv") == folder.file("m.csv"));
  CHECK(begin("m.csv") == folder.file("m-2.csv"));
  CHECK(begin("m.csv") == folder.file("m-3.csv"));
  folder.write("plain", "of another program");
  CHECK(begin("plain") == folder.file("plain-2"));
  folder.write(".hidden", "of another program");
  CHECK(begin(".hidden") == folder.file(".hidden-2"));
  std::filesystem::create_symlink("plain", folder.file("link.csv"));
  CHECK(begin("link.csv") == folder.file("link-2.csv"));
  std::filesystem::create_symlink("nowhere", folder.file("dangling"));
  CHECK(begin("dangling") == folder.file("dangling-2"));
  CHECK(content(folder.file("plain")) == "of another program");
  CHECK(pp::metrics_file("/dev/null", {}, pp::files::record_file::start::beside).path() ==
        "/dev/null");
}

TEST_CASE("records to /dev/stdout, where the output goes to a file, go to its end") {
  if (!std::filesystem::exists("/dev/stdout")) {
    WARN("skipped: there is no /dev/stdout");
    return;
  }
  temporary_folder const folder;
  std::fflush(stdout);
  int const output = dup(STDOUT_FILENO);
  folder.write("output", "said before\n");
  pp::detail::file_descriptor const file(folder.file("output"), O_WRONLY);
  dup2(file.number(), STDOUT_FILENO);
  std::string const path =
      pp::metrics_file("/dev/stdout", {}, pp::files::record_file::start::beside).path();
  dup2(output, STDOUT_FILENO);
  close(output);
  CHECK(path == "/dev/stdout");
  CHECK(content(folder.file("output")) == "said before\n" + heading + "\n");
}

TEST_CASE("a pipe takes records if it has a reader, and no step waits for one") {
  temporary_folder const folder;
  std::string const path = folder.file("pipe");
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  CHECK(message(path) == "cannot write metrics to '" + path + "': it is a pipe without a reader");
  pp::detail::file_descriptor const reader(path, O_RDONLY | O_NONBLOCK);
  {
    pp::metrics_file metrics(path);
    metrics.write(record(1));
  }
  std::string read(1000, ' ');
  read.resize(std::size_t(::read(reader.number(), read.data(), read.size())));
  CHECK(read == heading + "\n1,1.5,0.0003,0.5,20000,0.125,0.25\n");
}

TEST_CASE("a row that found no room leaves the rows before it, and the next one may find some") {
  temporary_folder const folder;
  std::string const path = folder.file("m.csv");
  pp::metrics_file metrics(path);
  metrics.write(record(1));
  std::string const before = content(path);
  {
    planned_mishap const plan(mishap::short_count, 0);  // one byte gets through, the rest after it
    metrics.write(record(2));
    CHECK(plan.happened());
  }
  std::string const two = content(path);
  CHECK(two == before + "2,1.5,0.0003,0.5,20000,0.125,0.25\n");
  {
    planned_mishap const plan(mishap::fails, 0, ENOSPC);
    CHECK_THROWS_AS(metrics.write(record(3)), pp::file_error);
  }
  CHECK(content(path) == two);
  {
    file_size_limit const limit(two.size() + 10);  // a part of the row gets through
    CHECK(sentence<pp::file_error>([&] { metrics.write(record(3)); }) ==
          "cannot write metrics to '" + path + "': File too large");
  }
  CHECK(content(path) == two);
  metrics.write(record(4));
  CHECK(content(path) == two + "4,1.5,0.0003,0.5,20000,0.125,0.25\n");
}

TEST_CASE("every sink gets every record, in their order") {
  temporary_folder const folder;
  struct counter {
    std::shared_ptr<std::vector<std::string>> seen;
    std::unique_ptr<int> cannot_be_copied = nullptr;
    void write(pp::step_metrics const& m) { seen->push_back("sink " + std::to_string(m.step)); }
  };
  auto const seen = std::make_shared<std::vector<std::string>>();
  pp::metrics_log log;
  log.add([&](pp::step_metrics const& m) { seen->push_back("function " + std::to_string(m.step)); })
      .add(counter{seen})
      .add(pp::metrics_file(folder.file("m.csv")));
  log.write(record(1));
  log.write(record(2));
  CHECK(*seen == std::vector<std::string>{"function 1", "sink 1", "function 2", "sink 2"});
  CHECK(content(folder.file("m.csv")).ends_with("\n2,1.5,0.0003,0.5,20000,0.125,0.25\n"));
}

TEST_CASE("a run logs to a file, to TensorBoard and to a function") {
  temporary_folder const folder;
  std::string const csv = folder.file("metrics.csv"), runs = folder.file("runs");
  double smallest = 1e9;
  // [log]
  pp::metrics_log log;
  log.add(pp::metrics_file(csv, {"valid/loss"}))
      .add(pp::tensorboard_file(runs))
      .add([&](pp::step_metrics const& m) { smallest = std::min(smallest, m.loss); });
  for (long step = 1; step <= 3; ++step)
    log.write(
        {.step = step, .loss = 1 / double(step), .scalars = {{"valid/loss", 2 / double(step)}}});
  // [/log]
  CHECK(smallest == 1 / 3.0);
  CHECK(
      content(csv) ==
      heading +
          ",valid/loss\n1,1,0,0,0,0,0,2\n2,0.5,0,0,0,0,0,1\n3,0.333333333,0,0,0,0,0,0.666666667\n");
  CHECK(std::distance(std::filesystem::directory_iterator(runs), {}) == 1);
}

TEST_CASE("a sink that throws is told of, and keeps nothing from the others") {
  int seen = 0;
  pp::metrics_log log;
  log.add([](pp::step_metrics const&) { throw std::runtime_error("first"); })
      .add([](pp::step_metrics const&) { throw std::runtime_error("second"); })
      .add([&](pp::step_metrics const&) { ++seen; });
  CHECK_THROWS_WITH(log.write({}), "first");
  CHECK(seen == 1);
}

TEST_CASE("a resumed run continues its file, and no file of anything else") {
  temporary_folder const folder;
  std::string const path = folder.file("m.csv");
  {
    pp::metrics_file metrics(path, {"own"});
    for (long step = 1; step <= 4; ++step) metrics.write(record(step, {{"own", double(step)}}));
  }
  std::string const four = content(path), two = four.substr(0, four.find("\n3,") + 1);
  {
    auto metrics = pp::metrics_file::resumed(path, 2, {"own"});
    CHECK(metrics.path() == path);
    CHECK(content(path) == two);
    CHECK(two + content(path + ".dropped") == four);
    metrics.write(record(3, {{"own", 3}}));
    CHECK(content(path) == four.substr(0, four.find("\n4,") + 1));
    // While one program writes to it, others leave it alone.
    CHECK(pp::metrics_file::resumed(path, 2, {"own"}).path() == folder.file("m-2.csv"));
  }
  // A row that was cut off by the end of the machine is one of those that are dropped.
  folder.write("m.csv", four + "5,1.");
  {
    auto metrics = pp::metrics_file::resumed(path, 5, {"own"});
    CHECK(content(path) == four);
    CHECK(content(path + ".dropped") == "5,1.");
  }
  std::string const all = content(path);
  auto const other = [&](long steps, std::vector<std::string> const& scalars) {
    std::string const name = pp::metrics_file::resumed(path, steps, scalars).path();
    CHECK(content(path) == all);
    CHECK(content(path + ".dropped") == "5,1.");
    return name;
  };
  CHECK(other(2, {"another"}) == folder.file("m-3.csv"));
  CHECK(other(2, {}) == folder.file("m-4.csv"));
  CHECK(other(0, {"own"}) == folder.file("m-5.csv"));  // the start of a run
  folder.write("m.csv", all.substr(0, all.find('\n') + 1));
  CHECK(pp::metrics_file::resumed(path, 2, {"own"}).path() == folder.file("m-6.csv"));
  CHECK(pp::metrics_file::resumed(folder.file("new.csv"), 2).path() == folder.file("new.csv"));
  CHECK(pp::metrics_file::resumed("/dev/null", 2).path() == "/dev/null");
}

TEST_CASE("a sink that fails is told once, and tried again") {
  temporary_folder const folder;
  std::string const path = folder.file("m.csv");
  std::vector<std::string> told;
  long other = 0;
  pp::metrics_log log;
  log.add(pp::metrics_file(path))
      .add([](pp::step_metrics const&) { throw pp::data_error("never"); })
      .add([&](pp::step_metrics const& m) { other = m.step; })
      .report_failures([&](std::string const& what) { told.push_back(what); });
  for (long step = 1; step <= 3; ++step) {
    planned_mishap const plan(mishap::fails, step == 3 ? 100 : 0, ENOSPC);
    log.write(record(step));
  }
  CHECK(told == std::vector<std::string>{"cannot write metrics to '" + path +
                                             "': No space left on device (step 1; the training "
                                             "goes on)",
                                         "never (step 1; the training goes on)"});
  CHECK(other == 3);
  CHECK(content(path) == heading + "\n3,1.5,0.0003,0.5,20000,0.125,0.25\n");
  log.add([](pp::step_metrics const&) { throw std::logic_error("a mistake"); });
  CHECK_THROWS_AS(log.write(record(4)), std::logic_error);
}

TEST_CASE("the reader of a pipe may leave") {
  temporary_folder const folder;
  std::string const path = folder.file("pipe");
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  for (long const steps : {0, 2})
    CHECK(sentence<pp::file_error>([&] { pp::metrics_file::resumed(path, steps); }) ==
          "cannot write metrics to '" + path + "': it is a pipe without a reader");
  std::signal(SIGPIPE, SIG_DFL);
  auto reader = std::make_unique<pp::detail::file_descriptor>(path, O_RDONLY | O_NONBLOCK);
  pp::metrics_file metrics(path);
  reader.reset();
  CHECK(sentence<pp::file_error>([&] { metrics.write(record(1)); }) ==
        "cannot write metrics to '" + path + "': Broken pipe");
}
