// SPDX-License-Identifier: BSL-1.0
//
// Any bytes as the files that a resumed run reads back and goes on with: metrics as CSV and as JSON
// lines, the log of its steps, and the list of its checkpoints. Each is refused in a sentence, left
// alone, or continued, and no byte is lost.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <pipe/checkpoint/checkpoint_folder.hpp>
#include <pipe/checkpoint/step_log.hpp>
#include <pipe/metrics/metrics.hpp>
#include <pipe/report/json_lines.hpp>

#include "fuzz.hpp"

namespace {

/// As much of a trainer as a log of steps needs: one without parameters.
struct stand_in {
  using element = float;
  struct parameter {
    std::string name;
    std::span<float const> values;
  };
  struct all_processes {
    bool writes_files() const { return true; }
    std::string arithmetic() const { return "a,machine"; }
    std::span<float const> values_of(parameter const& p, std::vector<float>&) const {
      return p.values;
    }
  };
  long done;

  all_processes processes() const { return {}; }
  long steps() const { return done; }
  std::vector<parameter> parameters() const { return {}; }
};

/// Goes on with `file` after `steps` steps: resumed() returns the sink, write(sink) appends a
/// record. Either the file is what it was and another one is written, or it is continued, and what
/// was cut off is in FILE.dropped.
template <class Resumed, class Write>
void goes_on(std::string_view bytes, Resumed const& resumed, Write const& write) {
  std::string const file = "records", dropped = "records.dropped";
  std::filesystem::remove(dropped);
  put(file, bytes);
  std::string path, before;
  {
    auto sink = resumed(file);
    path = sink.path();
    before = content(path);
    write(sink);
  }
  std::string const after = content(path);
  law(after.starts_with(before) && after.size() > before.size() && after.back() == '\n');
  if (path == file) {
    law(before + content(dropped) == bytes);
  } else {
    law(content(file) == bytes && !std::filesystem::exists(dropped));
    std::filesystem::remove(path);
  }
}

void read_metrics(decisions input, bool as_json) {
  long const steps = long(input.below(300));
  pp::step_metrics const next{.step = steps + 1, .scalars = {{"a", 1}}};
  auto const write = [&](auto& sink) { sink.write(next); };
  std::string_view const bytes = input.rest();
  if (as_json)
    goes_on(bytes, [&](auto const& f) { return pp::json_lines_file::resumed(f, steps); }, write);
  else
    goes_on(
        bytes, [&](auto const& f) { return pp::metrics_file::resumed(f, steps, {"a"}); }, write);
}

void read_steps(decisions input) {
  stand_in trainer{long(input.below(300))};
  std::string_view const bytes = input.rest();
  goes_on(
      bytes, [&](auto const& f) { return pp::step_log(f, trainer, 2); },
      [&](pp::step_log& log) {
        std::string const path = log.path();
        ++trainer.done;
        log.record(trainer, pp::step_result{.loss = 1.5, .gradient_norm = 2});
        // What it goes on with may have lines that are no records.
        try {
          std::vector<pp::step_record> const all = pp::read_step_log(path);
          law(!all.empty() && all.back().step == trainer.done && all.back().runs_on == "a machine");
          for (pp::step_record const& r : all) law(r.step >= 1);
        } catch (pp::data_error const&) {
          law(path == "records");
        }
      });
}

void read_list(decisions input) {
  std::filesystem::create_directory("run");
  put("run/latest", input.rest());
  pp::detail::checkpoint_folder const folder("run");
  std::vector<pp::detail::listed_checkpoint> const first = folder.listed();
  folder.list(first);
  std::vector<pp::detail::listed_checkpoint> const second = folder.listed();
  law(first.size() == second.size());
  std::string const text = content("run/latest");
  folder.list(second);
  law(content("run/latest") == text);
  for (std::size_t i = 0; i < first.size(); ++i) {
    law(first[i].step == second[i].step && first[i].step >= 0);
    law(std::isnan(first[i].loss) == std::isnan(second[i].loss));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  decisions input({data, size});
  int const which = input.byte() % 4;
  try {
    if (which < 2)
      read_metrics(input, which == 1);
    else if (which == 2)
      read_steps(input);
    else
      read_list(input);
  } catch (pp::data_error const&) {
  }
  return 0;
}
