// SPDX-License-Identifier: BSL-1.0
//
// The law over every allocation of every call that keeps a state: it fails once, and then the call
// throws and everything is as before, or it has done what it says. It never ends the program, and
// the same call afterwards succeeds. Allocations are those of all threads, and of the C library.
#include "catch.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include <pipe/checkpoint/checkpoints.hpp>
#include <pipe/checkpoint/newest_checkpoint.hpp>
#include <pipe/checkpoint/optimizer_state.hpp>
#include <pipe/checkpoint/step_log.hpp>
#include <pipe/metrics/metrics.hpp>
#include <pipe/metrics/tensorboard.hpp>
#include <pipe/report/json_lines.hpp>
#include <pipe/report/live_page.hpp>
#include <pipe/report/progress_line.hpp>
#include <pipe/train/batches_ahead.hpp>
#include <pipe/weights/copy_weights.hpp>
#include <pipe/weights/weights.hpp>

#include "laws/data.hpp"
#include "runtime/allocation.hpp"
#include "train/folder.hpp"

#if PIPE_TESTS_COUNT_ALLOCATIONS

using namespace pp;

/// That bytes are on disk is not what is tested, and takes the time of thousands of files.
extern "C" int fsync(int) { return 0; }

namespace {

// Small, as each of its states takes some allocations, and each of these is a run of the test.
struct Net : Model<Input<1>, Linear<1>, MSE> {};
struct Deep : Model<Input<3>, Linear<4>, Tanh, Linear<2>, MSE> {};
using Trained = Pipeline<Net, PortableHost, SGD, MicroBatches<2>, MicroBatchSize<2>>;
using Overlapping = Pipeline<Deep, PortableHost, AdamW, MicroBatches<3>, MicroBatchSize<2>,
                             Stages<2>, Steady<ZeroBubbleH2>>;

/// What a call did in which an allocation failed.
enum class outcome { threw, succeeded, had_enough };

/// Calls with allocation `n` failing, those of other threads included.
outcome starve(long n, std::function<void()> const& call) {
  bool threw = false, failed = false;
  std::string why;
  long const before = allocations();
  auto const has_ended = [&] {
    fail_allocations(-1, 0);
    failed = allocations() - before > n;
  };
  auto const caught = [&](std::exception const& e) {
    has_ended();
    threw = true;
    why = e.what();
  };
  fail_allocations(n, 1);
  try {
    call();
    has_ended();
  } catch (std::bad_alloc const& e) {
    caught(e);
  } catch (error const& e) {
    caught(e);
  } catch (std::system_error const& e) {  // there is no thread
    caught(e);
  }
  if (threw && !failed) FAIL("allocation " << n << " did not fail, and the call threw: " << why);
  return threw ? outcome::threw : failed ? outcome::succeeded : outcome::had_enough;
}

/// Calls again and again, another allocation failing each time: then(outcome). Returns the number
/// of allocations.
long every_allocation(std::function<void()> const& call, std::function<void(outcome)> const& then) {
  for (long n = 0;; ++n) {
    INFO("allocation " << n);
    outcome const was = starve(n, call);
    then(was);
    if (was == outcome::had_enough) return n;
  }
}

template <class Trainer>
struct state {
  long steps = 0;
  int accumulated = 0;
  std::vector<float> values;
  explicit state(Trainer& t)
      : steps(t.steps()), accumulated(t.accumulated()), values(laws::snapshot(t).values) {}
  bool operator==(state const& other) const {
    return steps == other.steps && accumulated == other.accumulated &&
           laws::same_numbers(values, other.values);
  }
};
/// The bytes of a trainer's checkpoint: all of its states.
template <class Trainer>
std::string all_of(Trainer& t, temporary_folder const& folder) {
  t.save(folder.file("all"));
  std::string const bytes = content(folder.file("all"));
  std::filesystem::remove(folder.file("all"));
  return bytes;
}

template <class Trainer>
std::unique_ptr<Trainer> trained(long steps) {
  auto t = std::make_unique<Trainer>(typename Trainer::settings{.seed = 3});
  laws::sample_batch<Trainer> const data(1);
  for (long i = 0; i < steps; ++i) t->step(data.view());
  return t;
}

/// No allocation that fails in a call changes a trainer, and afterwards it has the bits of one that
/// made the call once.
template <class Trainer>
void no_failure_changes(std::function<void(Trainer&)> const& call) {
  temporary_folder const folder;
  auto const plain = trained<Trainer>(1), troubled = trained<Trainer>(1);
  state<Trainer> const before(*troubled);
  std::string const all = all_of(*troubled, folder);
  every_allocation([&] { call(*troubled); },
                   [&](outcome was) {
                     if (was == outcome::threw) {
                       CHECK(state(*troubled) == before);
                     } else if (was == outcome::succeeded) {  // and so did it without memory
                       call(*plain);
                       CHECK((all_of(*plain, folder) == all_of(*troubled, folder)));
                       plain->load(folder.write("before", all));
                       troubled->load(folder.file("before"));
                     }
                   });
  call(*plain);
  CHECK((all_of(*plain, folder) == all_of(*troubled, folder)));
}

}  // namespace

