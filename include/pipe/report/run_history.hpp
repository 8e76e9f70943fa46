// SPDX-License-Identifier: BSL-1.0
//
// The metrics of a run in bounded memory: a curve for each number with at most `most_points`
// points. When a curve is full, every two neighbours become one point, which keeps mean, least and
// greatest value: a spike stays visible however long the run is.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pipe/base/config.hpp>
#include <pipe/base/real_text.hpp>
#include <pipe/metrics/metrics.hpp>
#include <pipe/report/escape.hpp>
#include <pipe/report/json.hpp>

namespace pp::detail {

/// A number in JSON, with six digits; null if it is not finite.
inline std::string json_real(double x) {
  return std::isfinite(x) ? std::string(real_text(x, 6)) : "null";
}

/// A point of a curve: the finite values of one metric in some consecutive records. count 0: there
/// is no finite value.
struct history_point {
  double sum = 0, low = 0, high = 0;
  long count = 0;

  /// Joins the values of another point.
  void add(history_point const& p) {
    if (p.count == 0) return;
    low = count == 0 ? p.low : std::min(low, p.low);
    high = count == 0 ? p.high : std::max(high, p.high);
    sum += p.sum;
    count += p.count;
  }
  /// A point of one value; a point without a value if the value is not finite.
  static history_point of(double x) {
    return std::isfinite(x) ? history_point{x, x, x, 1} : history_point{};
  }
};

/// The curves of a run. A copy is a consistent state.
///
/// law: sums, least and greatest values over all points of a curve equal those over all its records
/// law: at most most_curves * most_points points, so about 800 KB, however many records there are
class run_history {
 public:
  static constexpr std::size_t most_points = 1024;  ///< even
  static constexpr std::size_t most_curves = 24;    ///< further metrics are left out

  /// law:  without memory nothing changes, but for curves that have no values yet
  /// cost: two searches for the name of each metric
  void add(step_metrics const& m) {
    for_all_numbers(m, [&](char const* name, double, int) { begin_curve(name); });
    for (named_scalar const& s : m.scalars) begin_curve(s.name);
    if (steps_.empty() || records_ == stride_) begin_point();
    if (steps_.size() == 1 && records_ == 0) begin_ = m.step;
    // Nothing fails from here on.
    ++records_;
    steps_.back() = m.step;
    for_all_numbers(m, [&](char const* name, double x, int) { enter(name, x); });
    for (named_scalar const& s : m.scalars) enter(s.name, s.value);
  }

  /// The news for a reader that has `points` points of the state `version`, as members of a JSON
  /// object: all points if earlier points have changed since. The last point that the reader has is
  /// sent again, as it may have been incomplete.
  ///
  ///     version    of the state; -1 is none
  ///     first      the place of the first point that follows, in the reader's arrays
  ///     stride     records of a point
  ///     begin      the first step of all, where the axis of steps begins
  ///     steps      the last step of each point
  ///     curves     name, mean, and low and high if stride is more than 1; null: no finite value
  std::string json_since(long version, std::size_t points) const {
    bool const continues = version == version_ && points <= steps_.size();
    std::size_t const first = continues && points > 0 ? points - 1 : 0;
    std::size_t const count = steps_.size() - first;
    auto const one = [&](std::size_t i) {
      auto const row = [&](auto value) {
        return json_array(count, [&](std::size_t at) {
          history_point const& p = curves_[i].points[first + at];
          return p.count == 0 ? "null" : json_real(value(p));
        });
      };
      std::string text = "{\"name\":" + json_string(curves_[i].name) + ",\"mean\":" +
                         row([](history_point const& p) { return p.sum / double(p.count); });
      if (stride_ > 1)
        text += ",\"low\":" + row([](history_point const& p) { return p.low; }) +
                ",\"high\":" + row([](history_point const& p) { return p.high; });
      return text + "}";
    };
    return "\"version\":" + std::to_string(version_) + ",\"first\":" + std::to_string(first) +
           ",\"stride\":" + std::to_string(stride_) + ",\"begin\":" + std::to_string(begin_) +
           ",\"steps\":" +
           json_array(count, [&](std::size_t at) { return std::to_string(steps_[first + at]); }) +
           ",\"curves\":" + json_array(curves_.size(), one);
  }

 private:
  // The values of one metric.
  struct curve {
    std::string name;
    std::vector<history_point> points;  // one for each element of steps_
  };

  /// Adds a point without values, for the next `stride_` records.
  void begin_point() {
    if (steps_.size() == most_points) halve();
    make_room(steps_);
    for (curve& c : curves_) make_room(c.points);
    steps_.push_back(0);
    for (curve& c : curves_) c.points.emplace_back();
    records_ = 0;
  }
  /// Takes memory for one more element.
  template <class T>
  static void make_room(std::vector<T>& of) {
    if (of.size() == of.capacity()) of.reserve(2 * of.size() + 1);
  }
  auto find(std::string_view name) {
    return std::find_if(curves_.begin(), curves_.end(),
                        [&](curve const& c) { return c.name == name; });
  }
  /// Adds a curve of this name without values, unless there is such a curve or no room for it.
  void begin_curve(std::string_view name) {
    if (curves_.size() == most_curves || find(name) != curves_.end()) return;
    curves_.push_back({std::string(name), std::vector<history_point>(steps_.size())});
    ++version_;
  }
  /// Adds a value to the last point of a curve.
  void enter(std::string_view name, double x) {
    if (auto const at = find(name); at != curves_.end())
      at->points.back().add(history_point::of(x));
  }
  /// Makes one point of every two, so that as many further steps fit.
  void halve() {
    for (std::size_t i = 0; i < most_points / 2; ++i) {
      steps_[i] = steps_[2 * i + 1];
      for (curve& c : curves_) {
        history_point both = c.points[2 * i];
        both.add(c.points[2 * i + 1]);
        c.points[i] = both;
      }
    }
    steps_.resize(most_points / 2);
    for (curve& c : curves_) c.points.resize(most_points / 2);
    stride_ *= 2;
    ++version_;
  }

  long begin_ = 0;           // the first step
  std::vector<long> steps_;  // the last of each point
  std::vector<curve> curves_;
  long stride_ = 1, records_ = 0;  // of a point; of the last point
  long version_ = 0;               // changes whenever earlier points do
};

}  // namespace pp::detail
