// SPDX-License-Identifier: BSL-1.0
//
// The program: plan, train, validate, write on. A template over the trainer, so that every schedule
// shares it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <numbers>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <pipe/data/text.hpp>
#include <pipe/report/about_run.hpp>
#include <pipe/report/explain.hpp>
#include <pipe/report/kernels.hpp>
#include <pipe/report/trainer_drawing.hpp>
#include <pipe/train/stop_request.hpp>
#include <pipe/weights/weights.hpp>

#include "../outputs.hpp"
#include "compiled_in.hpp"
#include "device_text.hpp"
#include "held_out.hpp"
#include "keep.hpp"
#include "replay.hpp"
#include "sample.hpp"
#include "show.hpp"
#include "standard_library.hpp"
#include "watch.hpp"

inline double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// On a host a class of the same members, of which there is no object.
struct no_device_text {
  no_device_text(pp::text_data const&, int, std::size_t) {}
  void draw(std::uint64_t, std::uint64_t) {}
  std::span<int const> tokens() const { return {}; }
  std::span<int const> labels() const { return {}; }
};
template <class Trainer>
using text_on_device =
    std::conditional_t<Trainer::compiled::backend::has_own_memory, device_text, no_device_text>;
template <class Trainer>
using batch_on_device = std::conditional_t<Trainer::compiled::backend::has_own_memory,
                                           typename Trainer::device_batch, typename Trainer::batch>;

/// The mini-batches draw(step) of steps [first, last), as a range.
template <class Draw>
struct drawn_steps {
  struct iterator {
    Draw const* draw;
    long step;
    auto operator*() const { return (*draw)(step); }
    iterator& operator++() { return ++step, *this; }
    bool operator==(iterator const& other) const { return step == other.step; }
  };
  Draw const& draw;
  long first, last;
  iterator begin() const { return {&draw, first}; }
  iterator end() const { return {&draw, last}; }
};

template <class Trainer>
void run(options const& o) {
  std::string const plan = pp::explain<Trainer>() +
                           (profiled ? "times and cuts by the profile of the layers\n" : "") + "\n";
  if (o.plan) {
    std::printf("%s%s", plan.c_str(), pp::explain_kernels<Trainer>().c_str());
    return;
  }
  constexpr int context = Trainer::inputs_per_sample, tokens_per_step = Trainer::samples * context;
  auto const source = o.data.empty() ? standard_library_headers() : std::filesystem::path(o.data);
  pp::text_data const text(source, context);
  std::string const run_text = text_of_run<Trainer>(o, text.bytes());
  earlier_run const earlier(o, run_text);
  if (process() == 0) require_writable({o.save, o.page});
  std::printf("%stext: %s, %s in %s\n", plan.c_str(), source.string().c_str(),
              pp::console::readable_bytes(text.bytes()).c_str(),
              pp::console::counted(text.files(), "file").c_str());

  // [train]
  pp::learning_rate_schedule const schedule{
      .warm_up = std::min(100L, o.steps / 10), .steps = std::max(1L, o.steps), .floor = 0.1};
  Trainer trainer(
      {.seed = o.seed,
       .optimizer = {.learning_rate = o.learning_rate, .beta2 = 0.99, .weight_decay = 0.1},
       .learning_rate_factor = schedule,
       .clip_norm = has_no_flush<Trainer> ? 0.0 : 1.0,  // no stage waits for the norm of all
       .runtime = {.timeline = true}});
  if (!o.load.empty()) pp::load_weights(trainer, o.load);
  std::vector<int> tokens(tokens_per_step), labels(tokens_per_step);
  std::unique_ptr<text_on_device<Trainer>> gathered;
  if (o.on_device)
    gathered = std::make_unique<text_on_device<Trainer>>(text, context, tokens.size());
  auto const train = [&](long last, auto const& see) {  // up to step `last`
    auto const on_each = [&](auto const& draw) {
      trainer.train(
          drawn_steps<std::remove_cvref_t<decltype(draw)>>{draw, trainer.steps() + 1, last + 1},
          see);
    };
    if (gathered)
      on_each([&](long step) {
        gathered->draw(o.seed, std::uint64_t(step));
        return batch_on_device<Trainer>{gathered->tokens(), gathered->labels()};
      });
    else
      on_each([&](long step) {
        text.draw(o.seed, std::uint64_t(step), tokens, labels);
        return typename Trainer::batch{tokens, labels};
      });
  };
  if (o.replay > 0)
    return replay_steps(o, trainer, [&] {
      pp::step_result made;
      train(trainer.steps() + 1, [&](pp::step_result const& r) { made = r; });
      return made;
    });
  std::optional<run_checkpoints<Trainer>> checkpoints;
  if (o.steps > 0) checkpoints.emplace(o, earlier, trainer, run_text);
  long const first = trainer.steps();
  auto const& planned = Trainer::compiled::plan();
  run_watch watch(o, first, context,
                  steps_overlap<Trainer> ? planned.bubble_steady : planned.bubble,
                  pp::console::about_run(trainer));
  auto const begin = std::chrono::steady_clock::now();
  std::optional<pp::stop_request> stop(std::in_place);
  long done = first;
  bool is_alone = false;
  while (done < o.steps && !stop->is_requested(trainer)) {
    try {
      train(checkpoints->next_pause(done), [&](pp::step_result const& r) {
        done = trainer.steps();
        watch.after_step(trainer, r, o.learning_rate * schedule(done));
        checkpoints->after_step(r);
        return stop->exit_code() == 0;
      });
    } catch (pp::not_finite const&) {  // the trainer is as before this step, or broken
      if (!has_no_flush<Trainer>) checkpoints->finish(watch.recent_bits(100));
      throw;
    }
    checkpoints->pause(watch.recent_bits(100));
    if (stop->has_lost_terminal() && !std::exchange(is_alone, true))
      warn("the terminal is lost (SIGHUP); the training goes on", 0);
  }
  double const speed = double(done - first) * tokens_per_step / seconds_since(begin);
  watch.end();
  if (done < o.steps) {
    warn(std::string("stopped by ") + stop->name() + " after step " + std::to_string(done) +
             " of " + std::to_string(o.steps) + "; the same command goes on",
         stop->exit_code());
  }
  if (checkpoints) checkpoints->finish(watch.recent_bits(100));
  if (!o.save.empty()) save_weights_somewhere(trainer, o.save);
  stop.reset();  // what follows may be interrupted
  // [/train]
  if (done > first) {
    pp::drawings::drawing const measured = pp::drawings::of_last_run(trainer);
    show(o, pp::drawings::of_plan<Trainer>(measured.steps), measured);
  }

  double const validation = held_out_loss(trainer, text, 64) / std::numbers::ln2;
  if (o.generate > 0) {
    std::printf("\n");
    write_on(trainer, o.prompt.empty() && o.data.empty() ? "template<typename _Tp" : o.prompt,
             o.generate, 0.8, o.seed, o.generates_on_device);
  }
  if (done == first)
    std::printf("\ndone: %ld steps, validation %.3f bits/byte\n", done, validation);
  else
    std::printf(
        "\ndone: %ld steps, train %.3f bits/byte, validation %.3f bits/byte, %.0f tokens/s\n", done,
        watch.recent_bits(std::max(1L, done / 20)), validation, speed);
}
