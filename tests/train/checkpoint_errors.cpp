// SPDX-License-Identifier: BSL-1.0
//
// Files that are no checkpoint of a trainer's run: each is refused in one sentence that names the
// file, and the trainer stays as it was.
#include "catch.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <pipe/checkpoint/checkpoint.hpp>
#include <pipe/weights/safetensors.hpp>
#include <pipe/weights/weights.hpp>

#include "laws/data.hpp"
#include "train/folder.hpp"
#include "train/system_calls.hpp"

using namespace pp;

namespace {

struct Tiny : Model<Input<2>, Linear<1>, MSE> {};
struct Deeper : Model<Input<2>, Linear<3>, Linear<1>, MSE> {};
template <class M, class... More>
using Of = Pipeline<M, PortableHost, More...>;
using tiny = Of<Tiny, AdamW>;

/// A trainer in the middle of a run, and the file of another one.
template <class Trainer>
struct interrupted {
  temporary_folder folder;
  Trainer trainer{{.seed = 1}}, other{{.seed = 2}};
  std::string path = folder.file("run"), bytes;

  interrupted() {
    other.step(batch(3).view());
    trainer.step(batch(4).view());
    trainer.step(batch(5).view());
    trainer.accumulate(batch(6).view());
    other.accumulate(batch(7).view());
    other.save(path, "here");
    bytes = content(path);
  }
  static laws::sample_batch<Trainer> batch(std::uint64_t seed) {
    return laws::sample_batch<Trainer>(seed);
  }
  /// What the trainer is, all of it.
  std::string state() {
    trainer.save(folder.file("state"));
    return content(folder.file("state"));
  }
  /// What loading these bytes says.
  std::string said(std::string const& of) {
    std::filesystem::remove(path);  // some file systems sync what is written over
    folder.write("run", of);
    return sentence<data_error>([&] { trainer.load(path); });
  }
  std::string refused(std::string const& why) const { return "cannot load '" + path + "': " + why; }
};

std::string replaced(std::string text, std::string const& what, std::string const& with) {
  std::size_t const at = text.find(what);
  REQUIRE(at != text.npos);
  return text.replace(at, what.size(), with);
}

/// What a trainer says of a file.
template <class Trainer>
std::string said_by(std::string const& path) {
  Trainer t;
  return sentence<data_error>([&] { t.load(path); });
}

}  // namespace

TEST_CASE("no flipped bit and no cut of a checkpoint goes unnoticed", "[train]") {
  interrupted<tiny> i;
  std::string const before = i.state();
  for (std::size_t at = 0; at < i.bytes.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = i.bytes;
      damaged[at] = char(damaged[at] ^ 1 << bit);
      std::string const said = i.said(damaged);
      INFO("byte " << at << ", bit " << bit << ": " << said);
      CHECK(said.find("'" + i.path + "'") != said.npos);
      CHECK(said.find("another type of error") == said.npos);
    }
  for (std::size_t size = 0; size < i.bytes.size(); ++size) {
    std::string const said = i.said(i.bytes.substr(0, size));
    INFO("cut at " << size << ": " << said);
    CHECK(said.find("'" + i.path + "'") != said.npos);
  }
  CHECK(i.said(i.bytes + 'x').find("'" + i.path + "'") != std::string::npos);
  CHECK(i.state() == before);
  CHECK(i.said(i.bytes) == "no error");
  CHECK(i.trainer.steps() == 1);
}

