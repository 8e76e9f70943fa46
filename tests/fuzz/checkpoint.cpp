// SPDX-License-Identifier: BSL-1.0
//
// Checkpoints of a small run that were changed: their bytes, or their tensors and metadata, with
// checksums that are right again, so that what lies behind them is reached. A trainer refuses one
// with a data_error and is as before, or takes it over, saves the same, and trains on. One wrong
// byte without that is refused.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pipe/checkpoint/checkpoint.hpp>
#include <pipe/checkpoint/checkpoint_file.hpp>
#include <pipe/checkpoint/checkpoints.hpp>
#include <pipe/io/crc32c.hpp>
#include <pipe/pipe.hpp>

#include "fuzz.hpp"

namespace {

using namespace pp::detail;

struct Net : pp::Model<pp::Input<3>, pp::Linear<2>, pp::MSE> {};
using Trainer = pp::Pipeline<Net, pp::AdamW, pp::MicroBatches<2>, pp::MicroBatchSize<2>,
                             pp::PortableHost, pp::Averaging<9, 10>>;

float const inputs[4 * 3] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6}, labels[4 * 2] = {1, 0, 0, 1, 1};

/// A checkpoint in memory.
struct contents {
  std::vector<safetensors_place> places;
  std::vector<std::vector<std::byte>> tensors;
  safetensors_metadata metadata;

  explicit contents(std::string const& path) {
    checkpoint_reader const file(path);
    for (std::size_t i = 0; i < file.size(); ++i) {
      places.push_back(file[i]);
      tensors.emplace_back(std::size_t(file[i].end - file[i].begin));
      file.read(i, tensors.back());
    }
    for (char const* name : {"format", "library", "optimizer", "position", checkpoint_key})
      if (kept_text const* const text = file.metadata(name)) metadata.set(name, *text);
  }
};

/// What the target begins with: two trainers' checkpoints, with and without a mini-batch that waits
/// for its step.
struct beginning {
  Trainer trainer{{.seed = 3}};
  std::vector<contents> files;
  std::vector<std::string> bytes;
  std::size_t loaded = 1;  // which of them the trainer is at

  beginning() {
    trainer.step({inputs, labels});
    keep();
    trainer.accumulate({inputs, labels});
    keep();
  }
  void keep() {
    trainer.save("good", "17");
    files.emplace_back("good");
    bytes.push_back(content("good"));
  }
};

/// One change of a tensor or of the metadata.
void change(contents& of, decisions& input) {
  auto& places = of.places;
  std::size_t const i = input.below(places.size()), j = input.below(places.size());
  if (places.empty()) return;
  extents& shape = places[i].shape;
  switch (input.byte() % 9) {
    case 0:
      places.erase(places.begin() + std::ptrdiff_t(i));
      of.tensors.erase(of.tensors.begin() + std::ptrdiff_t(i));
      return;
    case 1:
      places.push_back(places[i]);
      of.tensors.push_back(of.tensors[i]);
      places.back().name = std::string(places[i].name) + std::string(input.text(2));
      return;
    case 2: std::swap(places[i].name, places[j].name); return;
    case 3: places[i].type = pp::files::stored_type(input.byte() % 15); return;
    case 4:
      if (!shape.empty()) shape[j % shape.size()] = input.byte();
      return;
    case 5:
      input.byte() % 2 == 0 && !shape.empty()
          ? void(shape = extents(std::span<long const>(shape).first(shape.size() - 1)))
          : shape.push_back(1);
      return;
    case 6: {
      std::vector<std::byte>& tensor = of.tensors[i];
      std::size_t const at = input.below(tensor.size());
      std::string_view const bytes = input.text(std::min<std::size_t>(8, tensor.size() - at));
      std::memcpy(tensor.data() + at, bytes.data(), bytes.size());
      return;
    }
    case 7: {
      auto const entry = std::next(of.metadata.begin(), long(j % of.metadata.size()));
      of.metadata.set(std::string(entry->first), input.text(input.below(20)));
      return;
    }
    default: std::swap(places[i], places[j]); std::swap(of.tensors[i], of.tensors[j]);
  }
}

/// A file of changed tensors, with the checksums of what it has.
///
/// throws: data_error for tensors that no file can have
void write_changed(contents of, decisions input) {
  while (!input.is_empty()) change(of, input);
  std::vector<std::size_t> order;  // of the file
  std::map<std::string, std::size_t> by_name;
  for (std::size_t i = 0; i < of.places.size(); ++i) by_name.emplace(of.places[i].name, i);
  row_list<safetensors_place> placed;
  placed.append(of.places.data(), of.places.size());
  row_list<safetensors_place> given = placed;
  place_tensors(placed);
  checkpoint_writer to("changed", std::move(given), of.metadata);
  for (safetensors_place const& p : placed) {
    std::vector<std::byte>& tensor = of.tensors[by_name.at(p.name)];
    tensor.resize(std::size_t(std::min<std::uint64_t>(p.end - p.begin, 1 << 20)));
    to.write_tensor(tensor);
  }
  to.commit();
}

