// SPDX-License-Identifier: BSL-1.0
//
// Measured times of a model's layers as text: beside the estimates, and with the cut of a pipeline
// before and after, so that a user sees whether a build with the profile gains anything.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <cstddef>
#include <string>
#include <vector>

#include <pipe/base/type_name.hpp>
#include <pipe/plan/compiled/measured_cut.hpp>
#include <pipe/plan/profile.hpp>
#include <pipe/report/amounts.hpp>
#include <pipe/report/text_table.hpp>

namespace pp {

namespace detail {

/// Of nanoseconds: 812345 -> "812.3 us"; from 10 ms up "10.0 ms"
template <class = void>
std::string readable_microseconds(long nanoseconds) {
  double const us = double(nanoseconds) / 1000;
  return us < 10000 ? readable_real(us, 1) + " us" : readable_real(us / 1000, 1) + " ms";
}

/// Table of the layers: measured times, and the share of the whole beside the estimated share.
template <class = void>
std::string explain_layers(layer_times const& times, std::vector<long> const& estimates) {
  double measured = 0, estimated = 0;
  for (layer_time const& t : times.each) measured += double(t.all());
  for (long const e : estimates) estimated += double(e);
  auto const share = [](long part, double all) {
    return readable_percent(all > 0 ? double(part) / all : 0);
  };
  text_table table({"layer", "F", "B", "W", "measured", "estimated"}, {0});
  for (std::size_t l = 0; l < times.each.size(); ++l) {
    layer_time const& t = times.each[l];
    table.add({std::to_string(l) + " " + times.layers[l], readable_microseconds(t.forward),
               readable_microseconds(t.backward_input), readable_microseconds(t.backward_weight),
               share(t.all(), measured), share(estimates[l], estimated)});
  }
  return table.str();
}

/// Adds a cut to a table of cuts.
template <class = void>
void add_cut(text_table& table, std::string const& by, judged_cut const& cut) {
  std::string begins;
  for (int const first : cut.first_layer)
    begins += (begins.empty() ? "" : ", ") + std::to_string(first);
  table.add({by, begins, readable_microseconds(cut.bottleneck), readable_percent(cut.bubble),
             readable_microseconds(cut.makespan)});
}

}  // namespace detail

/// Measured times of the layers of pipeline P's model as text: their spread; F, B and W of each
/// layer, and its share of the whole as measured and as estimated; and the cut by P's partition
/// policy and by these times, with the slowest stage, the bubble and the length of the step that
/// each makes by these times. P: a Pipeline or Planned, of as many stages as are to be cut
///
/// throws: error for times of another model, or if the schedule is not valid for the times
template <class P>
std::string explain_profile(detail::layer_times const& times) {
  using compiled = typename P::compiled;
  using chosen = typename compiled::chosen;
  detail::cut_judge<typename compiled::model, chosen> const judge(times.each);
  std::string text = "times of a micro-batch, of " + times.what + "\n";
  text += detail::explain_layers(times, judge.estimates());
  detail::text_table table({"cut", "stages begin at", "slowest stage", "bubble", "step"}, {0, 1});
  detail::add_cut(table, std::string(detail::type_name<typename chosen::partition>()),
                  judge.before());
  detail::add_cut(table, "by these times", judge.after());
  return text + std::to_string(chosen::stages) + " stages, " + chosen::schedule::name +
         ", by these times:\n" + table.str();
}

}  // namespace pp