TEST_CASE("no allocation that fails in a trainer's calls changes it", "[runtime]") {
  laws::sample_batch<Trained> const data(2);
  temporary_folder const folder;
  no_failure_changes<Trained>([&](Trained& t) { t.step(data.view()); });
  no_failure_changes<Trained>([&](Trained& t) { t.accumulate(data.view()); });
  no_failure_changes<Trained>([&](Trained& t) { t.evaluate(data.view()); });
  no_failure_changes<Trained>([&](Trained& t) { t.parameters(); });
  laws::sample_batch<Overlapping> const more(2);
  no_failure_changes<Overlapping>(
      [&](Overlapping& t) { t.train(std::vector(3, more.view()), [](step_result const&) {}); });
}

TEST_CASE("no allocation that fails in saving harms a file", "[runtime]") {
  temporary_folder const folder;
  auto const t = trained<Trained>(2);
  auto const saves = [&](std::string const& name,
                         std::function<void(std::string const&)> const& save) {
    INFO(name);
    std::string const path = folder.write(name, "what was there");
    std::string const as_saved = [&] {
      save(folder.file("good"));
      std::string const bytes = content(folder.file("good"));
      std::filesystem::remove(folder.file("good"));
      return bytes;
    }();
    std::set<std::string> const names = folder.names();
    long const n = every_allocation(
        [&] { save(path); },
        [&](outcome was) {
          CHECK((content(path) == (was == outcome::threw ? "what was there" : as_saved)));
          CHECK(folder.names() == names);
          folder.write(name, "what was there");
        });
    CHECK(n > 10);
  };
  saves("checkpoint", [&](std::string const& path) { t->save(path, "here"); });
  saves("weights", [&](std::string const& path) { save_weights(*t, path); });
  saves("optimizer", [&](std::string const& path) { save_optimizer_state(*t, path); });
}

TEST_CASE("no allocation that fails in loading changes a trainer", "[runtime]") {
  temporary_folder const folder;
  auto const other = trained<Trained>(3);
  other->save(folder.file("checkpoint"));
  save_weights(*other, folder.file("weights"));
  save_optimizer_state(*other, folder.file("optimizer"));
  no_failure_changes<Trained>([&](Trained& t) { t.load(folder.file("checkpoint")); });
  no_failure_changes<Trained>([&](Trained& t) { load_weights(t, folder.file("weights")); });
  no_failure_changes<Trained>(
      [&](Trained& t) { load_optimizer_state(t, folder.file("optimizer")); });
  no_failure_changes<Trained>([&](Trained& t) { copy_weights(*other, t); });
}

