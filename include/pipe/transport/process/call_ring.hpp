// SPDX-License-Identifier: BSL-1.0
//
// The comparison of the calls that processes make on a trainer: each process tells its call to the
// next process in a ring. If two processes make different calls, so do two neighbours in the ring,
// and one of the two finds the difference.
#pragma once

#include <string>
#include <string_view>

#include <pipe/base/config.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/transport/process_call.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// The first difference of two calls, in words: "evaluate, and not step", "step with samples 17,
/// and not 32", "step with other labels".
[[gnu::cold]] inline std::string difference(process_call const& there, process_call const& here) {
  struct number {
    char const* name;
    double there, here;
  };
  number const numbers[]{{"samples", there.samples, here.samples},
                         {"step", there.step, here.step},
                         {"loss_terms", there.loss_terms, here.loss_terms},
                         {"learning_rate", there.learning_rate, here.learning_rate},
                         {"clip_value", there.clip_value, here.clip_value},
                         {"clip_norm", there.clip_norm, here.clip_norm}};
  if (there.kind != here.kind) return sentence({there.name(), ", and not ", here.name()}).begin();
  for (number const& n : numbers)
    if (n.there != n.here)
      return sentence({there.name(), " with ", n.name, " ", n.there, ", and not ", n.here}).begin();
  if (there.seed != here.seed)
    return sentence({there.name(), " with seed ", there.seed, ", and not ", here.seed}).begin();
  if (there.lengths != here.lengths) return sentence({there.name(), " with other lengths"}).begin();
  char const* const labels =
      here.kind == process_call::kinds::forward ? " with other outputs" : " with other labels";
  return sentence({there.name(),
                   there.labels != here.labels ? labels : " with other settings of the optimizer"})
      .begin();
}

/// One trainer's ring. Functions need the lock of Messages.
///
/// law: in each call a message of 88 bytes goes to one process, and a message comes from another,
///      however many processes there are; nothing is allocated
/// law: processes are at most one call apart, so a neighbour's message is about the same call
template <class Messages>
class call_ring {
  using request = typename Messages::request;

 public:
  /// Makes the two requests, once, with a tag of their own.
  ///
  /// note: a ring of one process has nothing to compare
  [[gnu::cold]] void open(Messages& messages, int process, int processes, int tag) {
    if (processes == 1) return;
    process_ = process;
    previous_ = (process + processes - 1) % processes;
    messages.prepare_send(told, (process + 1) % processes, tag, reinterpret_cast<char*>(&here_),
                          sizeof(here_));
    messages.prepare_receive(heard, previous_, tag, reinterpret_cast<char*>(&there_),
                             sizeof(there_));
  }
  [[gnu::cold]] void close(Messages& messages) {
    if (is_open()) messages.free(told), messages.free(heard);
  }
  bool is_open() const { return previous_ >= 0; }
  /// needs: `told` is complete
  void begin(Messages& messages, process_call const& c) {
    here_ = c;
    is_compared_ = false;
    messages.start(heard);
    messages.start(told);
  }
  /// Whether the neighbour's call has come, and differs; true once in a call.
  bool differs(Messages& messages) {
    if (is_compared_ || !messages.are_complete(&heard, 1)) return false;
    is_compared_ = true;
    return !(there_ == here_);
  }
  /// "process 1 makes another call than process 2: evaluate, and not step"
  [[gnu::cold]] std::string text() const {
    return sentence({"process ", previous_, " makes another call than process ", process_, ": ",
                     std::string_view(difference(there_, here_))})
        .begin();
  }

  request told{}, heard{};  ///< of the call that is going on

 private:
  process_call here_, there_;
  int process_ = 0, previous_ = -1;
  bool is_compared_ = true;
};

}  // namespace pp::detail
PIPE_OPTIMIZED_END
