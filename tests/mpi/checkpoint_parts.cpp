// SPDX-License-Identifier: BSL-1.0
//
// Checkpoints in parts, which processes write: what is in them, what becomes of a damaged one, and
// of one that a process cannot write. checkpoint.cpp has their bits.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pipe/checkpoint/checkpoint.hpp>
#include <pipe/checkpoint/checkpoints.hpp>
#include <pipe/io/folder_reader.hpp>
#include <pipe/weights/safetensors.hpp>

#include "mpi/alike.hpp"
#include "mpi/folder.hpp"
#include "train/folder.hpp"
#include "train/system_calls.hpp"

using namespace pp;
namespace fs = std::filesystem;

namespace {

/// Two stages, of which each is divided among four replicas.
struct Net : Model<Input<400>, Linear<400>, Tanh, LayerNorm, Linear<400>, MSE> {};
template <class... More>
using Of = Pipeline<Net, PortableHost, AdamW, MicroBatches<1>, MicroBatchSize<1>,
                    GradientAccumulation<8>, More...>;
using one_process = Of<>;
using many = Of<Between, Stages<2>, ZeRO<1>>;

/// The warnings of this process.
std::vector<std::string> told;
checkpoints<many>::settings with(checkpoints<many>::settings s) {
  told.clear();
  s.files = checkpoint_files::by_process;
  s.warn = [](std::string_view text) { told.emplace_back(text); };
  return s;
}
void step(many& trainer, checkpoints<many>& saved, int count = 1) {
  for (int i = 0; i < count; ++i) {
    trainer.step(laws::sample_batch<many>(std::uint64_t(trainer.steps())).template view<many>());
    saved.after_step(trainer, trainer.steps(), 1);
  }
}
std::vector<std::string> sorted_parts(std::string const& path) {
  std::vector<std::string> all;
  std::string const folder(detail::folder_of(path));
  detail::folder_reader from(folder);
  while (dirent const* const entry = from.next())
    if (detail::whole_of_part(entry->d_name) == detail::name_in_folder(path))
      all.push_back(folder + entry->d_name);
  std::sort(all.begin(), all.end());
  return all;
}
/// The number of parts that all processes write; none if they are one.
std::size_t expected_parts() {
  return Between::processes() > 1 ? std::size_t(Between::processes()) : 0;
}
bool is_first() { return many::engine::writes_files(); }
/// An empty folder that all processes know.
std::string new_folder(char const* name, many& trainer) {
  std::string const path = processes::in_folder(name);
  trainer.processes().agree(true);
  if (is_first()) fs::remove_all(path);
  trainer.processes().agree(true);
  return path;
}
std::set<std::string> names_in(std::string const& folder) {
  std::set<std::string> all;
  for (auto const& entry : fs::directory_iterator(folder))
    all.insert(entry.path().filename().string());
  return all;
}

}  // namespace

TEST_CASE("each process writes the states that it has") {
  many trainer({.seed = 1});
  std::string const folder = new_folder("parts-folder", trainer), path = folder + "/run";
  if (is_first()) fs::create_directory(folder);
  for (std::uint64_t n = 1; n <= 2; ++n) {
    trainer.step(laws::sample_batch<many>(n).view());
    trainer.save(path, "here", checkpoint_files::by_process);
  }
  // Of the second saving alone, and each number once.
  auto const parts = sorted_parts(path);
  CHECK(parts.size() == expected_parts());
  std::size_t numbers = 0;
  for (std::string const& part : parts) {
    safetensors_reader const file(part);
    numbers += file.data_bytes() - 4 * file.tensors().size();
    CHECK_THAT(sentence<data_error>([&] { trainer.load(part); }),
               Catch::Contains(" of a checkpoint, whose first file is '" + path + "'"));
  }
  trainer.save(path + "-whole", "here");
  safetensors_reader const whole(path + "-whole"), first(path);
  std::size_t const of_whole = whole.data_bytes() - 4 * whole.tensors().size(),
                    of_first = first.data_bytes() - 4 * first.tensors().size();
  CHECK(of_first + numbers == of_whole + 16 * parts.size());
  // A process needs memory for its own states.
  std::size_t const mine = checkpoints<many>::copy_bytes(trainer, checkpoint_files::by_process),
                    all = checkpoints<many>::copy_bytes(trainer);
  CHECK((Between::processes() > 1 ? mine < all : mine == all));
  // One file replaces the parts, too.
  trainer.save(path, "here");
  trainer.processes().agree(true);
  CHECK(same_content(path, path + "-whole"));
  CHECK(sorted_parts(path).empty());
}