TEST_CASE("no allocation that fails loses a checkpoint", "[runtime]") {
  bool const asynchronous = GENERATE(true, false);
  temporary_folder const folder;
  auto const t = trained<Trained>(1), next = trained<Trained>(2);
  std::string const first = all_of(*t, folder), second = all_of(*next, folder),
                    run = folder.file("run");
  for (long n = 0, done = 0; done == 0; ++n) {
    INFO("allocation " << n << (asynchronous ? ", in a thread" : ""));
    std::filesystem::remove_all(run);
    t->load(folder.write("first", first));
    std::vector<std::string> warnings;
    checkpoints<Trained> saved(run, {.every_steps = 1,
                                     .keep_last = 1,
                                     .asynchronous = asynchronous,
                                     .warn = [&](std::string const& w) { warnings.push_back(w); }});
    laws::sample_batch<Trained> const data(1);
    saved.resume(*t);
    saved.after_step(*t, "", 0.5);
    saved.finish(*t, "");
    t->step(data.view());
    outcome const was = starve(n, [&] {
      saved.after_step(*t, "", 0.25);
      saved.finish(*t, "");
    });
    done = was == outcome::had_enough;
    CHECK((all_of(*t, folder) == second));
    auto const is_whole = [&](long step) {
      return content(run + "/step-" + std::to_string(step) + ".safetensors") ==
             (step == 1 ? first : second);
    };
    auto const names = [&] {
      std::set<std::string> all;
      for (auto const& entry : std::filesystem::directory_iterator(run))
        all.insert(entry.path().filename().string());
      return all;
    };
    // What could not be saved has harmed nothing; what was saved is there.
    CHECK((is_whole(2) || (was == outcome::threw && is_whole(1))));
    for (std::string const& name : names())
      CHECK((name == "lock" || name == "latest" || name.ends_with(".safetensors")));
    // The same object goes on.
    saved.finish(*t, "");
    CHECK(is_whole(2));
    t->step(data.view());
    saved.after_step(*t, "", 0.125);
    saved.finish(*t, "");
    CHECK(names() == std::set<std::string>{"latest", "lock", "step-3.safetensors"});
    CHECK(content(run + "/latest").starts_with("step-3.safetensors 0.125\nstep-2"));
    // Without a word only if nothing was to be told.
    if (was == outcome::had_enough) CHECK(warnings.empty());
  }
}

TEST_CASE("no allocation that fails makes a run resume elsewhere", "[runtime]") {
  temporary_folder const folder;
  std::string const run = folder.file("run");
  auto const ran = trained<Trained>(0);
  laws::sample_batch<Trained> const data(1);
  {
    checkpoints<Trained> saved(run, {.every_steps = 1, .keep_last = 3});
    saved.resume(*ran);
    for (long step = 1; step <= 3; ++step) {
      ran->step(data.view());
      saved.after_step(*ran, step, 1.0 / double(step));
      saved.finish(*ran, step);
    }
  }
  bool const is_damaged = GENERATE(false, true), is_listed = !is_damaged;
  std::string const newest = content(run + "/step-3.safetensors");
  if (is_damaged) folder.write("run/step-3.safetensors", newest.substr(0, newest.size() - 1));
  if (!is_listed) folder.write("run/latest", "");
  long const expected = is_damaged ? 2 : 3;
  auto const t = trained<Trained>(1);
  state<Trained> const before(*t);
  std::string const first = all_of(*t, folder);
  for (long n = 0, done = 0; done == 0; ++n) {
    INFO("allocation " << n);
    std::vector<std::string> warnings;
    checkpoints<Trained> saved(
        run, {.keep_last = 3, .warn = [&](std::string const& w) { warnings.push_back(w); }});
    resumed_checkpoint found;
    outcome const was = starve(n, [&] { found = saved.resume(*t); });
    done = was == outcome::had_enough;
    if (was == outcome::threw) {
      CHECK(state(*t) == before);
      CHECK((all_of(*t, folder) == first));
      found = saved.resume(*t);  // the same object can try again
    }
    CHECK(found.steps == expected);
    CHECK(t->steps() == expected);
    CHECK(found.position.number() == expected);
    CHECK(found.path == run + "/step-" + std::to_string(expected) + ".safetensors");
    CHECK(found.skipped.size() == (is_damaged ? 1 : 0));
    saved.finish(*t, expected);  // has nothing to save, and tells what is left
    CHECK(std::count_if(warnings.begin(), warnings.end(), [](std::string const& w) {
            return w.find("step-3") != w.npos;
          }) == (is_damaged ? 1 : 0));
    if (!is_listed) folder.write("run/latest", "");
    t->load(folder.write("first", first));
  }
  for (long n = 0, done = 0; done == 0; ++n) {
    found_checkpoint found;
    outcome const was = starve(n, [&] { found = newest_checkpoint(run); });
    if (was != outcome::threw) CHECK(found.steps == expected);
    done = was == outcome::had_enough;
  }
}

