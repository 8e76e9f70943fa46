// SPDX-License-Identifier: BSL-1.0
//
// Drawings as a trace for Perfetto (ui.perfetto.dev) and chrome://tracing: a process per drawing
// with a track per rank, parts of actions as nested slices, transfers as arrows, and a memory
// counter per rank.
//
// source: Trace Event Format, events M, X, s, f and C
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <pipe/report/drawing.hpp>
#include <pipe/report/escape.hpp>

namespace pp {

namespace detail {

/// Writer of trace events.
///
/// units: microseconds; nanoseconds become thousandths, any other time unit one microsecond
/// law:   slices of a track nest or are disjoint; both ends of an arrow are in slices; times of a
///        track ascend
class trace_writer {
 public:
  /// Adds a drawing as a further process, with a thread for each rank.
  void add(drawing const& d) {
    ++process_;
    nanoseconds_ = d.words.time_unit == "ns" ? 1 : 1000;
    name("process_name", 0, d.words.title);
    for (std::size_t rank = 0; rank < d.ranks.size(); ++rank) {
      std::string const label = d.name_of(rank);
      name("thread_name", rank, label);
      slices(d, rank);
      std::string const counter =
          "memory of " + label + (d.words.memory_unit.empty() ? "" : ", " + d.words.memory_unit);
      for (memory_point const& p : d.ranks[rank].memory)
        event("C", rank, p.time * nanoseconds_, json_string(counter),
              ",\"args\":{\"live\":" + std::to_string(p.live) + "}");
    }
    for (drawn_transfer const& t : d.transfers) {
      drawn_action const& from = d.at(t.from_rank, t.from);
      std::string const id = ",\"cat\":\"transfer\",\"id\":" + std::to_string(++arrows_);
      std::string const what =
          json_string(from.what.kind == action_kind::forward ? "activation" : "gradient");
      // An arrow belongs to the slice at its time, and slices exclude their end. A measured action
      // may have published its result before its end.
      drawn_action const& to = d.at(t.to_rank, t.to);
      long const sent =
          std::max(from.start * nanoseconds_,
                   std::min(d.ready(t.from_rank, t.from), to.start) * nanoseconds_ - 1);
      // By clocks that disagree it may be read before it is sent.
      long const read =
          std::max(to.start * nanoseconds_, std::min(sent, to.end * nanoseconds_ - 1));
      event("s", std::size_t(t.from_rank), sent, what, id);
      event("f", std::size_t(t.to_rank), read, what, id + ",\"bp\":\"e\"");
    }
  }

  std::string str() const {
    return "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n" + events_ + "\n]}\n";
  }

 private:
  /// The actions of a rank, and the kernels inside them.
  void slices(drawing const& d, std::size_t rank) {
    auto const& details = d.ranks[rank].details;
    std::size_t next = 0;
    for (drawn_action const& a : d.ranks[rank].actions) {
      std::string const label =
          std::string(short_name(a.what.kind)) + std::to_string(a.what.micro_batch);
      slice(rank, a.start, a.end, label, short_name(a.what.kind),
            ",\"args\":{\"chunk\":" + std::to_string(a.what.chunk) +
                ",\"micro_batch\":" + std::to_string(a.what.micro_batch) +
                ",\"version\":" + std::to_string(a.what.version) +
                ",\"critical\":" + (a.critical ? "true" : "false") +
                (a.what.with_next ? ",\"with_next\":true}" : "}"));
      // Details are in order, each inside an action: one pass over both lists.
      for (; next < details.size() && details[next].end <= a.end; ++next)
        slice(rank, details[next].start, details[next].end, details[next].name, "detail", "");
    }
  }
  /// A slice of a track (event X). `more`: further members, each after a comma.
  void slice(std::size_t rank, long start, long end, std::string_view label, char const* category,
             std::string const& more) {
    event("X", rank, start * nanoseconds_, json_string(label),
          ",\"dur\":" + microseconds((end - start) * nanoseconds_) + ",\"cat\":\"" + category +
              "\"" + more);
  }
  /// The name of a process or of a track (event M).
  void name(char const* what, std::size_t rank, std::string_view value) {
    event("M", rank, 0, json_string(what), ",\"args\":{\"name\":" + json_string(value) + "}");
  }
  /// An event at a time in nanoseconds. `label`: a JSON string; `more`: members, each after a
  /// comma.
  void event(char const* phase, std::size_t rank, long time, std::string const& label,
             std::string const& more) {
    events_ += (events_.empty() ? "{\"ph\":\"" : ",\n{\"ph\":\"") + std::string(phase) +
               "\",\"pid\":" + std::to_string(process_) + ",\"tid\":" + std::to_string(rank) +
               ",\"ts\":" + microseconds(time) + ",\"name\":" + label + more + "}";
  }
  /// Nanoseconds as microseconds: 1234567 -> "1234.567".
  /// needs: nanoseconds >= 0
  static std::string microseconds(long nanoseconds) {
    std::string const digits = std::to_string(1000 + nanoseconds % 1000).substr(1);
    return std::to_string(nanoseconds / 1000) + (digits == "000" ? "" : "." + digits);
  }

  std::string events_;
  int process_ = 0;
  long arrows_ = 0, nanoseconds_ = 1;  // nanoseconds of a unit of the drawing's time
};

}  // namespace detail

namespace drawings {

/// Drawings as a trace file for Perfetto or chrome://tracing, one process each.
inline std::string as_trace(std::vector<drawing const*> const& drawings) {
  detail::trace_writer writer;
  for (drawing const* d : drawings) writer.add(*d);
  return writer.str();
}
/// A drawing as a trace file.
inline std::string as_trace(drawing const& d) { return as_trace(std::vector<drawing const*>{&d}); }
/// A prediction and a measurement as two processes of one trace file.
inline std::string as_trace(drawing const& predicted, drawing const& measured) {
  return as_trace(std::vector<drawing const*>{&predicted, &measured});
}

}  // namespace drawings

}  // namespace pp
