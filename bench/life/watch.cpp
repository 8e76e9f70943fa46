// SPDX-License-Identifier: BSL-1.0
//
// What watching a run costs in each step. See bench/life.py.
//
//     life_watch FOLDER      prints: figure NAME VALUE
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <pipe/metrics/tensorboard.hpp>
#include <pipe/pipe.hpp>
#include <pipe/report/json_lines.hpp>
#include <pipe/report/live_page.hpp>
#include <pipe/report/progress_line.hpp>

#include "../peer/turns.hpp"

using namespace pp;

namespace {

/// Two stages; a step takes a few milliseconds.
struct Net : Model<Input<256>, Repeat<4, Seq<Linear<256>, Tanh>>, MSE> {};
using Trainer = Pipeline<Net, Stages<2>, ByCount, MicroBatches<8>, MicroBatchSize<64>, AdamW, Host>;

/// A reader that asks for the page's data once a second, as a browser does.
class reader {
 public:
  explicit reader(int port) : thread_([this, port] { read(port); }) {}
  ~reader() {
    ends_ = true;
    thread_.join();
  }

 private:
  void read(int port) const {
    std::string reason;
    using namespace std::chrono_literals;
    auto const to = detail::tcp_address::of("127.0.0.1", port, detail::time_limit(1s), reason);
    std::string version = "-1";
    long points = 0;
    for (int tenths = 0; !ends_; ++tenths) {
      std::this_thread::sleep_for(100ms);
      if (tenths % 10 != 0) continue;
      auto const socket = detail::tcp_socket::connect_to(to[0], detail::time_limit(1s));
      std::string const request = "GET /data?version=" + version +
                                  "&points=" + std::to_string(points) +
                                  " HTTP/1.1\r\nHost: localhost\r\n\r\n";
      long sent = 0;
      socket.write(request.data(), long(request.size()), sent);
      std::string answer;
      char some[4096];
      for (long got = 0; socket.waits(POLLIN, 1000); got = 0) {
        if (socket.read(some, long(sizeof some), got) != detail::moved::some) break;
        answer.append(some, std::size_t(got));
      }
      auto const after = [&](char const* name) { return answer.find(name) + std::strlen(name); };
      std::size_t const at = after("\"version\":"), steps = after("\"steps\":[");
      version = answer.substr(at, answer.find(',', at) - at);
      points = std::atol(answer.c_str() + after("\"first\":")) + 1 +
               std::count(answer.begin() + long(steps),
                          answer.begin() + long(answer.find(']', steps)), ',');
    }
  }

  std::atomic<bool> ends_{false};
  std::thread thread_;
};

/// A step with every way of watching, over one without.
void watch(std::string const& folder) {
  Trainer trainer;
  std::vector<float> const inputs(std::size_t(Trainer::samples * Trainer::inputs_per_sample), 0.5f),
      labels(std::size_t(Trainer::samples * Trainer::labels_per_sample), 0.25f);
  long step = 0;
  auto const plain = [&] { return ++step, trainer.step({inputs, labels}); };
  live_page page({.steps = 1'000'000,
                  .predicted_bubble = Trainer::plan.bubble,
                  .serve = page_address{},
                  .file = folder + "/run.html"});
  metrics_log log;
  log.add(metrics_file(folder + "/metrics.csv", {"own"}))
      .add(json_lines_file(folder + "/metrics.jsonl"))
      .add(tensorboard_file(folder))
      .add(page);
  std::FILE* const out = std::fopen((folder + "/out").c_str(), "w");
  if (out == nullptr) return std::perror("life"), std::exit(1);
  log.add(progress_line(1'000'000, console::step_words, out));
  auto const watched = [&] {
    step_result const r = plain();
    page.show_ranks(rank_loads(trainer, r));
    log.write({.step = step,
               .loss = r.loss,
               .learning_rate = 1e-3,
               .gradient_norm = r.gradient_norm,
               .samples_per_second = Trainer::samples / r.seconds,
               .seconds = r.seconds,
               .bubble = r.bubble,
               .scalars = {{"own", 1}}});
  };
  reader const browser(std::atoi(page.url().c_str() + page.url().rfind(':') + 1));
  bench::turns const t({watched, [&] { plain(); }}, 1000);
  std::printf("figure plain_step_ms %.4g\nfigure watch_cost %.4g\n", t.median(1) * 1e3,
              t.ratio(0, 1));
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 2) return watch(arguments[1]), 0;
  return std::fputs("life_watch FOLDER\n", stderr), 2;
}
