// SPDX-License-Identifier: BSL-1.0
//
// The page of a run: its data over the server, its file, and what happens when that cannot be
// written.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"

#include <pipe/pipe.hpp>
#include <pipe/report/about_run.hpp>
#include <pipe/report/json_lines.hpp>
#include <pipe/report/live_page.hpp>
#include <pipe/report/progress_line.hpp>
#include <pipe/report/rank_load.hpp>
#include <train/folder.hpp>

#include "web_client.hpp"

namespace {

using namespace std::chrono_literals;

pp::step_metrics record(long step) { return {.step = step, .loss = 2, .bubble = 0.25}; }

struct Net : pp::Model<pp::Input<8>, pp::Linear<8>, pp::Tanh, pp::Linear<4>, pp::MSE> {};
using Trainer = pp::Pipeline<Net, pp::Stages<2>, pp::MicroBatches<2>, pp::MicroBatchSize<2>>;

}  // namespace

TEST_CASE("a page is served, and its data are the steps so far") {
  pp::live_page page(
      {.title = "a <b> & \"c\"", .steps = 5, .predicted_bubble = 0.2, .serve = pp::page_address{}});
  std::string const html = get(page.url(), "/");
  CHECK(html.find("<h1 id=\"title\">a &lt;b&gt; &amp; &quot;c&quot;</h1>") != html.npos);
  CHECK(html.find("id=\"data\"") == html.npos);
  CHECK(html.find("id=\"about\"") == html.npos);
  page.show_ranks({{0.5, 100, 90}, {}});
  page.write(record(1));
  page.write(record(2));
  std::string const data = body(get(page.url(), "/data?version=-1&points=0"));
  CHECK(data.starts_with("{\"step\":2,\n\"of_steps\":5,\n\"seconds_left\":"));
  CHECK(data.find("\"ended\":false") != data.npos);
  CHECK(data.find("\"predicted_bubble\":0.2") != data.npos);
  CHECK(data.find("\"busy\":[0.5,null],\n\"planned_bytes\":[100,0],\n\"allocated_bytes\":[90,0]") !=
        data.npos);
  CHECK(data.find("\"steps\":[1,2]") != data.npos);
  CHECK(get(page.url(), "/other").starts_with("HTTP/1.1 404 "));
  for (char const* odd : {"/data?points=-7&version=x", "/data?points=99999999999999999999",
                          "/data?version=9223372036854775807&points=9223372036854775807", "/data"})
    CHECK(body(get(page.url(), odd)).find("\"first\":0,") != std::string::npos);
  page.end();
  CHECK(get(page.url(), "/data").find("\"ended\":true") != std::string::npos);
}

TEST_CASE("a page says what the run is, line by line") {
  std::string const path = "about.html";
  temporary_folder const folder;
  pp::live_page page({.about = "Net<3>: 7 & 8\n\nto the end\n", .file = folder.file(path)});
  CHECK(content(folder.file(path))
            .find("<p id=\"about\">Net&lt;3&gt;: 7 &amp; 8<br>\n<br>\nto the end</p>") !=
        std::string::npos);
}

TEST_CASE("copies show one run, which ends with the last of them") {
  std::string url;
  pp::metrics_log log;
  {
    pp::live_page const page({.serve = pp::page_address{}});
    url = page.url();
    log.add(page);
  }
  log.write(record(7));
  CHECK(get(url, "/data").find("\"step\":7") != std::string::npos);
  log = {};
  CHECK_THROWS_WITH(get(url, "/"), "no server at " + url);
}

TEST_CASE("a file holds the page with its data, and is replaced until the run ends") {
  temporary_folder const folder;
  std::string const path = folder.file("run.html");
  pp::live_page page({.steps = 3, .file = path, .every = 5ms});
  CHECK(content(path).find("\"step\":0") != std::string::npos);
  CHECK(content(path).find("http-equiv=\"refresh\" content=\"1\"") != std::string::npos);
  page.write(record(1));
  while (content(path).find("\"step\":1") == std::string::npos) std::this_thread::sleep_for(1ms);
  page.write(record(2));
  page.end();
  std::string const last = content(path);
  CHECK(last.find("\"step\":2") != last.npos);
  CHECK(last.find("\"ended\":true") != last.npos);
  CHECK(last.find("http-equiv=\"refresh\"") == last.npos);
  CHECK(folder.names().size() == 1);
}