TEST_CASE("a checkpoint whose parts are not whole is named, and the one before is taken") {
  for (bool const asynchronous : {false, true}) {
    many trainer({.seed = 1});
    std::string const run = new_folder("damaged-parts", trainer),
                      path = run + "/step-4.safetensors";
    {
      checkpoints<many> saved(run, with({.every_steps = 2, .asynchronous = asynchronous}));
      saved.resume(trainer);
      step(trainer, saved, 4);
      CHECK(saved.finish(trainer, trainer.steps()) == (is_first() ? path : ""));
      CHECK(told.empty());
    }
    if (!asynchronous) continue;
    auto const newest = sorted_parts(path), before = sorted_parts(run + "/step-2.safetensors");
    CHECK(newest.size() == expected_parts());
    CHECK(before.size() == expected_parts());
    CHECK(newest_checkpoint(run).steps == 4);
    auto const skips = [&](std::string const& damaged, std::string const& bytes) {
      INFO(damaged << ", process " << Between::process());
      std::string const good = content(damaged);
      many again({.seed = 2});
      again.processes().agree(true);
      if (is_first()) {
        fs::remove(damaged);
        if (!bytes.empty()) std::ofstream(damaged, std::ios::binary) << bytes;
      }
      {
        checkpoints<many> saved(run, with({}));
        resumed_checkpoint const r = saved.resume(again);
        CHECK(r.steps == 2);
        CHECK(r.position.number() == 2);
        REQUIRE(r.skipped.size() == 1);
        CHECK(r.skipped[0].find(path) != std::string::npos);
        // A process that reads all of it says what is wrong with which file.
        one_process alone;
        CHECK_THAT(sentence<error>([&] { alone.load(path); }),
                   Catch::Contains("'" + damaged + "'"));
      }
      again.processes().agree(true);
      if (is_first()) std::ofstream(damaged, std::ios::binary) << good;
    };
    for (std::size_t i = 0; i < newest.size(); i += newest.size() - 1) {
      std::string const good = content(newest[i]);
      skips(newest[i], "");
      skips(newest[i], good.substr(0, good.size() - 1));
      skips(newest[i], content(before[i]));
      std::string flipped = good;
      flipped[flipped.size() - 4 * safetensors_reader(newest[i]).tensors().size() - 1] ^= 1;
      skips(newest[i], flipped);
    }
    skips(path, "damaged");
    // Parts that were not completed are removed, and others are left alone.
    many again({.seed = 2});
    if (is_first()) {
      fs::remove(path);
      std::ofstream(run + "/step-4.safetensors.notes") << "of a user";
    }
    checkpoints<many> saved(run, with({.every_steps = 1}));
    CHECK(saved.resume(again).steps == 2);
    CHECK(sorted_parts(path).empty());
    CHECK(fs::exists(run + "/step-4.safetensors.notes"));
  }
}

TEST_CASE("checkpoints in parts are kept, and take the mode of those before") {
  many trainer({.seed = 1});
  std::string const run = new_folder("kept-parts", trainer);
  fs::perms const own = fs::perms::owner_read | fs::perms::owner_write;
  {
    checkpoints<many> saved(run, with({.every_steps = 1, .keep_last = 1, .asynchronous = false}));
    saved.resume(trainer);
    step(trainer, saved, 1);
    trainer.processes().agree(true);
    if (is_first())
      for (auto const& entry : fs::directory_iterator(run)) fs::permissions(entry.path(), own);
    trainer.processes().agree(true);
    step(trainer, saved, 2);
  }
  {
    // [parts]
    checkpoints<many> saved(run, {.every_steps = 1, .files = checkpoint_files::by_process});
    // [/parts]
    CHECK(saved.resume(trainer).steps == 3);
    CHECK(saved.finish(trainer, 3).empty() != is_first());
  }
  CHECK(sorted_parts(run + "/step-3.safetensors").size() == expected_parts());
  CHECK(names_in(run).size() == expected_parts() + 3);
  for (auto const& entry : fs::directory_iterator(run)) CHECK(entry.status().permissions() == own);
}

TEST_CASE("where one process cannot write its part, no part is left and training goes on") {
  many trainer({.seed = 1});
  bool const is_last = Between::process() + 1 == Between::processes();
  for (bool const asynchronous : {true, false}) {
    std::string const run = new_folder("no-parts", trainer), second = new_folder("second", trainer);
    checkpoints<many> saved(
        run, with({.every_steps = 1, .asynchronous = asynchronous, .second_place = second}));
    saved.resume(trainer);
    long const begun = trainer.steps();
    std::string const name = "/step-" + std::to_string(begun + 1) + ".safetensors";
    {
      std::unique_ptr<file_size_limit> full;
      if (is_last) full = std::make_unique<file_size_limit>(500);
      // Both folders are tried in later calls.
      step(trainer, saved, 1);
      for (int i = 0; i < 8; ++i) saved.after_step(trainer, trainer.steps());
      while (!trainer.processes().agree(!told.empty() || !(is_first() || is_last)))
        saved.after_step(trainer, trainer.steps());
    }
    if (is_last)
      CHECK_THAT(told.at(0), Catch::Contains("File too large"));
    else if (is_first())
      CHECK(told == std::vector<std::string>{"another process could not save '" + run + name +
                                             "'; another process could not save '" + second + name +
                                             "' (the training goes on)"});
    CHECK(names_in(run) == std::set<std::string>{"lock"});
    CHECK(names_in(second) == std::set<std::string>{"lock"});
    told.clear();
    step(trainer, saved, 2);
    saved.finish(trainer, trainer.steps());
    CHECK(told.empty());
    CHECK(newest_checkpoint(run).steps == begun + 3);
    many again;
    again.load(newest_checkpoint(run).path);
    CHECK(processes::same_values(again, trainer));
  }
}
