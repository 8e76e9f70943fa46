// SPDX-License-Identifier: BSL-1.0
//
// Checkpoints in a folder: a run that is killed at any time and started again trains the same bits,
// whatever has happened to the newest file; and what cannot be written is a warning.
#include "catch.hpp"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pipe/base/thread.hpp>
#include <pipe/checkpoint/checkpoints.hpp>
#include <pipe/io/temporary_file.hpp>
#include <pipe/metrics/metrics.hpp>
#include <pipe/train/batches.hpp>
#include <pipe/weights/weights.hpp>

#include "laws/data.hpp"
#include "laws/resume_law.hpp"
#include "train/folder.hpp"
#include "train/system_calls.hpp"

using namespace pp;
namespace fs = std::filesystem;
using name_set = std::set<std::string>;

namespace {

struct Small : Model<Input<3>, Linear<7>, Tanh, Dropout<1, 5>, LayerNorm, Linear<2>, MSE> {};
struct Other : Model<Input<3>, Linear<6>, Tanh, Linear<2>, MSE> {};
template <class M, class... More>
using Of =
    Pipeline<M, PortableHost, AdamW, Averaging<9, 10>, MicroBatches<2>, MicroBatchSize<2>, More...>;
using Trainer = Of<Small, Stages<2>>;
using saving = checkpoints<Trainer>;

/// A data set of three mini-batches.
struct samples {
  std::vector<float> inputs = std::vector<float>(3 * 12), targets = std::vector<float>(2 * 12);
  samples() {
    std::mt19937 random(5);
    for (float& x : inputs) x = float(random() % 1000) / 500 - 1;
    for (float& x : targets) x = float(random() % 1000) / 500 - 1;
  }
};

/// Trains until `last` mini-batches are done, from where an earlier call has ended. Returns the
/// path of the last checkpoint.
std::string train(std::string const& folder, long last, saving::settings const& settings) {
  samples const all;
  Trainer::batch const data{all.inputs, all.targets};
  // [folder]
  Trainer trainer({.seed = 1});
  checkpoints<Trainer> saved(folder, settings);
  long done = saved.resume(trainer).position.number();  // mini-batches
  while (done < last) {
    batches<Trainer> epoch(data, {.shuffle = true, .seed = 1, .position = done});
    for (auto const& batch : epoch) {
      double const loss = trainer.step(batch).loss;
      done = epoch.position();
      saved.after_step(trainer, done, loss);
      if (done == last) break;
    }
  }
  return saved.finish(trainer, done);
  // [/folder]
}
/// The last checkpoint of an undisturbed run.
std::string undisturbed(long last) {
  temporary_folder const folder;
  return content(train(folder.file("run"), last, {}));
}

/// The warnings that a run gives.
struct warnings {
  std::vector<std::string> all;
  saving::settings taken_by(saving::settings s) {
    s.warn = [this](std::string_view text) { all.emplace_back(text); };
    return s;
  }
  bool has(std::string const& part) const {
    for (std::string const& w : all)
      if (w.find(part) != w.npos) return true;
    return false;
  }
};
constexpr long none = -1;
/// Steps of a trainer, each followed by after_step with a loss.
void steps(Trainer& trainer, saving& saved, std::vector<double> const& losses) {
  for (double const loss : losses) {
    trainer.step(laws::sample_batch<Trainer>(std::uint64_t(trainer.steps())).view());
    saved.after_step(trainer, trainer.steps(), loss);
  }
}
/// The names of checkpoints.
name_set of_steps(std::vector<long> const& steps) {
  name_set all{"latest", "lock"};
  for (long const step : steps) all.insert("step-" + std::to_string(step) + ".safetensors");
  return all;
}
name_set in(std::string const& folder) {
  name_set all;
  for (auto const& entry : fs::directory_iterator(folder))
    all.insert(entry.path().filename().string());
  return all;
}

/// A number from the environment.
long number(char const* name, long otherwise) {
  char const* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::atol(text);
}
constexpr long fuzzed_steps = 20'000;

}  // namespace

