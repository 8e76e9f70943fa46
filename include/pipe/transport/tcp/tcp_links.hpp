// SPDX-License-Identifier: BSL-1.0
//
// Messages over the connections between processes. A message is sent when its receiver has said
// that it is ready: so all bytes go from the sender's memory to the receiver's memory, and no
// message that cannot be received yet blocks another.
#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>

#include <pipe/base/config.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/transport/tcp/tcp_mesh.hpp>
#include <pipe/transport/tcp/tcp_world.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// A message of a trainer, which keeps its address until it is complete.
struct tcp_request {
  enum kinds : std::uint32_t {
    receives = 1,  ///< tells the other side that it is ready
    sends,         ///< the bytes follow
    ends           ///< not a message: this process has ended the trainer, after `bytes` runs
  };
  kinds kind = receives;
  std::uint32_t trainer = 0;
  int peer = 0, tag = 0;
  char* data = nullptr;
  long bytes = 0;
  bool is_done = true;
  bool may_be_less = false;  // receives: a message of fewer bytes is received, too
  tcp_request *next = nullptr, *next_out = nullptr;  // in the queues of this request
};

/// Requests in the order in which they were put there, linked by one of their members.
template <tcp_request* tcp_request::* next>
class tcp_queue {
 public:
  bool is_empty() const { return first_ == nullptr; }
  void put(tcp_request& r) {
    r.*next = nullptr;
    (first_ == nullptr ? first_ : last_->*next) = &r;
    last_ = &r;
  }
  tcp_request* take() { return std::exchange(first_, first_->*next); }

 private:
  tcp_request *first_ = nullptr, *last_ = nullptr;
};

/// The messages with one process and tag that wait for the other side.
///
/// law: either no send waits, or ready == 0
struct tcp_meeting {
  tcp_queue<&tcp_request::next> sends, receives;
  long ready = 0;  // receives of the other side without a send of this one
};
/// The messages of a trainer.
struct tcp_trainer {
  std::uint32_t number = 0;
  long tags = 0;
  heap_array<tcp_meeting> meetings;  // by process and tag
  heap_array<bool> has_ended;        // by process
  // The processes that have ended the trainer: their number, and the process with the fewest runs.
  int ended = 0, first_to_end = -1;
  long fewest_runs = LONG_MAX;
};

/// The connections of this process for data, which all its trainers share. Calls are made while
/// calls() is locked, except of the constructor.
///
/// law: nothing waits, and nothing is allocated for a message
/// law: messages with one process and tag arrive in the order in which they are started
class tcp_links {
 public:
  /// In all processes, as an operation of the world.
  [[gnu::cold]] explicit tcp_links(tcp_world& world) : world_(world), links_(world.processes()) {
    heap_array<tcp_socket> sockets = connect_all(world);
    for (int p = 0; p < world.processes(); ++p) links_[p].socket = std::move(sockets[p]);
  }
  tcp_links(tcp_links const&) = delete;
  tcp_links& operator=(tcp_links const&) = delete;

  std::mutex& calls() { return calls_; }

  /// Trainers get the same number in all processes, which make their trainers in the same order.
  [[gnu::cold]] void add(tcp_trainer& t, long tags) {
    t.tags = tags;
    t.meetings = heap_array<tcp_meeting>(tags * links_.size());
    t.has_ended = heap_array<bool>(links_.size());
    t.number = std::uint32_t(trainers_.size());
    heap_array<tcp_trainer*> more(trainers_.size() + 1);
    for (long i = 0; i < trainers_.size(); ++i) more[i] = trainers_[i];
    more[trainers_.size()] = &t;
    trainers_ = std::move(more);
  }
  /// needs: all requests of the trainer are complete, or a process has failed: nothing moves then
  [[gnu::cold]] void remove(tcp_trainer const& t) { trainers_[t.number] = nullptr; }

  /// needs: the request is complete
  void start(tcp_request& r) {
    r.is_done = false;
    tcp_meeting& m = meeting_of(r);
    if (r.kind == tcp_request::receives) m.receives.put(r);
    if (r.kind == tcp_request::sends && m.ready == 0) return m.sends.put(r);
    if (r.kind == tcp_request::sends) --m.ready;
    links_[r.peer].out.put(r);
    write(links_[r.peer]);
  }
  /// Moves what can be moved.
  void advance() {
    if (world_.has_failed()) return;
    for (link& l : links_) {
      if (!l.socket.is_open()) continue;
      write(l);
      read(l);
    }
  }