/// A file of changed bytes; its checksums are right again, if it has places for them.
void write_bytes(std::string bytes, decisions input) {
  while (!input.is_empty()) {
    std::size_t const at = input.below(bytes.size() + 1);
    std::uint8_t const how = input.byte();
    if (how % 4 == 0)
      bytes.insert(at, input.text(1 + how / 32));
    else if (how % 4 == 1)
      bytes.erase(at, 1 + how / 32);
    else if (at < bytes.size())
      bytes[at] = char(input.byte());
  }
  std::span const all = std::as_writable_bytes(std::span(bytes.data(), bytes.size()));
  try {
    pp::safetensors_reader const file(std::as_bytes(all), "changed");
    auto const& tensors = file.tensors();
    std::size_t const data = file.preamble().size();
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      std::size_t const begin = data + tensors.back().begin + 4 * i;
      std::span const checked = i == 0 ? all.first(data)
                                       : all.subspan(data + tensors[i - 1].begin,
                                                     tensors[i - 1].end - tensors[i - 1].begin);
      if (begin + 4 <= all.size()) put_little_endian(crc32c(checked), all.data() + begin);
    }
  } catch (pp::data_error const&) {
  }
  put("changed", bytes);
}

/// A file with one byte that is another, and all checksums as they were: no trainer takes it.
void refuse_one_byte(beginning& from, std::string bytes, decisions input) {
  std::size_t const at = input.below(bytes.size());
  bytes[at] = char(bytes[at] ^ (1 + input.byte() % 255));
  put("changed", bytes);
  try {
    from.trainer.load("changed");
  } catch (pp::data_error const&) {
    return;
  }
  law(false);
}

/// Whether two checkpoints have the same run: their tensors, and the position in the data.
bool is_same(contents const& a, contents const& b) {
  return a.tensors == b.tensors && a.metadata.at("position") == b.metadata.at("position") &&
         std::equal(a.places.begin(), a.places.end(), b.places.begin(), b.places.end(),
                    [](auto const& p, auto const& q) { return p.name == q.name; });
}

/// Its tensors in the order of their names, without the scale of the loss: this trainer has none.
contents ordered(contents of) {
  std::map<std::string, std::size_t> by_name;
  for (std::size_t i = 0; i < of.places.size(); ++i) by_name.emplace(of.places[i].name, i);
  contents all = of;
  std::size_t next = 0;
  for (auto const& [name, i] : by_name) {
    all.places[next] = of.places[i];
    all.tensors[next++] = name == "run/loss_scale" ? std::vector<std::byte>(16) : of.tensors[i];
  }
  if (!all.metadata.contains("position")) all.metadata.set("position", "");
  return all;
}

void train_on(Trainer& trainer) {
  try {
    trainer.step({inputs, labels});
  } catch (pp::not_finite const&) {  // numbers of a checkpoint may be any
  }
}

void load(beginning& from, std::size_t which) {
  Trainer& trainer = from.trainer;
  pp::found_checkpoint const found = pp::newest_checkpoint(".");
  law(found.path.empty());  // no file here has such a name
  pp::resumed_run run;
  try {
    run = trainer.load("changed");
  } catch (pp::data_error const&) {
    trainer.save("again", "17");
    return law(content("again") == from.bytes[which]);
  }
  trainer.save("again", run.position);
  law(run.steps == trainer.steps() && run.accumulated == trainer.accumulated());
  law(is_same(ordered(contents("again")), ordered(contents("changed"))));
  train_on(trainer);
  from.loaded = from.files.size();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static beginning from;
  decisions input({data, size});
  std::uint8_t const how = input.byte();
  std::size_t const which = how / 2 % 2;
  if (std::exchange(from.loaded, which) != which) {
    put("good", from.bytes[which]);
    from.trainer.load("good");
  }
  if (how >= 128) {
    refuse_one_byte(from, from.bytes[which], input);
    return 0;
  }
  try {
    how % 2 == 0 ? write_changed(from.files[which], input) : write_bytes(from.bytes[which], input);
  } catch (pp::data_error const&) {
    return 0;
  }
  load(from, which);
  return 0;
}
