// SPDX-License-Identifier: BSL-1.0
//
// The implementation of the stand-in for NCCL's header. All ranks of all communicators share one
// piece of memory, also with processes that are forked after its first use: what each rank has
// called, the data of a send and a receive that have met, and who waits. A hang is found, not
// waited for: it is there when nothing changes while every process waits.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device/tasks.hpp"

namespace fake_nccl {

inline constexpr int most_communicators = 16, most_ranks = 8, most_launches = 4096,
                     most_processes = 16, most_operations = 32;

/// How many kernels of NCCL run on a device at once, with no other kernel then; more than any
/// program needs: all.
inline int kernels_at_once = 1;
/// How often a call that is not over yet is asked for at most; a seed, from which it is drawn.
inline int most_asks = 3;
inline unsigned seed = 1;
/// Operations of this process until one fails, as by a network; -1: never.
inline long operations_to_failure = -1;

/// A send or receive. Its size in bytes.
struct operation {
  bool sends = false;
  int peer = 0;
  char* data = nullptr;
  long count = 0;
  int type = 0;
  long number = 0;  // among those of the pair and direction
  long moved = 0;   // bytes
  bool is_done = false;
};
inline long size_of(int type) {
  constexpr long sizes[]{1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return type >= 0 && type < 12 ? sizes[type] : 0;
}

// ---- shared by processes ----

/// What one side of a pair has begun.
struct side {
  std::atomic<long> begun{0};  // operations
  long count = 0;
  int type = 0;
};
/// From one rank to another: operations one after the other, each in chunks.
struct way {
  static constexpr long chunk = 4096;
  side sender, receiver;
  std::atomic<long> filled{0}, drained{0};  // chunks
  char data[chunk];
};
struct shared_communicator {
  std::atomic<int> here{0};    // ranks that have called
  std::atomic<int> failed{0};  // a result
  way ways[most_ranks][most_ranks];
};
/// A group of operations that was put on a stream.
struct shared_launch {
  enum states { none, queued, begun, ended };
  std::atomic<int> state{none};
  int communicator, rank, process, device, operations;
  void* stream;
  bool sends[most_operations];
  int peer[most_operations];
  long number[most_operations];
  std::atomic<bool> is_done[most_operations];
};
struct shared_state {
  std::atomic<int> communicators{0}, processes{0};
  std::atomic<long> changes{0};
  std::atomic<int> is_hung{0};              // 1: one process prints the cycle, 2: all may fail
  char hang[4000]{};                        // the cycle
  std::atomic<long> waits[most_processes];  // the number of changes at which a process has none
  std::atomic<int> launches{0};
  shared_launch launch[most_launches];
  shared_communicator of[most_communicators];
};
/// Zeros are the state before anything has happened.
inline shared_state* map(int file) {
  void* const memory = mmap(nullptr, sizeof(shared_state), PROT_READ | PROT_WRITE,
                            file < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) std::abort();
  return static_cast<shared_state*>(memory);
}
inline shared_state*& place() {
  static shared_state* is = map(-1);
  return is;
}
inline shared_state& all() { return *place(); }
/// In processes that are not forked from one: before anything else, a file of this size that they
/// all have opened.
inline constexpr long shared_size = sizeof(shared_state);
inline void share(int file) { place() = map(file); }

// ---- of this process ----

struct communicator {
  int number, size, rank, device;
  pthread_t thread;
  int result = 0;  // ncclSuccess, or an error for ever
  std::string text;
  bool is_initialised = false, is_final = false;
  int calls_left = 0;  // until the last call has succeeded
  std::vector<operation> group;
  fake_gpu::stream* on = nullptr;
  long launched = 0, ended = 0;
  long sent[most_ranks]{}, received[most_ranks]{};

  shared_communicator& shared() const { return all().of[number]; }
  void begin_calls() {
    seed = seed * 1664525u + 1013904223u;
    calls_left = most_asks > 0 ? int((seed >> 16) % unsigned(most_asks + 1)) : 0;
  }
  void fail(int why, std::string const& what) {
    if (result == 0) result = why, text = what;
    int none = 0;
    shared().failed.compare_exchange_strong(none, why);
    ++all().changes;
  }
};
inline thread_local std::string last_error;
inline thread_local int group_depth = 0;
inline thread_local std::set<communicator*> grouped;
inline std::map<communicator const*, std::shared_ptr<communicator>> alive;
inline std::map<int, int> running;  // kernels of NCCL, by device
inline int process = -1;            // number of this one, from its first communicator on
inline long last_look = 0;          // the number of changes when there was nothing to do

/// Forgets all that has been, between tests that share no communicator; before processes are forked
/// that do.
inline void start_anew() {
  std::memset(static_cast<void*>(&all()), 0, sizeof(shared_state));
  alive.clear(), running.clear();
  process = -1, last_look = 0, operations_to_failure = -1;
  fake_gpu::idle = nullptr, fake_gpu::is_full = nullptr;
}

inline bool is_alive(communicator const* c) { return alive.contains(c); }

/// "receive 0 of communicator 1 by rank 2 from rank 0"
inline std::string name_of(int c, int rank, bool sends, int peer, long number) {
  return (sends ? "send " : "receive ") + std::to_string(number) + " of communicator " +
         std::to_string(c) + " by rank " + std::to_string(rank) +
         (sends ? " to rank " : " from rank ") + std::to_string(peer);
}

/// Prints, and keeps, which launch waits for which, from any that has begun to the first that comes
/// again, or that was never called.
inline void print_cycle() {
  shared_state& s = all();
  int const count = std::min(s.launches.load(), most_launches);
  auto const first_open = [](shared_launch const& l) {
    for (int i = 0; i < l.operations; ++i)
      if (!l.is_done[i]) return i;
    return 0;
  };
  int at = -1;
  for (int i = 0; i < count && at < 0; ++i)
    if (s.launch[i].state == shared_launch::begun) at = i;
  std::string text = "hang of NCCL:";
  std::set<int> seen;
  while (at >= 0 && seen.insert(at).second) {
    shared_launch const& l = s.launch[at];
    int const o = first_open(l);
    std::string const name = name_of(l.communicator, l.rank, l.sends[o], l.peer[o], l.number[o]);
    int next = -1;
    if (l.state == shared_launch::begun) {
      std::string const other =
          name_of(l.communicator, l.peer[o], !l.sends[o], l.rank, l.number[o]);
      for (int i = 0; i < count; ++i)
        for (int k = 0; k < s.launch[i].operations; ++k)
          if (s.launch[i].communicator == l.communicator && s.launch[i].rank == l.peer[o] &&
              s.launch[i].sends[k] != l.sends[o] && s.launch[i].peer[k] == l.rank &&
              s.launch[i].number[k] == l.number[o])
            next = i;
      text += "\n  " + name + " waits for " + other + (next < 0 ? ", which is not called" : "");
    } else {
      // An earlier launch of its stream, or one that has its device.
      for (int i = 0; i < count; ++i) {
        shared_launch const& e = s.launch[i];
        if (e.process != l.process || i == at || e.state == shared_launch::ended) continue;
        bool const is_before = e.stream == l.stream && i < at;
        bool const has_device = e.device == l.device && e.state == shared_launch::begun;
        if (next < 0 && (is_before || has_device)) next = i;
      }
      text += "\n  " + name + " has not begun";
      if (next >= 0) {
        shared_launch const& e = s.launch[next];
        int const k = first_open(e);
        text += (e.stream == l.stream ? ", behind " : ", as its device has ") +
                name_of(e.communicator, e.rank, e.sends[k], e.peer[k], e.number[k]);
      }
    }
    at = next;
  }
  text += '\n';
  text.copy(s.hang, sizeof(s.hang) - 1);
  [[maybe_unused]] auto const n = write(STDERR_FILENO, text.data(), text.size());
}

/// Called when no stream of this process can go on.
inline void wait_for_others() {
  shared_state& s = all();
  long const now = s.changes;
  // Only a look that began and ended at the same number of changes has found nothing to do.
  if (std::exchange(last_look, now) != now) return;
  s.waits[process] = now;
  bool all_wait = true;
  for (int p = 0; p < s.processes; ++p) all_wait = all_wait && s.waits[p] == now;
  int none = 0;
  if (all_wait && s.changes == now && s.is_hung.compare_exchange_strong(none, 1)) {
    print_cycle();
    s.is_hung = 2;
  }
  if (s.processes > 1) usleep(20);  // there may be more processes than cores
}
inline bool device_is_full(fake_gpu::stream const* s) {
  auto const found = running.find(s->device);
  return found != running.end() && found->second >= kernels_at_once;
}

inline communicator* make(int number, int ranks, int rank, int device) {
  if (process < 0) {
    process = all().processes++;
    all().waits[process] = 0;
    fake_gpu::idle = &wait_for_others;
    fake_gpu::is_full = &device_is_full;
  }
  auto const c = std::make_shared<communicator>();
  c->number = number, c->size = ranks, c->rank = rank, c->device = device;
  c->thread = pthread_self();
  alive[c.get()] = c;
  ++c->shared().here;
  ++all().changes;
  return c.get();
}
inline void end(communicator* c) {
  c->result = c->result != 0 ? c->result : 5;
  alive.erase(c);  // its launches keep it
  ++all().changes;
}

/// A group's work on the device.
class running_launch {
 public:
  running_launch(std::shared_ptr<communicator> of, std::vector<operation> o)
      : of_(std::move(of)), operations_(std::move(o)), shared_(next_shared()) {
    shared_.communicator = of_->number, shared_.rank = of_->rank;
    shared_.process = process, shared_.device = of_->device, shared_.stream = of_->on;
    shared_.operations = int(operations_.size());
    for (int i = 0; i < shared_.operations; ++i) {
      operation& x = operations_[std::size_t(i)];
      x.number = (x.sends ? of_->sent : of_->received)[x.peer]++;
      shared_.sends[i] = x.sends, shared_.peer[i] = x.peer, shared_.number[i] = x.number;
    }
    shared_.state = shared_launch::queued;
    ++all().changes;
  }
  /// Begins if the device has room, and goes on. Returns whether it has ended.
  bool poll() {
    if (shared_.state == shared_launch::ended) return true;
    if (shared_.state == shared_launch::queued) {
      if (running[of_->device] >= kernels_at_once) return false;
      ++running[of_->device];
      shared_.state = shared_launch::begun;
      ++all().changes;
    }
    bool is_over = true;
    for (int i = 0; i < shared_.operations && of_->result == 0; ++i) {
      operation& x = operations_[std::size_t(i)];
      // Those with the same peer run in order.
      bool is_next = true;
      for (int k = 0; k < i; ++k) {
        operation const& earlier = operations_[std::size_t(k)];
        is_next =
            is_next && (earlier.is_done || earlier.peer != x.peer || earlier.sends != x.sends);
      }
      if (!x.is_done && is_next) advance(x);
      shared_.is_done[i] = x.is_done;
      is_over = is_over && x.is_done;
    }
    if (all().is_hung == 2) of_->fail(2, "a hang was found");
    if (of_->result != 0) is_over = true;
    if (!is_over) return false;
    shared_.state = shared_launch::ended;
    --running[of_->device];
    ++of_->ended;
    ++all().changes;
    return true;
  }

 private:
  static shared_launch& next_shared() {
    int const n = all().launches++;
    if (n >= most_launches) std::abort();
    return all().launch[n];
  }
  void advance(operation& x) {
    way& w =
        x.sends ? of_->shared().ways[of_->rank][x.peer] : of_->shared().ways[x.peer][of_->rank];
    side& mine = x.sends ? w.sender : w.receiver;
    side& other = x.sends ? w.receiver : w.sender;
    if (mine.begun < x.number + 1) {
      mine.count = x.count, mine.type = x.type;
      mine.begun = x.number + 1;
      ++all().changes;
    }
    if (x.count == 0) return void(x.is_done = true);
    if (other.begun < x.number + 1) return;
    if (x.moved == 0 && (other.count != x.count || other.type != x.type))
      return of_->fail(5, name_of(of_->number, of_->rank, x.sends, x.peer, x.number) + " has " +
                              std::to_string(x.count) + " elements of type " +
                              std::to_string(x.type) + ", and the other side has " +
                              std::to_string(other.count) + " of type " +
                              std::to_string(other.type));
    long const bytes = x.count * size_of(x.type);
    long const n = std::min(way::chunk, bytes - x.moved);
    if (x.sends && n > 0 && w.filled == w.drained) {
      std::memcpy(w.data, x.data + x.moved, std::size_t(n));
      x.moved += n;
      ++w.filled, ++all().changes;
    } else if (!x.sends && w.filled > w.drained) {
      std::memcpy(x.data + x.moved, w.data, std::size_t(n));
      x.moved += n;
      ++w.drained, ++all().changes;
    }
    x.is_done = x.moved == bytes && (!x.sends || w.filled == w.drained);
  }

  std::shared_ptr<communicator> of_;
  std::vector<operation> operations_;
  shared_launch& shared_;
};

/// Puts the group on its stream once its calls have succeeded, and not before.
inline void launch_if_called(communicator* c) {
  if (c->calls_left > 0 || c->group.empty()) return;
  if (operations_to_failure >= 0) {
    operations_to_failure -= long(c->group.size());
    if (operations_to_failure < 0) c->fail(6, "the network of a test has failed");
  }
  ++c->launched;
  auto const made = std::make_shared<running_launch>(alive.at(c), std::move(c->group));
  c->group.clear();
  fake_gpu::task t;
  t.is_kernel = false;  // it asks for room itself
  t.has_met = [made] { return made->poll(); };
  c->on->tasks.push_back(std::move(t));
}
/// The state of a communicator: in progress until all ranks have called, and the last call is over.
inline int poll(communicator* c) {
  if (int const why = c->shared().failed; why != 0 && c->result == 0) {
    c->result = why;
    c->text = "another rank has failed";
  }
  if (c->result != 0) return c->result;
  if (!c->is_initialised) {
    if (c->shared().here < c->size) return 7;
    c->is_initialised = true;
    c->begin_calls();
  }
  if (c->calls_left > 0) {
    --c->calls_left;
    return 7;
  }
  launch_if_called(c);
  return 0;
}

}  // namespace fake_nccl