 private:
  /// Before all that is sent: a request in numbers.
  struct head {
    std::uint32_t kind = 0, trainer = 0;
    std::int64_t tag = 0, bytes = 0;
  };
  struct link {
    tcp_socket socket;
    tcp_queue<&tcp_request::next_out> out;
    // The messages that are under way: their heads, and the bytes of head and data that have moved.
    tcp_request *sent = nullptr, *received = nullptr;
    head out_head, in_head;
    long out_done = 0, in_done = 0;
  };

  /// Where a request meets those of the other side.
  tcp_meeting& meeting_of(tcp_request const& r) {
    tcp_trainer& t = *trainers_[r.trainer];
    return t.meetings[r.peer * t.tags + r.tag];
  }
  /// Moves a head and its data, of which `done` bytes have moved. Returns whether all have.
  template <class Move>
  static bool move(head& h, char* data, long bytes, long& done, Move const& move_some) {
    constexpr long first = sizeof(head);
    while (done < first + bytes) {
      char* const at = done < first ? reinterpret_cast<char*>(&h) + done : data + (done - first);
      long const left = done < first ? first - done : first + bytes - done;
      if (move_some(at, left, done) != moved::some) return false;
    }
    return true;
  }

  /// Writes requests in their order, as far as the system takes them. A message in front of another
  /// is no deadlock: its receiver is ready.
  void write(link& l) {
    for (;;) {
      if (l.sent == nullptr) {
        if (l.out.is_empty()) return;
        l.sent = l.out.take();
        l.out_head = {l.sent->kind, l.sent->trainer, l.sent->tag, l.sent->bytes};
        l.out_done = 0;
      }
      tcp_request& r = *l.sent;
      long const bytes = r.kind == tcp_request::sends ? r.bytes : 0;
      if (!move(l.out_head, r.data, bytes, l.out_done,
                [&](char* at, long left, long& done) { return l.socket.write(at, left, done); }))
        return;  // a connection that has ended is the watch's to report
      if (r.kind != tcp_request::receives) r.is_done = true;
      l.sent = nullptr;
    }
  }
  /// Reads the bytes that have come, data directly to its place. A message begins only when its
  /// receiver has a place for the data.
  void read(link& l) {
    auto const read_some = [&](char* at, long left, long& done) {
      return l.socket.read(at, left, done);
    };
    for (int most = 256; most > 0; --most) {  // the other links, and the caller, go on
      if (l.received == nullptr) {
        if (!move(l.in_head, nullptr, 0, l.in_done, read_some)) return;
        if (!understand(l)) return;
      }
      if (l.received != nullptr) {
        if (!move(l.in_head, l.received->data, l.in_head.bytes, l.in_done, read_some)) return;
        l.received->is_done = true;
        l.received = nullptr;
      }
      l.in_done = 0;
    }
  }
  /// A whole head has come. Returns false if no process of this program can have sent it.
  bool understand(link& l) {
    head const& h = l.in_head;
    int const from = int(&l - links_.begin());
    tcp_trainer* const t = h.trainer < trainers_.size() ? trainers_[h.trainer] : nullptr;
    if (t == nullptr || h.tag < 0 || h.tag >= t->tags) return refuse(from);
    tcp_meeting& m = t->meetings[from * t->tags + h.tag];
    switch (h.kind) {
      case tcp_request::receives:
        if (h.bytes < 0) return refuse(from);
        if (m.sends.is_empty()) return ++m.ready, true;
        l.out.put(*m.sends.take());
        write(l);
        return true;
      case tcp_request::sends:
        if (m.receives.is_empty()) return refuse(from);
        l.received = m.receives.take();
        return l.received->bytes == h.bytes ||
               (l.received->may_be_less && h.bytes >= 0 && h.bytes < l.received->bytes) ||
               refuse(from);
      case tcp_request::ends:
        if (h.tag != 0 || h.bytes < 0 || std::exchange(t->has_ended[from], true))
          return refuse(from);
        ++t->ended;
        if (h.bytes < t->fewest_runs) t->fewest_runs = h.bytes, t->first_to_end = from;
        return true;
      default: return refuse(from);
    }
  }
  /// Fails all processes: the connection cannot be used any more.
  [[gnu::cold]] bool refuse(int from) {
    world_.announce(
        sentence({"process ", from, " has sent what no process of this program sends"}).begin());
    return false;
  }

  tcp_world& world_;
  heap_array<link> links_;  // by process
  heap_array<tcp_trainer*> trainers_;
  std::mutex calls_;
};

}  // namespace pp::detail
PIPE_OPTIMIZED_END
