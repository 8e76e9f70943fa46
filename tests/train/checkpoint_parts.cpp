// SPDX-License-Identifier: BSL-1.0
//
// Checkpoints in parts that no process has written: a state may be in any part, and in pieces; what
// does not fit together is refused. tests/mpi/checkpoint_parts.cpp has those of processes.
#include "catch.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <unistd.h>

#include <pipe/checkpoint/checkpoint.hpp>
#include <pipe/weights/safetensors.hpp>

#include "laws/data.hpp"
#include "train/folder.hpp"

using namespace pp;

namespace {

struct Tiny : Model<Input<3>, Linear<8>, Tanh, Linear<2>, MSE> {};
using Trainer = Pipeline<Tiny, PortableHost, AdamW, MicroBatches<2>>;

/// A tensor of a part.
using entry = safetensors_entry;
using part = std::vector<entry>;

/// A run, its checkpoint in one file, and one with the same numbers in parts.
struct divided {
  temporary_folder folder;
  Trainer trainer;
  std::string path = folder.file("run"), parts_path = folder.file("parts");
  std::string bytes = saved();
  safetensors_file whole{std::as_bytes(std::span(bytes)), "bytes"};
  std::string const name = "optimizer/exp_avg/0.bias";  // of 8 numbers

  std::string saved() {
    trainer.step(laws::sample_batch<Trainer>(1).view());
    trainer.save(path, "here");
    return content(path);
  }
  entry of(std::string const& tensor) const {
    for (entry const& e : whole.tensors())
      if (e.name == tensor) return e;
    throw error("there is no " + tensor);
  }
  /// Numbers of the state with that name.
  entry piece(long begin, long end) const {
    entry e = of(name);
    e.bytes = e.bytes.subspan(4 * std::size_t(begin), 4 * std::size_t(end - begin));
    e.name = detail::piece_prefix + std::to_string(begin) + "/" + e.name;
    e.shape = {end - begin};
    return e;
  }
  /// All other states.
  part others() const {
    part all;
    for (entry const& e : whole.tensors())
      if (!e.name.starts_with("run/") && e.name != "checksums" && e.name != name) all.push_back(e);
    return all;
  }
  static void write(std::string const& to, part const& tensors,
                    detail::safetensors_metadata const& metadata) {
    detail::row_list<detail::safetensors_place> places;
    for (entry const& e : tensors) places.push_back({e.name, e.type, e.shape});
    detail::checkpoint_writer file(to, places, metadata);
    for (entry const& e : tensors) file.write_tensor(e.bytes);
    file.commit();
  }
  /// Writes the parts, and says why they cannot be loaded.
  std::string said_of(std::vector<part> const& parts) const {
    int const count = int(parts.size());
    for (int i = 1; i <= count; ++i) {
      detail::part_number const number{i, count};
      write(detail::name_of_part(parts_path, number, 7), parts[std::size_t(i) - 1],
            {{detail::part_key, number.text()}});
    }
    part numbers;
    for (entry const& e : whole.tensors())
      if (e.name.starts_with("run/")) numbers.push_back(e);
    detail::checkpoint_head list{{}, whole.metadata()};
    detail::list_parts(list, parts_path, count, 7);
    detail::row_list<std::byte> const sums = list.numbers[0].bytes();
    numbers.insert(numbers.begin(), {detail::parts_name,
                                     files::stored_type::u64,
                                     {long(sums.size() / 8)},
                                     {sums.data(), sums.size()}});
    write(parts_path, numbers, list.metadata);
    return said();
  }
  std::string said() const {
    return sentence<data_error>([&] {
      Trainer other({.seed = 2});
      resumed_run const run = other.load(parts_path);
      CHECK(run.position.text == "here");
      other.save(folder.file("same"), "here");
      CHECK((content(folder.file("same")) == bytes));
    });
  }
  std::string refused(std::string const& why) const {
    return "cannot load '" + parts_path + "': " + why;
  }
};

}  // namespace

TEST_CASE("states are in any part, and in pieces that follow each other", "[train]") {
  divided const d;
  part all = d.others();
  part second(all.begin() + long(all.size() / 2), all.end());
  all.resize(all.size() / 2);
  CHECK(d.said_of({all, second, {d.of(d.name)}}) == "no error");
  CHECK(d.said_of({all, second, {d.piece(0, 8)}}) == "no error");
  second.push_back(d.piece(5, 8));
  CHECK(d.said_of({all, second, {d.piece(3, 5)}, {d.piece(0, 3)}}) == "no error");
}
TEST_CASE("parts that do not fit together are refused", "[train]") {
  divided const d;
  part const all = d.others();
  std::string const apart =
                        d.refused("the pieces of tensor '" + d.name + "' do not follow each other"),
                    twice = d.refused("tensor '" + d.name + "' is in two of its files");
  CHECK(d.said_of({all, {d.piece(1, 8)}}) == apart);
  CHECK(d.said_of({all, {d.piece(0, 3), d.piece(4, 8)}}) == apart);
  CHECK(d.said_of({all, {d.piece(0, 5)}, {d.piece(4, 8)}}) == apart);
  CHECK(d.said_of({all, {d.of(d.name)}, {d.of(d.name)}}) == twice);
  CHECK(d.said_of({all, {d.of(d.name)}, {d.piece(0, 8)}}) == twice);
  CHECK(d.said_of({all, {d.piece(0, 7)}}) ==
        d.refused("it does not fit this trainer: tensor '" + d.name +
                  "': expected shape [8], found [7]"));
  CHECK(d.said_of({all}) ==
        d.refused("it does not fit this trainer: tensor '" + d.name + "': not in the file"));
  for (char const* const begin : {"piece/0", "piece//a", "piece/-1/a", "piece/x/a"}) {
    entry e = d.piece(0, 8);
    e.name = begin;
    CHECK_THAT(d.said_of({all, {e}}),
               Catch::EndsWith("tensor '" + e.name + "': no piece has such a name"));
  }
  // A part of another saving, and none.
  CHECK(d.said_of({all, {d.of(d.name)}}) == "no error");
  std::string const second = detail::name_of_part(d.parts_path, {2, 2}, 7), good = content(second);
  divided::write(second, {d.of(d.name)}, {{detail::part_key, "another"}});
  CHECK(d.said() ==
        d.refused("its part 2 of 2, '" + second + "', is not the file that was saved with it"));
  d.folder.write("parts.2-of-2.00000007", good.substr(0, good.size() - 1));
  CHECK_THAT(d.said(), Catch::StartsWith(d.refused("its part 2 of 2: '" + second + "': ")));
  ::unlink(second.c_str());
  CHECK(sentence<file_error>([&] { Trainer().load(d.parts_path); }) ==
        d.refused("its part 2 of 2: cannot read '" + second + "': No such file or directory"));
}
TEST_CASE("names of parts are told from all others", "[train]") {
  std::string const name = detail::name_of_part("a/step-12.safetensors", {2, 14}, 0x5f3a01c7);
  CHECK(name == "a/step-12.safetensors.2-of-14.5f3a01c7");
  CHECK(detail::whole_of_part(name) == "a/step-12.safetensors");
  for (char const* const other :
       {"", "a", "a.b", "a.2-of-4", "a.2-of-4.5f3a01c", "a.2-of-4.5f3a01cx", "a.-of-4.5f3a01c7",
        "a.2-of-.5f3a01c7", "a.2-off4.5f3a01c7", "2-of-4.5f3a01c7",
        "a.2-of-4.5f3a01c7.tmp-01234567-8-9"})
    CHECK(detail::whole_of_part(other).empty());
}