TEST_CASE("a checkpoint that does not fit says why", "[train]") {
  interrupted<tiny> i;
  std::string const before = i.state();
  SECTION("of a newer version of the library") {
    CHECK(
        i.said(replaced(i.bytes, R"("checkpoint":"1")", R"("checkpoint":"2")")) ==
        i.refused("it is a checkpoint of format '2'; this version of the library reads format 1"));
  }
  SECTION("weights") {
    save_weights(i.trainer, i.path);
    CHECK(i.said(content(i.path)) ==
          i.refused("it is no checkpoint, as its metadata has no \"checkpoint\""));
  }
  SECTION("with a bit that was flipped") {
    std::string damaged = i.bytes;
    damaged[damaged.find(R"("here")") + 1] = 'H';
    CHECK(i.said(damaged) ==
          i.refused("it is damaged: its header is not the one that was written"));
    damaged = i.bytes;
    damaged[damaged.size() - 54] ^= 1;
    CHECK(i.said(damaged) == i.refused("it is damaged: the bytes of tensor 'accumulated/0.bias' "
                                       "are not those that were written"));
  }
  SECTION("of another optimizer, or with other averages of gradients") {
    CHECK(said_by<Of<Tiny, SGD>>(i.path) ==
          i.refused("it is a run of AdamW, beta1 = 0.9, beta2 = 0.999, this trainer has SGD"));
    tiny t({.optimizer = {.beta2 = 0.95}});
    CHECK(sentence<data_error>([&] { t.load(i.path); }) ==
          i.refused("it is a run of AdamW, beta1 = 0.9, beta2 = 0.999, this trainer has AdamW, "
                    "beta1 = 0.9, beta2 = 0.95"));
    tiny slower({.optimizer = {.learning_rate = 0.5, .weight_decay = 0}});
    slower.load(i.path);
  }
  SECTION("of another model") {
    i.other.step(i.batch(8).view());
    i.other.save(i.path);
    CHECK(said_by<Of<Deeper, AdamW>>(i.path) ==
          i.refused("it does not fit this trainer: "
                    "tensor '0.weight': expected shape [3, 2], found [1, 2]; "
                    "tensor '0.bias': expected shape [3], found [1]; "
                    "tensor '1.weight': not in the file; tensor '1.bias': not in the file; "
                    "tensor 'optimizer/exp_avg/0.weight': expected shape [3, 2], found [1, 2]; "
                    "tensor 'optimizer/exp_avg_sq/0.weight': expected shape [3, 2], found [1, 2]; "
                    "tensor 'optimizer/exp_avg/0.bias': expected shape [3], found [1]; "
                    "tensor 'optimizer/exp_avg_sq/0.bias': expected shape [3], found [1]; "
                    "and 4 more"));
    CHECK(said_by<Of<Tiny, AdamW, FP64>>(i.path).starts_with(
        i.refused("it does not fit this trainer: tensor '0.weight': expected F64, found F32; ")));
    Of<Deeper, AdamW>().save(i.path);
    std::string const said = i.said(content(i.path));
    INFO(said);
    CHECK(
        said.starts_with(i.refused("it does not fit this trainer: tensor '0.weight': expected "
                                   "shape [1, 2], found [3, 2]; ")));
    CHECK(said.find("tensor '1.weight': not of this trainer; tensor '1.bias': not of this "
                    "trainer") != said.npos);
  }
  SECTION("without averages") {
    i.other.step(i.batch(8).view());
    i.other.save(i.path);
    CHECK(said_by<Of<Tiny, AdamW, Averaging<1, 2>>>(i.path) ==
          i.refused("it does not fit this trainer: tensor 'average/0.weight': not in the file; "
                    "tensor 'average/0.bias': not in the file"));
  }
  SECTION("with gradients that cannot be added to") {
    CHECK(said_by<Of<Tiny, AdamW, GradientAccumulation<2>>>(i.path) ==
          i.refused(
              "it has accumulated gradients, to which a mini-batch of several accumulations, or "
              "with divided gradients, adds none"));
  }
  SECTION("of numbers that no run has") {
    // A file with a wrong number, and with the checksums that belong to it.
    auto const with = [&](std::string const& tensor, std::size_t index, double number) {
      safetensors_file const from(std::as_bytes(std::span(i.bytes)), "bytes");
      detail::row_list<detail::safetensors_place> places;
      for (auto const& t : from.tensors())
        if (t.name != "checksums") places.push_back({t.name, t.type, t.shape});
      detail::checkpoint_writer to(i.path, places, from.metadata());
      for (auto const& t : from.tensors()) {
        if (t.name == "checksums") continue;
        std::vector<std::byte> bytes(t.bytes.begin(), t.bytes.end());
        if (t.name == tensor) std::memcpy(bytes.data() + 8 * index, &number, sizeof number);
        to.write_tensor(bytes);
      }
      to.commit();
      return sentence<data_error>([&] { tiny().load(i.path); });
    };
    double const nan = std::numeric_limits<double>::quiet_NaN();
    CHECK(with("run/accumulated", 0, 1) == "no error");
    for (std::string const& said :
         {with("run/steps", 0, -1.0), with("run/accumulated", 0, nan),
          with("run/accumulated", 0, -1), with("run/accumulated", 0, 0.5),
          with("run/accumulated", 0, -0.0), with("run/accumulated", 4, 1e18),
          with("run/loss_scale", 0, nan), with("run/loss_scale", 1, 1e10)})
      CHECK(said ==
            i.refused("its numbers of steps or of accumulated mini-batches are those of no run"));
  }
  SECTION("a folder, and nothing") {
    CHECK(sentence<file_error>([&] { i.trainer.load(i.folder.file("none")); }) ==
          "cannot read '" + i.folder.file("none") + "': No such file or directory");
    CHECK(sentence<file_error>([&] { i.trainer.load(i.folder.file("")); }) ==
          "cannot read '" + i.folder.file("") + "': it is not a file");
  }
  CHECK(i.state() == before);
}

TEST_CASE("memory that ends while a checkpoint is loaded changes nothing", "[train]") {
  interrupted<tiny> i;
  std::string const before = i.state();
  int failures = 0;
  for (; failing_allocation::happened(failures, [&] { i.trainer.load(i.path); }); ++failures)
    CHECK(i.state() == before);
  CHECK(failures > 50);
  CHECK(i.trainer.steps() == 1);
}

TEST_CASE("a checkpoint that cannot be saved leaves the file as it was", "[train]") {
  interrupted<tiny> i;
  int writes = 0;
  for (bool failed = true; failed; ++writes) {
    planned_mishap const plan(mishap::fails, writes, ENOSPC);
    std::string const said = sentence<file_error>([&] { i.trainer.save(i.path); });
    failed = plan.happened();
    if (failed) {
      CHECK(said.find("'" + i.path + "': No space left on device") != said.npos);
      if (said.starts_with("cannot write")) CHECK(content(i.path) == i.bytes);
    }
  }
  CHECK(writes > 10);
  CHECK(i.folder.names() == std::set<std::string>{"run"});
}

TEST_CASE("a run is not saved while averages stand in for its parameters", "[train]") {
  temporary_folder const folder;
  Of<Tiny, AdamW, Averaging<1, 2>> t;
  t.save(folder.file("run"));
  t.swap_averages();
  std::string const why =
      "step 1: averages stand in for the parameters: call swap_averages() first";
  CHECK(sentence<error>([&] { t.save(folder.file("other")); }) == why);
  CHECK(sentence<error>([&] { t.load(folder.file("run")); }) == why);
  CHECK(folder.names() == std::set<std::string>{"run"});
}

TEST_CASE("a data position is a number or a text", "[train]") {
  CHECK(data_position().number() == 0);
  CHECK(data_position(-12L).number() == -12);
  CHECK(data_position("shard 3, line 7").text == "shard 3, line 7");
  CHECK(sentence<data_error>([] { (void)data_position("7a").number(); }) ==
        "data position: expected a number, got '7a'");
}