TEST_CASE("a file that cannot be written is told at the beginning, or by a later step") {
  temporary_folder const folder;
  std::string const path = folder.file("none/run.html");
  CHECK_THROWS_WITH(pp::live_page({.file = path}),
                    "cannot write '" + path + "': No such file or directory");
  std::filesystem::create_directory(folder.file("none"));
  pp::live_page page({.file = path, .every = 1ms});
  std::filesystem::rename(folder.file("none"), folder.file("moved"));
  std::string told;
  pp::metrics_log log;
  log.add(page).report_failures([&](std::string const& what) { told += what + "\n"; });
  for (long step = 1; told.empty(); ++step) {
    log.write(record(step));
    std::this_thread::sleep_for(1ms);
  }
  for (long step = 1; step < 20; ++step) log.write(record(step));
  CHECK(told.find("'" + path + "': No such file or directory (step ") != told.npos);
  CHECK(told.find('\n') == told.size() - 1);
  CHECK_THROWS_AS(page.end(), pp::file_error);
}

TEST_CASE("a run with every way of watching") {
  temporary_folder const folder;
  std::string const csv = folder.file("run.csv"), lines = folder.file("run.jsonl"),
                    html = folder.file("run.html");
  std::vector<float> const inputs(32, 1), labels(16, 0.5f);
  Trainer trainer;
  long const steps = 5;
  std::FILE* const out = std::fopen(folder.file("out").c_str(), "w");
  std::string told;
  auto const warn = [&](std::string const& what) { told += what; };
  // [watch]
  pp::live_page page({.title = "A net",
                      .about = pp::console::about_run(trainer),
                      .steps = steps,
                      .predicted_bubble = Trainer::plan.bubble,
                      .serve = pp::page_address{},  // a free port of 127.0.0.1: see page.url()
                      .file = html});
  pp::metrics_log log;
  log.add(pp::progress_line(steps, pp::console::step_words, out))
      .add(pp::metrics_file::resumed(csv, trainer.steps()))
      .add(pp::json_lines_file::resumed(lines, trainer.steps()))
      .add(page)
      .report_failures(warn);  // a full disk does not end the training
  while (trainer.steps() < steps) {
    double const rate = trainer.learning_rate();
    pp::step_result const r = trainer.step({inputs, labels});
    page.show_ranks(pp::rank_loads(trainer, r));
    log.write({.step = trainer.steps(),
               .loss = r.loss,
               .learning_rate = rate,
               .gradient_norm = r.gradient_norm,
               .samples_per_second = Trainer::samples / r.seconds,
               .seconds = r.seconds,
               .bubble = r.bubble});
  }
  page.end();
  // [/watch]
  std::fclose(out);
  CHECK(told.empty());
  CHECK(content(html).find("\"step\":5,") != std::string::npos);
  CHECK(content(html).find("<p id=\"about\">") != std::string::npos);
  CHECK(content(html).find("Net: 108 parameters, ") != std::string::npos);
  CHECK(content(html).find(
            "<br>\n2 stages on 2 ranks, schedule 1f1b, 2 x 2 samples per step<br>\ndevice: host, " +
            trainer.runs_on() + "</p>") != std::string::npos);
  for (std::string const& path : {csv, lines, folder.file("out")})
    CHECK(content(path).find("5") != std::string::npos);
  std::string const rows = content(lines);
  CHECK(std::count(rows.begin(), rows.end(), '\n') == 5);
}

TEST_CASE("the load of ranks is that of the last run") {
  Trainer trainer;
  float const values[4 * 8] = {};
  float const labels[4 * 4] = {};
  auto const r = trainer.step({values, labels});
  auto const loads = pp::rank_loads(trainer, r);
  REQUIRE(loads.size() == 2);
  for (int rank = 0; rank < 2; ++rank) {
    pp::rank_load const& load = loads[std::size_t(rank)];
    CHECK((load.busy > 0 && load.busy <= 1));
    CHECK(load.planned_bytes == Trainer::plan.rank_bytes[rank]);
    CHECK(load.allocated_bytes == load.planned_bytes);
  }
  pp::step_result without = r;
  without.bubble = NAN;  // as on a GPU without a timeline
  CHECK(std::isnan(pp::rank_loads(trainer, without)[0].busy));
}
