// SPDX-License-Identifier: BSL-1.0
//
// Steps that are made again: the same bits under any cut, and the step at which a wrong bit was
// made.
#include "catch.hpp"

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include <sys/stat.h>

#include <pipe/checkpoint/checkpoint.hpp>
#include <pipe/checkpoint/replay.hpp>
#include <pipe/checkpoint/step_log.hpp>
#include <pipe/pipe.hpp>

#include "folder.hpp"

using namespace pp;

namespace {

struct Net : Model<Input<6>, Linear<8>, Dropout<1, 4>, Tanh, Linear<3>, MSE> {};
template <class... More>
using Of = Pipeline<Net, PortableHost, AdamW, MicroBatches<4>, MicroBatchSize<2>, More...>;
using Trainer = Of<Stages<2>, GPipe>;

/// The mini-batch of a step.
struct numbers {
  std::vector<float> inputs = std::vector<float>(8 * 6), labels = std::vector<float>(8 * 3);
  explicit numbers(long step) {
    for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i] = float((i * 7 + step) % 11) / 11;
    for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = float((i * 3 + step) % 5) / 5;
  }
};
template <class T>
step_result make_step(T& trainer) {
  numbers const b(trainer.steps() + 1);
  return trainer.step({b.inputs, b.labels});
}

/// Trains for eight steps with a hash at every second one and a checkpoint after the third. After
/// step `wrong` one bit of a weight is flipped, as a machine might do.
void train(std::string const& log_path, std::string const& checkpoint, long wrong = 0) {
  Trainer trainer({.seed = 3});
  // [record]
  step_log log(log_path, trainer, 2);  // a hash of all parameters at every second step
  while (trainer.steps() < 8) {
    step_result const r = make_step(trainer);
    log.record(trainer, r);
    if (trainer.steps() == 3) trainer.save(checkpoint);
    // [/record]
    if (trainer.steps() != wrong) continue;
    auto const weights = trainer.parameters();
    float& w = weights[2].values[5];
    w = std::bit_cast<float>(std::bit_cast<std::uint32_t>(w) ^ 1u);
    trainer.parameters_changed();
  }
}

template <class T = Trainer>
replay_report replayed(std::string const& log_path, std::string const& checkpoint,
                       long last = 100) {
  T trainer;
  // [replay]
  trainer.load(checkpoint);
  replay_report const r =
      replay(trainer, read_step_log(log_path), [&] { return make_step(trainer); }, last);
  // [/replay]
  return r;
}

}  // namespace

TEST_CASE("steps made again have the recorded bits, under any cut") {
  temporary_folder const folder;
  std::string const log = folder.file("steps.csv"), checkpoint = folder.file("run");
  train(log, checkpoint);
  auto const records = read_step_log(log);
  REQUIRE(records.size() == 8);
  CHECK(records[0].step == 1);
  CHECK_FALSE(records[0].parameters);
  CHECK(records[1].parameters);
  CHECK(records[7].runs_on == host::arithmetic_of(host::isa::portable));
  auto const check = [&](replay_report const& r) {
    CHECK(r.difference == "");
    CHECK(r.ok());
    CHECK(r.steps == 5);
    CHECK(r.hashes == 3);
  };
  check(replayed(log, checkpoint));
  check(replayed<Of<>>(log, checkpoint));
  check(replayed<Of<Stages<4>, ZeroBubbleH1, HostThreads<2>>>(log, checkpoint));
  CHECK(replayed(log, checkpoint, 5).steps == 2);
}

TEST_CASE("a wrong bit is found at the first hash, or by the step after it") {
  temporary_folder const folder;
  std::string const log = folder.file("steps.csv"), checkpoint = folder.file("run");
  train(log, checkpoint, 6);
  replay_report const r = replayed(log, checkpoint);
  CHECK_FALSE(r.ok());
  CHECK(r.steps == 4);  // 4, 5 and 6 are as recorded
  CHECK((r.difference.starts_with("step 7: the loss is ") ||
         r.difference.starts_with("step 7: the gradient norm is ")));
  CHECK(r.difference.find(", recorded was ") != std::string::npos);

  auto records = read_step_log(log);
  *records[3].parameters ^= 1;
  Trainer trainer;
  trainer.load(checkpoint);
  replay_report const other = replay(trainer, records, [&] { return make_step(trainer); });
  CHECK(other.difference ==
        "step 4: the parameters differ from those recorded; loss and gradient norm do not");
  CHECK((other.steps == 1 && other.hashes == 0));
}

