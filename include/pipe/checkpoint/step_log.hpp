// SPDX-License-Identifier: BSL-1.0
//
// A log of the results of each step, bit by bit: loss, gradient norm, and now and then a hash of
// all parameters. A step that is made again has the same bits on any machine whose kernels have the
// same arithmetic: see checkpoint/replay.hpp.
//
//     step,loss,gradient_norm,parameters,runs_on
//     1,3ff8a3d70a3d70a4,4002666666666666,,AVX-512
//     2,3ff7ae147ae147ae,4001eb851eb851ec,8c5f2d0b7a91e634,AVX-512
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/io/file_bytes.hpp>
#include <pipe/io/record_file.hpp>
#include <pipe/metrics/metrics.hpp>
#include <pipe/runtime/job.hpp>
#include <pipe/weights/parameter_hash.hpp>

namespace pp {

/// The results of a step, to the bit.
struct step_record {
  long step = 0;
  std::uint64_t loss = 0, gradient_norm = 0;  ///< the bits of the doubles of step_result
  std::optional<std::uint64_t> parameters{};  ///< parameter_hash() after the step
  std::string runs_on{};                      ///< the arithmetic of the kernels, or the device

  friend bool operator==(step_record const&, step_record const&) = default;
};

namespace detail {

inline constexpr char step_log_heading[] = "step,loss,gradient_norm,parameters,runs_on\n";

/// A text without commas for what decides the bits of a trainer's steps: the arithmetic of its
/// kernels, or the device.
template <class Trainer>
std::string logged_arithmetic(Trainer const& trainer) {
  std::string name = trainer.processes().arithmetic();
  for (char& c : name)
    if (c == ',' || c == '\n') c = ' ';
  return name;
}

/// The record of the last step of a trainer, with this arithmetic. `hashes`: with a hash of the
/// parameters.
template <class Trainer>
step_record record_of(Trainer& trainer, step_result const& r, bool hashes,
                      std::string const& arithmetic) {
  step_record made{trainer.steps(),
                   std::bit_cast<std::uint64_t>(r.loss),
                   std::bit_cast<std::uint64_t>(r.gradient_norm),
                   {},
                   arithmetic};
  if (hashes) made.parameters = parameter_hash(trainer);
  return made;
}

}  // namespace detail

/// The file of such a log, which a resumed run continues as metrics_file::resumed does. If ranks
/// are in several processes, all processes construct a step_log and call record(); one process
/// writes the file.
class step_log {
 public:
  /// every: a hash of the parameters is recorded after each step whose number `every` divides
  ///
  /// throws: file_error
  template <class Trainer>
  step_log(std::string const& path, Trainer& trainer, long every = 100)
      : every_(every), arithmetic_(detail::logged_arithmetic(trainer)) {
    if (!trainer.processes().writes_files()) return;
    auto const step_of = [](std::string_view row) { return detail::leading_number(row, ','); };
    file_ = files::record_file::resumed(path, trainer.steps(), detail::step_log_heading, step_of);
    if (!file_->is_resumed()) file_->append(detail::step_log_heading);
  }

  /// The name of the file; empty in a process that does not write it.
  std::string path() const { return file_ ? file_->path() : ""; }

  /// Records the step that the trainer has just made. A skipped step (FP16) is not recorded.
  ///
  /// throws: file_error
  template <class Trainer>
  void record(Trainer& trainer, step_result const& r) {
    if (r.skipped) return;
    bool const hashes = every_ > 0 && trainer.steps() % every_ == 0;
    step_record const made = detail::record_of(trainer, r, hashes, arithmetic_);
    if (!file_) return;
    char row[120], hash[17] = "";
    auto const wide = [](std::uint64_t bits) { return static_cast<unsigned long long>(bits); };
    if (made.parameters) std::snprintf(hash, sizeof hash, "%016llx", wide(*made.parameters));
    std::snprintf(row, sizeof row, "%ld,%016llx,%016llx,%s,", made.step, wide(made.loss),
                  wide(made.gradient_norm), hash);
    file_->append(row + made.runs_on + '\n');
  }

 private:
  long every_;
  std::string arithmetic_;
  std::optional<files::record_file> file_;
};

/// Reads a log. A last line without an end, which a killed program has left, is passed over.
///
/// throws: file_error if the file cannot be read; data_error that names a line that is no record
inline std::vector<step_record> read_step_log(std::string const& path) {
  std::string const all = detail::file_bytes(path);
  std::string_view text = all;
  std::string_view const heading = detail::step_log_heading;
  if (!text.starts_with(heading)) throw data_error("'" + path + "' is no log of steps");
  text.remove_prefix(heading.size());
  std::vector<step_record> records;
  for (std::size_t end; (end = text.find('\n')) != text.npos; text.remove_prefix(end + 1)) {
    std::string_view row = text.substr(0, end);
    auto const cell = [&] {
      std::string_view const first = row.substr(0, row.find(','));
      row.remove_prefix(first.size() < row.size() ? first.size() + 1 : row.size());
      return first;
    };
    bool is_good = true;
    auto const hex = [&](std::string_view digits) {
      std::uint64_t bits = 0;
      char const* const last = digits.data() + digits.size();
      auto const [read, fault] = std::from_chars(digits.data(), last, bits, 16);
      is_good = is_good && digits.size() == 16 && read == last && fault == std::errc{};
      return bits;
    };
    step_record r;
    r.step = detail::leading_number(row, ',');
    cell();
    r.loss = hex(cell());
    r.gradient_norm = hex(cell());
    if (std::string_view const hash = cell(); !hash.empty()) r.parameters = hex(hash);
    r.runs_on = row;
    if (!is_good || r.step < 1)
      throw data_error("'" + path + "': line " + std::to_string(records.size() + 2) +
                       " is no record of a step");
    records.push_back(std::move(r));
  }
  return records;
}

}  // namespace pp
