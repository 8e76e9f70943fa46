// SPDX-License-Identifier: BSL-1.0
//
// Metrics as a TensorBoard event file, which may be viewed during the run. The file is a sequence
// of records (TFRecord: length, checksum, bytes, checksum), each a protobuf message; the five
// fields that scalars need are encoded here by hand.
//
//     Event   { double wall_time = 1; int64 step = 2; string file_version = 3;
//               Summary summary = 5; SessionLog session_log = 7; }
//     Summary { repeated Value value = 1; }
//     Value   { string tag = 1; float simple_value = 2; }
//     SessionLog { enum { START = 1 } status = 1; }
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include <unistd.h>

#include <pipe/base/error.hpp>
#include <pipe/io/crc32c.hpp>
#include <pipe/metrics/metrics.hpp>
#include <pipe/io/record_file.hpp>
#include <pipe/base/utf8.hpp>

namespace pp {

namespace detail {

/// A protobuf message under construction. Fields are appended in call order, each as its key
/// (number << 3 | wire type) and its value.
///
/// source: Protocol Buffers, Encoding: wire types 0 (varint), 1 (64 bits), 2 (bytes), 5 (32 bits)
struct protobuf_message {
  std::string bytes;

  /// Wire type 0; a negative int64, cast to unsigned, takes ten bytes.
  void whole_number(int field, std::uint64_t value) {
    append_varint(std::uint64_t(field) << 3);
    append_varint(value);
  }
  /// Wire type 2: a string, or the bytes of an embedded message.
  void text(int field, std::string_view value) {
    append_varint(std::uint64_t(field) << 3 | 2);
    append_varint(value.size());
    bytes += value;
  }
  /// Wire type 1, a double.
  void number(int field, double value) {
    append_varint(std::uint64_t(field) << 3 | 1);
    append_little_endian(std::bit_cast<std::uint64_t>(value));
  }
  /// Wire type 5, a float.
  void number(int field, float value) {
    append_varint(std::uint64_t(field) << 3 | 5);
    append_little_endian(std::bit_cast<std::uint32_t>(value));
  }

  /// Appends the sizeof(Bits) bytes of an unsigned number, the lowest first, on any byte order.
  template <class Bits>
  void append_little_endian(Bits value) {
    for (std::size_t i = 0; i < sizeof value; ++i) bytes += char(value >> 8 * i & 0xFF);
  }

 private:
  /// Seven bits per byte, the lowest first; the high bit says that more follow.
  void append_varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes += char((value & 0x7F) | 0x80);
    bytes += char(value);
  }
};

/// The masked CRC of TFRecord. Masking avoids the weakness of a CRC over data that contains CRCs.
inline std::uint32_t masked_crc32c(std::string_view bytes) {
  return std::rotr(crc32c(std::as_bytes(std::span(bytes))), 15) + 0xA282EAD8;
}

/// A TFRecord: length (8 bytes), its checksum (4), data, its checksum (4), all little-endian.
///
/// source: TensorFlow, core/lib/io/record_writer.h
inline std::string framed_record(std::string_view data) {
  protobuf_message length, framed;
  length.append_little_endian(std::uint64_t(data.size()));
  framed.bytes = length.bytes;
  framed.append_little_endian(masked_crc32c(length.bytes));
  framed.bytes += data;
  framed.append_little_endian(masked_crc32c(data));
  return framed.bytes;
}

}  // namespace detail

/// A metrics sink that writes FOLDER/events.out.tfevents.SECONDS.HOST, with a numeric suffix if
/// that name is taken. Give `tensorboard --logdir` the folder or a parent. User-defined metrics
/// keep their names as tags: "valid/loss" is in the group "valid".
///
/// throws: file_error if the folder or the file cannot be written; data_error for a name that is
///         not UTF-8
class tensorboard_file {
 public:
  /// Creates the folder if it is missing, and a file with the version record that TensorBoard looks
  /// for. For a run that is resumed after `steps` steps the file also says that other files' later
  /// steps are void, and TensorBoard no longer shows those steps.
  explicit tensorboard_file(std::string const& folder, long steps = 0) : file_(open(folder)) {
    detail::protobuf_message first;
    first.number(1, now());
    first.text(3, "brain.Event:2");
    file_.append(detail::framed_record(first.bytes));
    if (steps <= 0) return;
    detail::protobuf_message start, event;
    start.whole_number(1, 1);
    event.number(1, now());
    event.whole_number(2, std::uint64_t(steps) + 1);
    event.text(7, start.bytes);
    file_.append(detail::framed_record(event.bytes));
  }

  std::string const& path() const { return file_.path(); }

  /// Appends one event: the step, the time and every number of the record under its name as the
  /// tag.
  void write(step_metrics const& m) {
    detail::protobuf_message summary, event;
    detail::for_all_numbers(
        m, [&](char const* name, double number, int) { add(summary, name, number); });
    for (detail::named_scalar const& s : m.scalars) {
      if (detail::valid_utf8_bytes(s.name) != s.name.size())
        throw data_error("metrics in '" + path() + "': the name " + detail::in_quotes(s.name) +
                         " is not UTF-8");
      add(summary, s.name, s.value);
    }
    event.number(1, now());
    event.whole_number(2, std::uint64_t(m.step));
    event.text(5, summary.bytes);
    file_.append(detail::framed_record(event.bytes));
  }

 private:
  /// Appends a Summary.Value: its tag (field 1) and its simple_value (field 2), a float.
  static void add(detail::protobuf_message& summary, std::string_view tag, double number) {
    detail::protobuf_message value;
    value.text(1, tag);
    value.number(2, float(number));
    summary.text(1, value.bytes);
  }

  /// Seconds since the Unix epoch.
  static double now() {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch())
        .count();
  }

  /// A file that did not exist before: runs that start in the same second get suffixes .1, .2, ...
  static files::record_file open(std::string const& folder) {
    std::error_code reason;
    std::filesystem::create_directories(folder, reason);
    if (reason) throw file_error("cannot make the folder '" + folder + "': " + reason.message());
    char host[256] = "";
    if (::gethostname(host, sizeof host - 1) != 0 || host[0] == 0) host[0] = '-';
    std::string const path = (std::filesystem::path(folder) / "events.out.tfevents.").string() +
                             std::to_string(std::uint64_t(now())) + '.' + host;
    for (int number = 0;; ++number) {
      std::string const name = number == 0 ? path : path + '.' + std::to_string(number);
      try {
        return files::record_file(name, files::record_file::start::fresh);
      } catch (file_error const&) {
        // The name is taken: the next suffix. Any other failure is the caller's.
        if (!std::filesystem::exists(name, reason)) throw;
      }
    }
  }

  files::record_file file_;
};

}  // namespace pp