TEST_CASE("no allocation that fails leaves half a record of metrics", "[runtime]") {
  temporary_folder const folder;
  step_metrics const m{.step = 7, .loss = 1.5, .scalars = {{"a name that is long enough", 2.5}}};
  auto const t = trained<Trained>(1);
  laws::sample_batch<Trained> const data(1);
  step_result const last = t->step(data.view());
  std::filesystem::create_directory(folder.file("runs"));
  auto const start = files::record_file::start::replace;
  for (long n = 0, done = 0; done == 0; ++n) {
    INFO("allocation " << n);
    metrics_log log;
    log.add(metrics_file(folder.file("m.csv"), {"a name that is long enough"}, start))
        .add(json_lines_file(folder.file("m.jsonl"), start));
    step_log steps(folder.file("s.csv"), *t, 1);
    std::string const heading[] = {content(folder.file("m.csv")), content(folder.file("s.csv"))};
    outcome const was = starve(n, [&] {
      log.write(m);
      steps.record(*t, last);
    });
    done = was == outcome::had_enough;
    auto const is_whole = [&](char const* name, std::string const& before) {
      std::string const all = content(folder.file(name)), text = all.substr(before.size());
      CHECK(all.starts_with(before));
      return text.empty() ? 0 : std::count(text.begin(), text.end(), '\n') == 1 ? 1 : -1;
    };
    int const written[] = {is_whole("m.csv", heading[0]), is_whole("m.jsonl", ""),
                           is_whole("s.csv", heading[1])};
    for (int const w : written) CHECK((w == 1 || (w == 0 && was == outcome::threw)));
    std::filesystem::remove(folder.file("s.csv"));
  }
  // Opening files, to add to them and to go on with them.
  auto const open = [&] {
    metrics_file::resumed(folder.file("m.csv"), 7, {"a name that is long enough"});
    json_lines_file::resumed(folder.file("m.jsonl"), 7);
    tensorboard_file board(folder.file("runs"));
    board.write(m);
  };
  std::string const csv = content(folder.file("m.csv"));
  every_allocation(open, [&](outcome) { CHECK((content(folder.file("m.csv")) == csv)); });
}

TEST_CASE("no allocation that fails ends a run that is shown as a page", "[runtime]") {
  temporary_folder const folder;
  std::string const path = folder.file("page.html");
  step_metrics const m{.step = 7, .loss = 1.5, .scalars = {{"a name that is long enough", 2.5}}};
  for (bool const serves : {false, true}) {
    live_page_settings settings{.title = "A title that is long enough", .file = path};
    if (serves) settings.serve = page_address{.port = 0};
    every_allocation(
        [&] {
          live_page page(settings);
          page.show_ranks({{.busy = 0.5}, {.busy = 0.25}});
          page.write(m);
          page.end();
        },
        [&](outcome was) {
          if (was == outcome::threw) return;
          // Not only the page before the first record.
          CHECK((content(path).find("\"step\":7") != std::string::npos));
        });
  }
  // A record that had no memory while it was written, and has none again when the run ends.
  bool waited = false;
  for (long in_write = 0, done = 0; done == 0; ++in_write) {
    INFO("allocation " << in_write << " of the record");
    for (long in_end = 0;; ++in_end) {
      INFO("allocation " << in_end << " of the end");
      live_page page({.file = path});
      outcome const record = starve(in_write, [&] { page.write(m); });
      done = record == outcome::had_enough;
      if (record == outcome::threw) break;
      outcome const end = starve(in_end, [&] { page.end(); });
      if (end == outcome::threw) page.end();
      waited = waited || (record == outcome::succeeded && end == outcome::threw);
      CHECK((content(path).find("\"step\":7") != std::string::npos));
      if (end == outcome::had_enough) break;
    }
  }
  CHECK(waited);
  // The thread that writes the file may fail at any time, and goes on. A later call throws its
  // failure, so no call is asked whether it threw for an allocation of its own.
  live_page page({.file = path, .every = std::chrono::milliseconds(1)});
  for (long n = 0; n < 300; ++n) {
    fail_allocations(n % 150, 1);
    try {
      page.write(m);
    } catch (std::bad_alloc const&) {
    } catch (error const&) {
    }
  }
  fail_allocations(-1, 0);
  page.end();
  CHECK((content(path).find("\"step\":7") != std::string::npos));
}

TEST_CASE("no allocation that fails loses a mini-batch that is made ahead", "[runtime]") {
  long made = 0;
  every_allocation(
      [&] {
        batches_ahead<Trained> ahead(
            [](owned_batch<Trained>& b, long place) {
              for (float& x : b.inputs) x = float(place);
              return place < 20;
            },
            {.depth = 2});
        made = 0;
        for (auto const& batch : ahead) made += long(batch.inputs[0]) == 4 * made ? 1 : 100;
      },
      [&](outcome was) {
        if (was != outcome::threw) CHECK(made == 5);
      });
}

#endif
