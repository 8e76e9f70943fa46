// SPDX-License-Identifier: BSL-1.0
//
// A page that shows a run while it trains: loss, rate, norm, throughput, predicted and measured
// bubble, the load of ranks, and the time left. Served to a browser, written to a file that
// replaces itself, or both:
//
//     pp::live_page page({.title = "GPT",
//                         .about = pp::console::about_run(trainer),  // report/about_run.hpp
//                         .steps = 3000,
//                         .serve = pp::page_address{.port = 8080}});
//     log.add(page);                                  // once
//     page.show_ranks(pp::rank_loads(trainer, r));    // after a step
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <fstream>
#include <limits>
#include <locale>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <unistd.h>

#include <pipe/io/save_somewhere.hpp>
#include <pipe/metrics/metrics.hpp>
#include <pipe/report/background_thread.hpp>
#include <pipe/report/escape.hpp>
#include <pipe/report/json.hpp>
#include <pipe/report/live_page_text.hpp>
#include <pipe/report/pace.hpp>
#include <pipe/report/page_server.hpp>
#include <pipe/report/rank_load.hpp>
#include <pipe/report/run_history.hpp>
#include <pipe/report/write_file.hpp>

namespace pp {

/// Settings of a page.
struct live_page_settings {
  std::string title = "Training";
  std::string about{};  ///< lines below the title, such as console::about_run(trainer)
  long steps = 0;       ///< of the whole run, for the time left; 0: not known
  /// Trainer::plan().bubble; NaN: none is shown
  double predicted_bubble = std::numeric_limits<double>::quiet_NaN();
  std::optional<page_address> serve{};      ///< none: no server
  std::string file{};                       ///< empty: no file
  std::chrono::milliseconds every{10'000};  ///< between two states of the file
};

namespace detail {

/// Bytes of this process in memory; 0 if the system does not say.
inline long resident_bytes() {
  long all = 0, resident = 0;
  std::ifstream numbers("/proc/self/statm");
  numbers.imbue(std::locale::classic());  // a locale may take the space as part of a number
  numbers >> all >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

/// What a page shows. A copy is a consistent state.
struct live_state {
  run_history history;
  std::vector<rank_load> ranks;
  long step = 0;
  double seconds_left = -1;
  run_pace::clock::time_point last = run_pace::clock::now();
  bool ended = false;

  /// JSON for a reader of the history: see run_history::json_since. Its other members:
  ///
  ///     step, of_steps       of the last record; of the whole run, 0 if not known
  ///     seconds_left         null if not known
  ///     quiet_seconds        since the last record
  ///     ended                no more records follow
  ///     predicted_bubble     null if there is no prediction
  ///     resident_bytes       of the process, now; 0 if not known
  ///     busy, planned_bytes, allocated_bytes    by rank: see rank_load; a busy time may be null
  std::string json(live_page_settings const& s, long version, std::size_t points) const {
    auto const of_ranks = [&](auto value) {
      return json_array(ranks.size(), [&](std::size_t r) { return value(ranks[r]); });
    };
    double const quiet = std::chrono::duration<double>(run_pace::clock::now() - last).count();
    std::string text = json_object(
        {{"step", std::to_string(step)},
         {"of_steps", std::to_string(s.steps)},
         {"seconds_left", seconds_left < 0 ? "null" : json_real(seconds_left)},
         {"quiet_seconds", json_real(quiet)},
         {"ended", ended ? "true" : "false"},
         {"predicted_bubble", json_real(s.predicted_bubble)},
         {"resident_bytes", std::to_string(resident_bytes())},
         {"busy", of_ranks([](rank_load const& r) { return json_real(r.busy); })},
         {"planned_bytes",
          of_ranks([](rank_load const& r) { return std::to_string(r.planned_bytes); })},
         {"allocated_bytes",
          of_ranks([](rank_load const& r) { return std::to_string(r.allocated_bytes); })}});
    text.pop_back();
    return text + ",\n" + history.json_since(version, points) + "}";
  }
};

/// Lines of text as HTML.
inline std::string lines_as_html(std::string_view text) {
  std::string all;
  while (text.ends_with('\n')) text.remove_suffix(1);
  for (std::size_t end = 0; end != text.npos; text.remove_prefix(end == text.npos ? 0 : end + 1)) {
    end = text.find('\n');
    all += (all.empty() ? "" : "<br>\n") + xml_escaped(text.substr(0, end));
  }
  return all;
}

/// The page, which asks the server for data, or has it and asks for nothing.
///
/// refresh: seconds after which a browser loads the page again; 0: never
inline std::string live_page_html(live_page_settings const& s, std::string const& data,
                                  long refresh) {
  std::string const safe = xml_escaped(s.title);
  std::string text =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src "
      "data:\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n";
  if (refresh > 0)
    text += "<meta http-equiv=\"refresh\" content=\"" + std::to_string(refresh) + "\">\n";
  text += "<title>" + safe + "</title>\n<style>" + live_page_style +
          "</style>\n</head>\n<body>\n<h1 id=\"title\">" + safe + "</h1>";
  if (!s.about.empty()) text += "\n<p id=\"about\">" + lines_as_html(s.about) + "</p>";
  text += live_page_body;
  if (!data.empty())
    text += "<script type=\"application/json\" id=\"data\">" + data + "</script>\n";
  return text + "<script>" + live_page_script + "</script>\n</body>\n</html>\n";
}

/// A run that is shown. The thread that trains calls write, show_ranks and end; readers call
/// state(). A reader that is interrupted while it copies the state delays no step: new records stay
/// with the thread that trains until its next call.
class live_run {
 public:
  explicit live_run(live_page_settings s) : settings_(std::move(s)), pace_(settings_.steps) {
    if (!settings_.file.empty()) write_page();  // throws now if the file cannot be written
    if (settings_.serve)
      server_.emplace(*settings_.serve, [this](std::string_view target) { return answer(target); });
    if (!settings_.file.empty()) writer_.emplace(&rewrite, this);
  }
  live_run(live_run const&) = delete;
  live_run& operator=(live_run const&) = delete;
  ~live_run() {
    try {
      end();
    } catch (std::exception const&) {
      // The file keeps its last state. A program that calls end() is told of the failure.
    }
  }

  std::string url() const { return server_ ? server_->url() : ""; }

  /// cost:   some tenths of a microsecond
  /// throws: file_error, once for each failure of the thread that writes the file; std::bad_alloc
  ///         before the record is taken
  void write(step_metrics const& m) {
    news_.push_back(m);
    auto const now = run_pace::clock::now();
    pace_.add(m.step, now);
    last_ = now;
    hand_over(false);
    throw_failure();
  }

  /// Ranks' times are means over about ten steps, as a single step says little.
  void show_ranks(std::vector<rank_load> const& now) {
    ranks_.resize(now.size());
    for (std::size_t r = 0; r < now.size(); ++r) {
      double const before = ranks_[r].busy;
      ranks_[r] = now[r];
      if (libm::isfinite(before) && libm::isfinite(now[r].busy))
        ranks_[r].busy = before + (now[r].busy - before) / 10;
    }
  }

  /// Shows the records that are left, and writes the file for the last time. Later calls do
  /// nothing, unless a call threw.
  ///
  /// throws: file_error if the file cannot be written; std::bad_alloc
  void end() {
    if (has_ended_) return;
    hand_over(true);
    if (writer_) {
      wake_.notify_one();
      writer_.reset();
    }
    if (!settings_.file.empty()) write_page();
    has_ended_ = true;
  }

 private:
  // Records that may wait for a reader: more than a reader can need, even if it is stopped.
  static constexpr std::size_t most_news = 4096;

  /// Gives readers the new records, unless a reader is copying at the moment and there is room for
  /// more records. Records for which there is no memory wait for the next call.
  ///
  /// throws: std::bad_alloc if no call follows
  void hand_over(bool ends) {
    std::unique_lock lock(mutex_, std::defer_lock);
    if (ends || news_.size() >= most_news)
      lock.lock();
    else if (!lock.try_lock())
      return;
    state_.seconds_left = pace_.seconds_left();
    state_.last = last_;
    std::size_t taken = 0;
    bool has_all = false;
    try {
      for (; taken < news_.size(); ++taken) {
        state_.history.add(news_[taken]);
        state_.step = news_[taken].step;
      }
      state_.ranks = ranks_;
      has_all = true;
    } catch (std::bad_alloc const&) {
    }
    news_.erase(news_.begin(), news_.begin() + std::ptrdiff_t(taken));
    if (ends && !has_all) throw std::bad_alloc();
    state_.ended = ends;
  }
  /// Throws the failure of the thread that writes the file. Without memory for that, or while a
  /// reader copies, the next call throws it.
  void throw_failure() {
    std::optional<file_error> told;
    if (std::unique_lock const lock(mutex_, std::try_to_lock); lock && failure_) try {
        told.emplace(sentence_of(failure_, settings_.file));
        failure_ = nullptr;
      } catch (std::bad_alloc const&) {
      }
    if (told) throw *told;
  }

  live_state state() {
    std::lock_guard const lock(mutex_);
    return state_;
  }

  /// The page at "/", its data at "/data?version=V&points=N": see run_history::json_since. A reader
  /// whose numbers are malformed or out of range gets all data.
  page_answer answer(std::string_view target) {
    std::string_view const path = target.substr(0, target.find('?'));
    auto const number = [&](std::string_view name) {
      std::size_t const at = target.find(name);
      long value = -1;
      if (at != target.npos)
        std::from_chars(target.data() + at + name.size(), target.data() + target.size(), value);
      return value;
    };
    if (path == "/") return {live_page_html(settings_, "", 0)};
    if (path != "/data") return {"", "text/plain; charset=utf-8", 404};
    long const points = number("points=");
    return {state().json(settings_, number("version="), std::size_t(points < 0 ? 0 : points)),
            "application/json"};
  }

  /// Replaces the file by the present state.
  ///
  /// throws: file_error
  void write_page() {
    live_state const now = state();
    long const seconds = std::chrono::ceil<std::chrono::seconds>(settings_.every).count();
    pp::files::write_file(settings_.file, live_page_html(settings_, now.json(settings_, -1, 0),
                                                         now.ended ? 0 : std::max(1L, seconds)));
  }
  /// The thread that writes the file, until the run has ended. The next write() throws a failure,
  /// and the file is tried again after the usual time.
  static void rewrite(void* self) {
    auto& run = *static_cast<live_run*>(self);
    std::unique_lock lock(run.mutex_);
    while (!run.state_.ended) {
      run.wake_.wait_for(lock, run.settings_.every);
      if (run.state_.ended) return;
      lock.unlock();
      std::exception_ptr failure;
      try {
        run.write_page();
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      if (failure) run.failure_ = failure;
    }
  }

  live_page_settings const settings_;
  // Of the thread that trains.
  run_pace pace_;
  std::vector<step_metrics> news_;
  std::vector<rank_load> ranks_;
  run_pace::clock::time_point last_ = run_pace::clock::now();
  bool has_ended_ = false;
  // Of all.
  std::mutex mutex_;
  live_state state_;
  std::exception_ptr failure_;  // to write the file
  std::condition_variable wake_;
  // Last: their threads use the members above.
  std::optional<page_server> server_;
  std::optional<background_thread> writer_;
};

}  // namespace detail

/// A metrics sink that shows the run as a page. Copies show the same run; the page ends with the
/// last copy.
///
/// law: no reader of the page delays a step or has an effect on it; memory does not grow with the
///      number of steps
class live_page {
 public:
  /// throws: pp::error if the address cannot be served; file_error if the file cannot be written
  explicit live_page(live_page_settings settings = {})
      : run_(std::make_shared<detail::live_run>(std::move(settings))) {}

  /// The address to open, "http://127.0.0.1:8080/"; empty if the page is not served.
  std::string url() const { return run_->url(); }

  /// Shows a step.
  ///
  /// throws: file_error if the file could not be rewritten since the last call
  void write(step_metrics const& m) { run_->write(m); }
  /// Shows the load of ranks, from the next write() on. See rank_loads.
  void show_ranks(std::vector<rank_load> const& loads) { run_->show_ranks(loads); }
  /// Says that no more steps follow, and writes the file for the last time. May be called again
  /// after it has thrown.
  ///
  /// throws: file_error; std::bad_alloc
  void end() { run_->end(); }

 private:
  std::shared_ptr<detail::live_run> run_;
};

}  // namespace pp