TEST_CASE("the hash of parameters is that of their names and values") {
  Trainer a({.seed = 3}), b({.seed = 3}), c({.seed = 4});
  Of<Stages<4>, ZeroBubbleH1, HostThreads<2>> d({.seed = 3});
  CHECK(parameter_hash(a) == parameter_hash(b));
  CHECK(parameter_hash(a) == parameter_hash(d));
  CHECK(parameter_hash(a) != parameter_hash(c));
  std::string bytes(77, 'x');
  auto const hash = [&] { return detail::hash_of_bytes(bytes.data(), bytes.size(), 1); };
  auto const before = hash();
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] = char(bytes[bit / 8] ^ 1 << bit % 8);
    CHECK(hash() != before);
    bytes[bit / 8] = char(bytes[bit / 8] ^ 1 << bit % 8);
  }
  CHECK(hash() == before);
  bytes += '\0';
  CHECK(hash() != before);
}

TEST_CASE("a log that cannot be compared is refused in one sentence") {
  temporary_folder const folder;
  std::string const log = folder.file("steps.csv"), checkpoint = folder.file("run");
  train(log, checkpoint);
  Trainer trainer;
  trainer.load(checkpoint);
  auto const refused = [&](std::vector<step_record> const& records) {
    return sentence<data_error>(
        [&] { replay(trainer, records, [&] { return make_step(trainer); }); });
  };
  auto records = read_step_log(log);
  CHECK(refused({records.begin(), records.begin() + 3}) ==
        "replay: the log has no record of step 4");
  CHECK(refused({records[5]}) == "replay: the log has no record of step 4");
  records[3].runs_on = "AVX-512";
  CHECK(refused(records) ==
        std::string("replay: step 4 was recorded on AVX-512, whose bits are not those of ") +
            host::arithmetic_of(host::isa::portable));
  CHECK(trainer.steps() == 3);

  std::string const text = content(log), path = folder.write("other", "step,loss\n1,2\n");
  CHECK(sentence<data_error>([&] { read_step_log(path); }) == "'" + path + "' is no log of steps");
  folder.write("other", text + "9,12");  // of a program that was killed
  CHECK(read_step_log(path) == read_step_log(log));
  for (char const* row : {"9,12,34,,portable\n", "x,0000000000000000,0000000000000000,,p\n",
                          "9,000000000000000g,0000000000000000,,p\n", "9\n", "\n",
                          "9,0000000000000000,0000000000000000,1,p\n"}) {
    folder.write("other", text + row);
    CHECK(sentence<data_error>([&] { read_step_log(path); }) ==
          "'" + path + "': line 10 is no record of a step");
  }
  REQUIRE(::mkfifo(folder.file("pipe").c_str(), 0600) == 0);
  CHECK(sentence<file_error>([&] { read_step_log(folder.file("pipe")); }) ==
        "cannot read '" + folder.file("pipe") + "': it is not a file");
  CHECK(sentence<file_error>([&] { read_step_log(folder.file("none")); }) ==
        "cannot read '" + folder.file("none") + "': No such file or directory");
}

TEST_CASE("the log of a resumed run goes on where the run does") {
  temporary_folder const folder;
  std::string const log = folder.file("steps.csv"), checkpoint = folder.file("run");
  train(log, checkpoint);
  std::string const all = content(log);
  Trainer trainer;
  trainer.load(checkpoint);
  step_log again(log, trainer, 2);
  CHECK(read_step_log(log).size() == 3);
  while (trainer.steps() < 8) again.record(trainer, make_step(trainer));
  CHECK(content(log) == all);
}
