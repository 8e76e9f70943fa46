// SPDX-License-Identifier: BSL-1.0
//
// The exchange of waves between processes: after a wave each process sends the same number of bytes
// to all others, on a thread of its own, while the next wave computes.
#pragma once

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/base/thread.hpp>
#include <pipe/transport/transport.hpp>
#include <pipe/transport/waiting.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// Words of messages: "timed out after 300 s waiting for wave 3 of another worker".
struct wave_words {
  char const* waits = "waiting for the waves of other workers";
  char const *what = "wave", *whose = "worker";
  long first = 0;  ///< the number of the first wave
};

/// Waves of all processes of a transport, of which a ring of `kept` is in memory: bytes of each
/// process, in slots of wave % kept. All processes construct one, with the same numbers.
///
/// law: post() never waits; after arrived(n) the slots of the waves before n have the bytes of all
/// law: every wave that is posted is sent, also if the object is destroyed before: its destructor
///      waits until the other processes have posted as many waves and ended, or for a failure
template <replica_transport Transport>
class wave_exchange {
 public:
  /// plan: equal in all processes; bytes: of a wave of one process
  ///
  /// throws: error if another process has another plan; rank_error if one has failed
  [[gnu::cold]] wave_exchange(std::uint64_t plan, long bytes, int kept, patience const& limits,
                              wave_words const& words = {})
      : limits_(limits), words_(words), transport_(1, 0, limits), place_(Transport::place(1)),
        bytes_(bytes), kept_(kept), slots_(bytes * kept * place_.replicas) {
    transport_.agree(plan, false);
    transport_.open_lanes(0, 1);
    transport_.reset();
    thread_ =
        thread([](void* self, int) { static_cast<wave_exchange*>(self)->exchange(); }, this, 0);
  }
  wave_exchange(wave_exchange const&) = delete;
  wave_exchange& operator=(wave_exchange const&) = delete;
  [[gnu::cold]] ~wave_exchange() {
    auto const ends = transport_.during({"ending the exchange of waves"});
    ends_ = true;
    posted_.wake();
    thread_.join();
  }

  int process() const { return place_.replica; }
  int processes() const { return place_.replicas; }
  long allocated_bytes() const { return slots_.size(); }
  char* slot(long wave, int process) {
    return slots_.begin() + (wave % kept_ * place_.replicas + process) * bytes_;
  }
  /// The bytes of the next wave are in the slot of this process.
  ///
  /// needs: the bytes of the wave `kept` waves before are not needed any more
  void post() { posted_.advance(); }
  /// Waits until the waves before n of all processes have come.
  ///
  /// needs:  n waves are posted
  /// throws: rank_error if a process has failed, or has not posted the waves before the deadline
  void arrived(long n) {
    auto const waits = transport_.during({words_.waits});
    bool const ends = limits_.deadline.count() > 0;
    waited const w =
        arrived_.wait(int(n), {limits_.spin, ends ? limits_.deadline : no_deadline}, failed_);
    if (w == waited::done) return;
    if (w == waited::too_long)
      fail({"timed out after ", limits_.deadline.count() / 1000, " s waiting for ", words_.what,
            " ", words_.first + n - 1, " of another ", words_.whose});
    throw rank_error(transport_.announced());
  }
  /// Fails all processes, and throws rank_error.
  [[noreturn, gnu::cold]] void fail(std::initializer_list<piece> why) {
    transport_.announce(sentence(why).begin());
    throw rank_error(transport_.announced());
  }
  /// Whether a number is the same in all processes; all processes call this.
  ///
  /// throws: rank_error if a process has failed
  [[gnu::cold]] bool is_same(long number) {
    long const least = transport_.least(number);
    return transport_.least(least == number ? 1 : 0) == 1;
  }

 private:
  /// The thread: wave by wave, each when it is posted.
  void exchange() {
    failure_flag const none{false};
    for (long wave = 0;; ++wave) {
      if (posted_.wait(int(wave + 1), {limits_.spin, no_deadline}, ends_) != waited::done) return;
      // A wave is a call: if another process has ended, a wave that it never makes ends the wait.
      transport_.begin_call({});
      for (int p = 0; p < processes(); ++p)
        if (p != process()) transport_.receive_from(0, p, 0, slot(wave, p), bytes_);
      for (int p = 0; p < processes(); ++p)
        if (p != process()) transport_.send_to(0, p, 0, slot(wave, process()), bytes_);
      if (transport_.until([&] { return transport_.has_met(0, 0); }, none) != waited::done) {
        failed_ = true;
        return arrived_.wake();
      }
      arrived_.advance();
    }
  }

  patience limits_;
  wave_words words_;
  Transport transport_;
  process_place place_;
  long bytes_;
  int kept_;
  heap_array<char> slots_;
  progress posted_, arrived_;
  failure_flag ends_{false}, failed_{false};
  thread thread_;
};

}  // namespace pp::detail
PIPE_OPTIMIZED_END