// Started by the test below.
TEST_CASE("a program that is killed", "[.]") {
  char const* const folder = std::getenv("PIPE_KILLED_RUN");
  REQUIRE(folder != nullptr);
  long after = number("PIPE_KILLED_AFTER", none);
  detail::thread killer(
      [](void* microseconds, int) {
        if (long const n = *static_cast<long*>(microseconds); n != none) {
          detail::sleep_for(1000 * n);
          ::kill(::getpid(), SIGKILL);
        }
      },
      &after, 0);
  train(folder, fuzzed_steps, {.every_steps = 2, .keep_last = 3, .keep_best = 2});
  killer.join();
}
TEST_CASE("a run that is killed again and again trains the same bits") {
  temporary_folder const folder;
  std::string const run = folder.file("run");
  std::mt19937 random(std::uint32_t(number("PIPE_KILL_SEED", 1)));
  auto const start = [&](long after) {
    pid_t const child = fork();
    if (child == 0) {
      ::setenv("PIPE_KILLED_RUN", run.c_str(), 1);
      ::setenv("PIPE_KILLED_AFTER", std::to_string(after).c_str(), 1);
      ::execl("/proc/self/exe", "killed", "a program that is killed", "--out", "/dev/null",
              nullptr);
      _exit(127);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    return status;
  };
  long const kills = number("PIPE_KILLS", 30);
  for (long i = 0; i < kills; ++i) {
    int const status = start(long(random() % 40'000));
    REQUIRE((WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0));
  }
  REQUIRE(start(none) == 0);
  std::string const last = run + "/step-" + std::to_string(fuzzed_steps) + ".safetensors";
  CHECK((content(last) == undisturbed(fuzzed_steps)));
  for (std::string const& name : in(run)) CHECK(name.find(".tmp-") == name.npos);
}
TEST_CASE("whichever call of the system is a run's last, it goes on with the same bits") {
  std::string const all = undisturbed(5);
  int calls = 0, status = 0;
  do {
    temporary_folder const folder;
    std::string const run = folder.file("run");
    saving::settings const settings{.every_steps = 2, .keep_last = 1, .asynchronous = false};
    pid_t const child = fork();
    if (child == 0) {
      planned_mishap const plan(mishap::dies, calls);
      train(run, 3, settings);
      _exit(0);
    }
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    REQUIRE((WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == dead_by_plan));
    INFO("dead after " << calls << " calls");
    CHECK((content(train(run, 5, settings)) == all));
    CHECK(in(run) == of_steps({5}));
    ++calls;
  } while (WEXITSTATUS(status) == dead_by_plan);
  CHECK(calls > 30);
}

TEST_CASE("a file has the bits of the step it names, though training goes on") {
  temporary_folder const folder;
  Trainer trainer({.seed = 1}), other({.seed = 1});
  std::vector<std::string> expected;
  {
    saving saved(folder.file("run"), {.every_steps = 1, .keep_last = 1000});
    for (int i = 0; i < 200; ++i) {
      steps(trainer, saved, {1.});
      other.step(laws::sample_batch<Trainer>(std::uint64_t(i)).view());
      std::string const same = folder.file("same");
      other.save(same, other.steps());
      expected.push_back(content(same));
    }
  }
  std::size_t found = 0;
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (std::string const path = folder.file("run/step-" + std::to_string(i + 1) + ".safetensors");
        fs::exists(path)) {
      ++found;
      CHECK((content(path) == expected[i]));
    }
  CHECK(found > 1);
}
TEST_CASE("the memory of a copy is that of a file's tensors") {
  temporary_folder const folder;
  Trainer trainer;
  trainer.save(folder.file("a"), 1);
  detail::checkpoint_reader const file(folder.file("a"));
  CHECK(saving::copy_bytes(trainer) == file[file.size() - 1].end);
}

TEST_CASE("whatever the newest checkpoint is, it is named and the one before is taken") {
  temporary_folder const folder;
  std::string const run = folder.file("run"), newest = run + "/step-4.safetensors";
  {
    Trainer trainer({.seed = 1});
    saving saved(run, {.every_steps = 2, .asynchronous = false});
    steps(trainer, saved, {1, 1, 1, 1});
  }
  std::string const good = content(newest), before = content(run + "/step-2.safetensors");
  auto const skips = [&](std::string const& why) {
    INFO(why);
    Trainer trainer({.seed = 2});
    warnings told;
    saving saved(run, told.taken_by({}));
    resumed_checkpoint const r = saved.resume(trainer);
    CHECK(r.steps == 2);
    CHECK(r.position.number() == 2);
    CHECK(r.path == run + "/step-2.safetensors");
    REQUIRE(r.skipped.size() == 1);
    CHECK(r.skipped[0].find("'" + newest + "'") != std::string::npos);
    CHECK(told.all == r.skipped);
    trainer.save(folder.file("same"), 2);
    CHECK((content(folder.file("same")) == before));
  };
  auto const write = [&](std::string const& bytes) {
    std::ofstream(newest, std::ios::binary) << bytes;
  };
  std::size_t const header = std::size_t(std::uint8_t(good[0])) + 256 * std::uint8_t(good[1]);
  for (std::size_t const length : {std::size_t(0), std::size_t(1), std::size_t(7), std::size_t(8),
                                   std::size_t(9), header / 2, header + 7, header + 8, header + 9,
                                   (header + good.size()) / 2, good.size() - 5, good.size() - 1}) {
    write(good.substr(0, length));
    skips("cut at " + std::to_string(length));
  }
  write(good + "x");
  skips("longer");
  std::mt19937 random(7);
  for (int i = 0; i < 60; ++i) {
    std::string bytes = good;
    std::size_t const at = i < 10 ? std::size_t(i) : random() % good.size();
    bytes[at] = char(bytes[at] ^ 1 << random() % 8);
    write(bytes);
    skips("a flipped bit in byte " + std::to_string(at));
  }
  write("a text");
  skips("a text");
  write(std::string(5000, '\0'));
  skips("zeros");
  {
    Of<Other> other;
    other.save(newest);
    skips("another model");
    pp::save_weights(other, newest);
    skips("weights");
  }
  fs::remove(newest);
  fs::create_directory(newest);
  skips("a folder");
  fs::remove(newest);
  fs::create_symlink("step-4.safetensors", newest);
  skips("a link to itself");
  fs::remove(newest);
  fs::create_symlink("nowhere", newest);
  skips("a link to nothing");
  fs::remove(newest);
  if (::geteuid() != 0) {  // which may read everything
    write(good);
    fs::permissions(newest, fs::perms::none);
    skips("no permission");
    fs::remove(newest);
  }
  // The run replaces it when it gets there.
  write("damaged");
  Trainer trainer;
  warnings told;
  saving saved(run, told.taken_by({.every_steps = 2, .asynchronous = false}));
  saved.resume(trainer);
  steps(trainer, saved, {1, 1});
  CHECK((content(newest) == good));
}
TEST_CASE("a list of checkpoints that is damaged is named, and does no harm") {
  temporary_folder const folder;
  std::string const run = folder.file("run");
  train(run, 4, {.every_steps = 2});
  for (char const* const text : {"", "a text", "step-4.safetensors", "step-4.safetensors 1 2\n",
                                 "step-04.safetensors 1\n", "\n"}) {
    folder.write("run/latest", text);
    warnings told;
    Trainer trainer;
    CHECK(saving(run, told.taken_by({})).resume(trainer).steps == 4);
    CHECK(told.has("'" + run + "/latest' does not list checkpoints in line 1") == (*text != 0));
  }
}
TEST_CASE("a run never starts over by mistake") {
  temporary_folder const folder;
  std::string const run = folder.file("run");
  {
    Trainer trainer;
    CHECK(saving(run).resume(trainer).path.empty());  // nothing is there yet
  }
  train(run, 3, {});
  Trainer trainer({.seed = 3});
  laws::sample_batch<Trainer> const data(1);
  trainer.step(data.view());
  std::string const path = folder.file("state");
  trainer.save(path);
  std::string const state = content(path);
  {
    saving saved(run);
    CHECK(sentence<data_error>([&] { saved.after_step(trainer, 1); }) ==
          "'" + run +
              "' has the checkpoints of a run of 3 steps: resume() it, or save to another folder");
  }
  std::ofstream(run + "/step-3.safetensors") << "damaged";
  warnings told;
  saving saved(run, told.taken_by({}));
  CHECK_THAT(sentence<data_error>([&] { saved.resume(trainer); }),
             Catch::StartsWith("'" + run + "': none of its 1 checkpoints can be loaded; "));
  trainer.save(path);
  CHECK((content(path) == state));
  {  // A folder that cannot be read is not an empty one.
    saving unread(run, told.taken_by({}));
    resource_limit const no_files(RLIMIT_NOFILE, 0);
    CHECK(sentence<file_error>([&] { unread.resume(trainer); }) ==
          "cannot read the folder '" + run + "': Too many open files");
  }
  // Two runs do not share a folder.
  saving second(run);
  CHECK(sentence<file_error>([&] { second.resume(trainer); }) ==
        "'" + run + "' has the checkpoints of a run that is still going on: take another folder");
}
TEST_CASE("a file whose name has another number than its run starts none over") {
  for (bool const has_second : {false, true})
    for (char const* const number :
         {"5", "4611686018427387904", "9223372036854775806", "9223372036854775807"})
      for (bool const is_empty : {false, true}) {
        INFO(number << ", second place " << has_second << ", empty " << is_empty);
        temporary_folder const folder;
        std::string const run = folder.file("run"), second = has_second ? folder.file("more") : "";
        train(run, 4, {.every_steps = 2});
        std::string const newest = run + "/step-4.safetensors", good = content(newest),
                          odd = run + "/step-" + number + ".safetensors";
        std::ofstream(odd, std::ios::binary) << (is_empty ? "" : good);
        warnings told;
        Trainer trainer({.seed = 1});
        saving saved(run, told.taken_by({.every_steps = 1, .second_place = second}));
        resumed_checkpoint const r = saved.resume(trainer);
        CHECK((r.steps == 4 && r.path == newest));
        REQUIRE(r.skipped.size() == 1);
        CHECK(r.skipped[0].find("'" + odd + "'") != std::string::npos);
        std::string const says =
            "it is of a run of 4 steps, and its name says " + std::string(number);
        CHECK(r.skipped[0].ends_with(says) == !is_empty);
        CHECK((content(newest) == good));
      }
}
TEST_CASE("a list of checkpoints that is no file, or too large, is named, and hangs nothing") {
  temporary_folder const folder;
  std::string const run = folder.file("run"), latest = run + "/latest";
  train(run, 4, {.every_steps = 2});
  auto const warns = [&](std::string const& of) {
    warnings told;
    Trainer trainer;
    CHECK(saving(run, told.taken_by({})).resume(trainer).steps == 4);
    REQUIRE(!told.all.empty());
    CHECK((told.has("'" + latest + "'") && told.has(of)));
  };
  fs::remove(latest);
  REQUIRE(::mkfifo(latest.c_str(), 0600) == 0);
  warns("it is not a file");
  fs::remove(latest);
  fs::create_symlink("/dev/zero", latest);
  warns("it is not a file");
  fs::remove(latest);
  fs::create_directory(latest);
  warns("it is not a file");
  fs::remove(latest);
  std::ofstream(latest) << "";
  fs::resize_file(latest, std::uintmax_t(1) << 40);
  warns("expected at most 16777216 bytes, found 1099511627776");
  // A lock that leads elsewhere is none.
  fs::remove(latest);
  fs::remove(run + "/lock");
  fs::create_symlink(folder.file("elsewhere"), run + "/lock");
  warnings told;
  Trainer trainer;
  CHECK(saving(run, told.taken_by({})).resume(trainer).steps == 4);
  CHECK(!fs::exists(folder.file("elsewhere")));
}
TEST_CASE("a run that is done is set aside, and a program can look before it trains") {
  temporary_folder const folder;
  std::string const run = folder.file("run");
  CHECK(newest_checkpoint(run).path.empty());
  std::string const path = train(run, 3, {});
  found_checkpoint const found = newest_checkpoint(run);
  CHECK(found.path == path);
  CHECK(found.steps == 3);
  CHECK(found.position.text == "3");
  CHECK(newest_checkpoint(run, 3).path == path);
  CHECK(newest_checkpoint(run, 2).path.empty());
  std::ofstream(run + "/step-5.safetensors") << "damaged";
  CHECK(newest_checkpoint(run).path == path);
  fs::remove(run + "/step-5.safetensors");
  Trainer trainer;
  fs::create_directory(folder.file("run-2"));
  saving saved(run);
  CHECK(saved.set_aside(trainer) == folder.file("run-3"));
  CHECK(saved.set_aside(trainer).empty());
  CHECK(saved.resume(trainer).path.empty());
  CHECK(newest_checkpoint(folder.file("run-3")).steps == 3);
}

TEST_CASE("the last and the best are kept") {
  temporary_folder const folder;
  std::string const run = folder.file("run");
  double const unknown = std::numeric_limits<double>::quiet_NaN();
  Trainer trainer;
  saving::settings const settings{
      .every_steps = 1, .keep_last = 2, .keep_best = 2, .asynchronous = false};
  {
    saving saved(run, settings);
    steps(trainer, saved, {5, 1, unknown, 3});
    CHECK(in(run) == of_steps({2, 3, 4}));  // 4 is the second best, and of the last
    steps(trainer, saved, {4, 4, std::numeric_limits<double>::infinity()});
    CHECK(in(run) == of_steps({2, 4, 6, 7}));
    CHECK(content(run + "/latest").starts_with("step-7.safetensors inf\nstep-6.safetensors 4\n"));
  }
  // The losses are those of the run, whichever program has seen them.
  saving saved(run, settings);
  CHECK(saved.resume(trainer).steps == 7);
  steps(trainer, saved, {2, 1.5, 1.7});
  CHECK(in(run) == of_steps({2, 9, 10}));
  CHECK(detail::checkpoints_to_keep({1, 1, 1}, 1, 1) == std::vector<bool>{true, false, false});
}
TEST_CASE("files that belong to no run are left alone") {
  temporary_folder const folder;
  std::string const run = folder.file("run");
  fs::create_directory(run);
  name_set all = of_steps({2, 7});
  detail::temporary_names const mine(run + "/step-9.safetensors");
  std::string const beginning = std::string(mine.stem()) + std::string(mine.host());
  for (char const* const name : {"step-9.safetensors.tmp-old", "step-9", "notes.tmp-1", "metrics"})
    folder.write("run/" + std::string(name), "x"), all.insert(name);
  folder.write("run/" + beginning + "-1-0", "of a program that is gone");
  std::string const used = beginning + "-1-1";
  detail::file_descriptor const held(folder.write("run/" + used, "of one that is at work"), O_RDWR);
  REQUIRE(detail::lock_temporary(held));
  all.insert(used);
  {
    Trainer other;
    other.save(run + "/step-2.safetensors", 2);  // not listed: a copy that the user has put there
  }
  Trainer trainer;
  trainer.step(laws::sample_batch<Trainer>(1).view());
  saving saved(run, {.every_steps = 1, .keep_last = 1, .asynchronous = false});
  for (int i = 0; i < 5; ++i) trainer.step(laws::sample_batch<Trainer>(1).view());
  trainer.save(run + "/step-6.safetensors", 6);
  saved.resume(trainer);
  steps(trainer, saved, {1});
  CHECK(in(run) == all);
}

TEST_CASE("a disk that is full is a warning, and the next checkpoint is saved") {
  for (bool const asynchronous : {false, true}) {
    temporary_folder const folder;
    std::string const run = folder.file("run"), second = folder.file("second");
    warnings told;
    Trainer trainer({.seed = 1});
    saving saved(run, told.taken_by({.every_steps = 1, .asynchronous = asynchronous}));
    saved.resume(trainer);
    {
      file_size_limit const full(500);
      steps(trainer, saved, {1});
      CHECK(sentence<file_error>([&] { saved.finish(trainer, 1); }) ==
            "the checkpoint after step 1 could not be written anywhere");
    }
    std::string const why = "cannot write '" + run + "/step-1.safetensors': File too large";
    CHECK(told.has(why + " (the training goes on)"));
    CHECK(in(run) == name_set{"lock"});
    steps(trainer, saved, {1, 1});
    CHECK(saved.finish(trainer, 3) == run + "/step-3.safetensors");
    CHECK(newest_checkpoint(run).steps == 3);
  }
}
TEST_CASE("every call that fails while a checkpoint is written is a warning") {
  int const reasons[] = {ENOSPC, EDQUOT, EIO, EROFS};
  bool happened = true;
  for (int at = 0; happened; ++at) {
    temporary_folder const folder;
    std::string const run = folder.file("run");
    warnings told;
    Trainer trainer({.seed = 1});
    saving saved(run, told.taken_by({.every_steps = 1, .asynchronous = at % 2 == 0}));
    saved.resume(trainer);
    {
      planned_mishap const plan(mishap::fails, at, reasons[at % 4]);
      steps(trainer, saved, {1});
      steps(trainer, saved, {1});  // waits for the first, if it is still written
      steps(trainer, saved, {1});
      saved.finish(trainer, 3);
      happened = plan.happened();
    }
    CHECK(told.all.size() == (happened ? 1u : 0u));
    Trainer again;
    CHECK(newest_checkpoint(run).steps == 3);
    for (std::string const& name : in(run)) CHECK(name.find(".tmp-") == name.npos);
  }
}
TEST_CASE("a checkpoint finds another place") {
  temporary_folder const folder;
  std::string const run = folder.write("run", "a file"), second = folder.file("a/second");
  warnings told;
  Trainer trainer({.seed = 1});
  {
    saving saved(run, told.taken_by({.every_steps = 1, .second_place = second}));
    saved.resume(trainer);
    CHECK(told.has("cannot make the folder '" + run + "'"));
    steps(trainer, saved, {1});
    CHECK(saved.finish(trainer, 1) == second + "/step-1.safetensors");
    CHECK(told.has("; it is in '" + second + "/step-1.safetensors'"));
  }
  Trainer other;
  {
    saving saved(run, told.taken_by({.second_place = second}));
    CHECK(saved.resume(other).path == second + "/step-1.safetensors");
  }
  // Without a second place, the last one is saved in the current folder, over no other file.
  fs::path const here = fs::current_path();
  fs::current_path(fs::path(second).parent_path());
  folder.write("a/step-1.safetensors", "of another run");
  {
    saving saved(run, told.taken_by({.every_steps = 1}));
    CHECK(saved.finish(trainer, 1) == "step-1-2.safetensors");
  }
  CHECK((content("step-1-2.safetensors") == content(second + "/step-1.safetensors")));
  CHECK(content("step-1.safetensors") == "of another run");
  fs::current_path(here);
}
TEST_CASE("checkpoints can be due by time, and are not without a step") {
  temporary_folder const folder;
  std::string const run = folder.file("run");
  Trainer trainer;
  saving saved(run, {.every = std::chrono::nanoseconds(1), .asynchronous = false});
  steps(trainer, saved, {1});
  CHECK(in(run) == of_steps({1}));
  fs::remove(run + "/step-1.safetensors");
  saved.after_step(trainer, 1);  // as after a step that was skipped
  CHECK(in(run) == name_set{"latest", "lock"});
  CHECK_THROWS_AS(saving(run, {.every_steps = -1}), data_error);
  CHECK_THROWS_AS(saving(run, {.every = std::chrono::seconds(-1)}), data_error);
  CHECK_THROWS_AS(saving(run, {.keep_last = 0}), data_error);
  CHECK_THROWS_AS(saving(run, {.keep_best = -1}), data_error);
}
TEST_CASE("warnings go to any function of a string") {
  using pp::detail::text_function;
  std::string told;
  struct counted {
    int* times;
    int operator()(std::string_view text) const { return *times += int(text.size()); }
  };
  int times = 0;
  for (text_function const& f :
       {text_function([&](std::string const& text) { told += text; }),
        text_function([&](std::string text) { told += text; }),
        text_function([&](std::string_view text) { told += text; }),
        text_function([&](char const* text) { told += text; }),
        text_function([&](auto const& text) { return told += text, 1; }),
        text_function([&, n = 0](auto text) mutable { ++n, told += text; })})
    f("a");
  CHECK(told == "aaaaaa");
  text_function(counted{&times})("abc");
  CHECK(times == 3);
  CHECK((!text_function() && !text_function(nullptr) && text_function(std::puts)));
  static_assert(!std::is_constructible_v<text_function, int>);
  static_assert(!std::is_constructible_v<text_function, void (*)(int)>);
  saving const saved("run", {.warn = [](std::string const&) {}});
  pp::metrics_log log;
  log.report_failures([](std::string_view) {}).report_failures(std::puts);
}

TEST_CASE("a mode of a file is kept, also by the files of later steps") {
  temporary_folder const folder;
  std::string const run = folder.file("run"), second = folder.file("second");
  fs::perms const own = fs::perms::owner_read | fs::perms::owner_write;
  auto const mode = [](std::string const& path) { return fs::status(path).permissions(); };
  train(run, 1, {});
  CHECK(mode(run + "/step-1.safetensors") != own);
  fs::permissions(run + "/latest", own);
  fs::permissions(run + "/step-1.safetensors", own);
  train(run, 2, {.second_place = second});
  CHECK(mode(run + "/latest") == own);
  CHECK(mode(run + "/step-2.safetensors") == own);
  // In the second place, too.
  fs::rename(run, folder.file("away"));
  folder.write("run", "a file");
  fs::rename(folder.file("away/step-2.safetensors"), second + "/step-2.safetensors");
  warnings told;
  train(run, 3, told.taken_by({.asynchronous = false, .second_place = second}));
  CHECK(mode(second + "/step-3.safetensors") == own);
  // A mode of its own stays.
  fs::perms const shared = own | fs::perms::group_read;
  fs::permissions(second + "/step-3.safetensors", shared);
  Trainer trainer;
  trainer.save(second + "/step-3.safetensors");
  CHECK(mode(second + "/step-3.safetensors") == shared);
}
