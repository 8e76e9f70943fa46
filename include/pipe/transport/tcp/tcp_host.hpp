// SPDX-License-Identifier: BSL-1.0
//
// The listening side of the hand-shake, process 0 or another host. The host listens at one address,
// and looks at all connections at once, so that no silent or slow connection delays another. A
// stranger is sent away; a process of this job that does not fit ends the start of all processes,
// with one sentence.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <sys/epoll.h>

#include <pipe/base/thread.hpp>
#include <pipe/transport/process/loopback_job.hpp>
#include <pipe/transport/tcp/tcp_frame.hpp>

namespace pp::detail {

/// The host of a job's start: it accepts connections, asks each newcomer for a proof, and counts
/// the processes that have come.
///
/// law: there are at most channels * (processes - 1) connections that belong to the job, and a
///      fixed number of newcomers; a further newcomer takes the place of a silent newcomer or else
///      of the oldest
/// law: a newcomer has memory for a frame and a hello, whatever it announces
/// law: a newcomer that has not proved to have the token cannot end the start
class tcp_host {
 public:
  /// Listens from now on.
  ///
  /// throws: error if the address is not one of this machine, or the port is in use
  [[gnu::cold]] explicit tcp_host(tcp_start const& start)
      : start_(start), newcomers_(start.processes + 64), connections_(start.processes),
        places_(long(start.channels) * start.processes), joined_(start.processes),
        limit_(start.deadline), missing_(start.channels * (start.processes - 1 - start.host)) {
    std::string reason = "it has no address";
    heap_array<tcp_address> const all =
        tcp_address::of(start.at.address, start.at.port, limit_, reason);
    for (tcp_address const& a : all) {
      // Room for many connections that are not accepted yet: the system lets a further one wait for
      // a second.
      listener_ = tcp_socket::listen_at(a, start.processes + 4096);
      if (listener_.is_open()) {
        connections_.address = a.text();
        break;
      }
      reason = errno == EADDRNOTAVAIL ? "it is no address of this machine, and MASTER_ADDR must be "
                                        "one of process 0's"
               : errno == EADDRINUSE  ? "the port is in use, perhaps by another job: MASTER_PORT "
                                        "must be free"
                                      : std::strerror(errno);
    }
    if (!listener_.is_open())
      throw_error<error>({"process ", start.host, " cannot listen at ", start.at.address, ":",
                          start.at.port, ": ", std::string_view(reason)});
    polled_ = tcp_socket(epoll_create1(EPOLL_CLOEXEC));
    see(listener_, 0, EPOLLIN);
  }
  tcp_host(tcp_host const&) = delete;
  tcp_host& operator=(tcp_host const&) = delete;

  /// Waits until all processes have come.
  ///
  /// throws: error if a process does not fit; rank_error if a process is lost, or does not come
  ///         before the deadline of any process that has come
  [[gnu::cold]] tcp_connections meet() { return meet(limit_); }
  [[gnu::cold]] tcp_connections meet(time_limit limit) {
    limit_ = limit;
    tcp_signs signs;
    while (missing_ > 0) {
      look(limit_.left(200));
      throw_failure();
      if (start_.watch == nullptr) exchange_signs(signs);
      if (!wrong_.empty()) end<error>(wrong_);
      if (!lost_.empty()) end<rank_error>(lost_);
      if (missing_ > 0 && limit_.is_over()) end<rank_error>(words_of_missing());
    }
    if (start_.is_of_user) refuse_other_job();
    for (heap_array<tcp_socket> const& of : connections_.of)
      for (int p = start_.host + 1; p < start_.processes && of[p].is_open(); ++p)
        epoll_ctl(polled_.descriptor(), EPOLL_CTL_DEL, of[p].descriptor(), nullptr);
    for (tcp_socket const& s : connections_.of[tcp_connections::calls])
      if (s.is_open()) send_frame(s, tcp_frame(tcp_frame::begins), nullptr);
    tcp_connections all(0);
    std::swap(all, connections_);
    connections_.address = all.address;
    return all;
  }

  /// The port of the listener: the system's choice, if the place had port 0.
  [[gnu::cold]] int port() const { return listener_.port(); }
  /// A descriptor that can be read when look() has something to do. After meet() that is a
  /// newcomer, which is sent away.
  int descriptor() const { return polled_.descriptor(); }
  /// Looks at all connections, and waits for something to happen on one of them.
  [[gnu::cold]] void look(int milliseconds) {
    epoll_event events[64];
    int const count = epoll_wait(polled_.descriptor(), events, 64, milliseconds);
    for (int i = 0; i < count && wrong_.empty(); ++i) {
      long const tag = long(events[i].data.u64);
      if (tag == 0)
        accept();
      else if (tag <= newcomers_.size())
        read(newcomers_[tag - 1]);
      else
        lose(int(tag - newcomers_.size() - 1), "it has ended its connection");
    }
    for (newcomer& n : newcomers_)
      if (n.socket.is_open() && n.patience.is_over())
        send_away(n, "it has sent no whole hand-shake for 5 s");
  }

 private:
  /// A connection that may belong to the job or not: its hello, and then its proof.
  struct newcomer {
    tcp_socket socket;
    tcp_address from;
    long number = 0;  // in the order in which newcomers come
    time_limit patience{std::chrono::milliseconds(0)};
    bool is_challenged = false;
    tcp_frame frame;  // of the hello
    tcp_hello hello;
    nonce drawn;  // by this side, once the newcomer is challenged
    long have = 0;
    char bytes[sizeof(tcp_frame) + sizeof(tcp_hello)];

    /// Whether this place is taken before the other: free places come first, then places of silent
    /// newcomers, then places of the oldest.
    bool gives_way_before(newcomer const& other) const {
      auto const rank = [](newcomer const& n) {
        return !n.socket.is_open() ? 0 : n.have == 0 && !n.is_challenged ? 1 : 2;
      };
      int const here = rank(*this), there = rank(other);
      return here != there ? here < there : number < other.number;
    }
  };
  static_assert(sizeof(job_proof) <= sizeof(tcp_hello));
  /// The signs of life of a process that has joined, until all have joined.
  struct member {
    long unread = 0;
    std::chrono::nanoseconds silent{};
  };

  /// Tags: 0 is the listener; then come newcomers, then processes that have joined.
  [[gnu::cold]] void see(tcp_socket const& s, long tag, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = std::uint64_t(tag);
    epoll_ctl(polled_.descriptor(), EPOLL_CTL_ADD, s.descriptor(), &event);
  }
  /// Takes up to 64 connections that have come, and reads the bytes that have come over them.
  /// Further connections wait for the next look, so that no flood of connections delays the reading
  /// of others.
  [[gnu::cold]] void accept() {
    for (int most = 64; most > 0 && wrong_.empty(); --most) {
      tcp_address from;
      tcp_socket s = listener_.accept(from);
      if (!s.is_open()) {
        // Without a free descriptor the system would say again and again that a connection has
        // come.
        if (errno != EAGAIN) sleep_for(10'000'000);
        return;
      }
      newcomer* place = newcomers_.begin();
      for (newcomer& n : newcomers_)
        if (n.gives_way_before(*place)) place = &n;
      if (place->socket.is_open()) send_away(*place, "newer ones have taken its place");
      place->socket = std::move(s);
      place->from = from;
      place->number = ++came_;
      place->is_challenged = false;
      place->have = 0;
      place->patience = time_limit(std::chrono::seconds(5));
      see(place->socket, place - newcomers_.begin() + 1, EPOLLIN | EPOLLRDHUP);
      read(*place);  // the hello of a process of the job has come already
    }
  }
  /// Sends a stranger away, with an answer that it may understand. Strangers are counted, and the
  /// last stranger is remembered for the message that a process is missing.
  [[gnu::cold]] void send_away(newcomer& n, std::string_view why) {
    ++strangers_;
    stranger_ = n.from.text() + ": " + std::string(why);
    // An answer that cannot be taken for an answer of another protocol.
    send_refusal(n.socket,
                 sentence({"process ", start_.host, " of the job at this address has refused ",
                           std::string_view(n.from.text()), ": ", why})
                     .begin(),
                 false);
    n.socket = {};
  }
  /// Refuses a process of this job. Before all have come, that ends the start.
  [[gnu::cold]] void refuse(newcomer& n, std::string const& text) {
    send_refusal(n.socket, text, false);
    n.socket = {};
    if (missing_ > 0) wrong_ = text;
  }

  /// Reads the bytes that have come, and checks them: magic, kind and length before the bytes that
  /// they announce.
  ///
  /// law: at most sizeof(n.bytes) bytes of a newcomer are in memory
  [[gnu::cold]] void read(newcomer& n) {
    while (n.socket.is_open()) {
      long const body = n.is_challenged ? long(sizeof(job_proof)) : long(sizeof(tcp_hello));
      long const whole = long(sizeof(tcp_frame)) + body;
      moved m = moved::some;
      while (m == moved::some && n.have < whole)
        m = n.socket.read(n.bytes + n.have, whole - n.have, n.have);
      tcp_frame f;
      std::memcpy(&f, n.bytes, sizeof(f));
      if (n.have >= tcp_frame::magic_size && !f.has_magic())
        return send_away(n, "it has sent no hand-shake of pipe");
      if (n.have >= long(sizeof(f)) &&
          (f.kind != (n.is_challenged ? tcp_frame::proof : tcp_frame::hello) ||
           long(f.length) != body))
        return send_away(n, sentence({"it has announced ", f.length,
                                      " bytes, and this part of a hand-shake has ", body})
                                .begin());
      if (n.have == whole) {
        n.is_challenged ? join(n) : answer(n, f);
      } else if (m == moved::none_now) {
        return;
      } else if (n.is_challenged) {
        return send_away(n, "it has not shown to have the PIPE_JOB_TOKEN of this job");
      } else {
        return send_away(
            n, sentence({"it has ended after ", n.have, " of ", whole, " bytes of a hand-shake"})
                   .begin());
      }
    }
  }
  /// A whole hello, which a stranger can have sent: this side shows that it has the token, and asks
  /// the other side to do the same.
  ///
  /// cost: a hash; the expected hash of the other side is made when its proof has come
  [[gnu::cold]] void answer(newcomer& n, tcp_frame const& f) {
    n.frame = f;
    std::memcpy(&n.hello, n.bytes + sizeof(f), sizeof(n.hello));
    tcp_challenge c;
    c.drawn = nonce::drawn();
    c.proof = proof_of(start_.token, job_proof::roles::host, f, n.hello, c.drawn);
    n.drawn = c.drawn;
    n.is_challenged = true;
    n.have = 0;
    if (!send_frame(n.socket, tcp_frame(tcp_frame::challenge, sizeof(c)), &c))
      send_away(n, "it does not read");
  }
  /// A whole hand-shake. Nothing that a sender without the token has said is believed, and it is
  /// told nothing more. Otherwise the connection has a place from now on, or the sender does not
  /// fit.
  [[gnu::cold]] void join(newcomer& n) {
    job_proof shown;
    std::memcpy(&shown, n.bytes + sizeof(tcp_frame), sizeof(shown));
    if (!(shown == proof_of(start_.token, job_proof::roles::guest, n.frame, n.hello, n.drawn)))
      return send_away(n, "it has not shown to have the PIPE_JOB_TOKEN of this job");
    tcp_hello const& h = n.hello;
    std::string const from = n.from.text();
    if (n.frame.version != PIPE_VERSION)
      return refuse(
          n, sentence({"the process at ", std::string_view(from), " has version ", n.frame.version,
                       " of pipe, and process ", start_.host, " has version ", PIPE_VERSION,
                       ": start the same program in all processes"})
                 .begin());
    if (h.processes != start_.processes || h.process < 0 || h.process >= start_.processes ||
        h.channel < 0 || h.channel >= start_.channels)
      return refuse(n, sentence({"the process at ", std::string_view(from), " is process ",
                                 h.process, " of ", h.processes, ", and process ", start_.host,
                                 " is one of ", start_.processes, ": all need the same WORLD_SIZE"})
                           .begin());
    std::string& place = places_[long(start_.channels) * h.process + h.channel];
    if (h.process <= start_.host || h.host != start_.host || !place.empty())
      return refuse(
          n, sentence({"process ", h.process, " is there twice, at ",
                       std::string_view(place.empty() ? connections_.address : place), " and at ",
                       std::string_view(from), ": every process needs a RANK of its own"})
                 .begin());
    if (h.plan != start_.plan)
      return refuse(n, sentence({"process ", h.process, " at ", std::string_view(from),
                                 " has another plan than process ", start_.host,
                                 ": start the same program in all processes"})
                           .begin());
    place = from;
    --missing_;
    limit_ = limit_ & time_limit(std::chrono::milliseconds(h.milliseconds));
    epoll_ctl(polled_.descriptor(), EPOLL_CTL_DEL, n.socket.descriptor(), nullptr);
    send_frame(n.socket, tcp_frame(tcp_frame::accepted), nullptr);
    tcp_socket& s = connections_.of[h.channel][h.process];
    s = std::move(n.socket);
    // Its bytes are read later: until then only its end is noticed.
    see(s, newcomers_.size() + 1 + h.process, EPOLLRDHUP);
  }
  /// Says that this process lives, and finds processes that have joined and do not say so. The
  /// bytes that they send are counted here, and read by the first operation.
  [[gnu::cold]] void exchange_signs(tcp_signs& signs) {
    auto const passed = signs.passed();
    bool const is_due = signs.is_due(passed);
    for (int p = 0; p < start_.processes; ++p) {
      tcp_socket const& s = connections_.of[tcp_connections::calls][p];
      if (!s.is_open()) continue;
      if (is_due) send_frame(s, tcp_frame(tcp_frame::lives), nullptr);
      long const unread = s.unread();
      member& m = joined_[p];
      m.silent += passed;
      if (std::exchange(m.unread, unread) != unread) m.silent = {};
      if (m.silent > tcp_signs::patience) lose(p, "it has not answered for 5 s");
    }
  }
  /// Notes the first loss of a process that has joined, which ends the start.
  [[gnu::cold]] void lose(int process, char const* why) {
    if (lost_.empty())
      lost_ = sentence({"process ", process, " was lost: ", why, ", while process ", start_.host,
                        " was starting"})
                  .begin();
  }
  /// Refuses a start where two jobs of one user may begin at one port: it is not known which
  /// process belongs to which job.
  ///
  /// throws: error, which names the two processes
  [[gnu::cold]] void refuse_other_job() {
    std::string const twice = processes_at_port(start_.at.port).twice();
    if (!twice.empty())
      end<error>(
          sentence({"MASTER_PORT ", start_.at.port, " has two jobs: ", std::string_view(twice),
                    ": give each a MASTER_PORT of its own, or a PIPE_JOB_TOKEN"})
              .begin());
  }
  /// throws: rank_error if the watch, where there is one, knows of a failure
  [[gnu::cold]] void throw_failure() const {
    if (start_.watch != nullptr && start_.watch->has_failed())
      throw rank_error(start_.watch->failure());
  }

  /// The numbers of the processes that have not come, and the last stranger, which may be a missing
  /// process with other variables.
  [[gnu::cold]] std::string words_of_missing() const {
    auto const has_all_of = [&](int p) {
      for (int c = 0; c < start_.channels; ++c)
        if (places_[long(start_.channels) * p + c].empty()) return false;
      return true;
    };
    constexpr int most = 8;
    std::string names;
    int count = 0;
    for (int p = start_.host + 1; p < start_.processes; ++p) {
      if (has_all_of(p)) continue;
      if (++count <= most) names += sentence({count > 1 ? ", " : "", p}).begin();
    }
    if (count > most) names += sentence({" and ", count - most, " more"}).begin();
    std::string text =
        sentence({count > 1 ? "processes " : "process ", std::string_view(names), " of ",
                  start_.processes, count > 1 ? " have" : " has", " not come to process ",
                  start_.host, " at ", std::string_view(connections_.address), " within ",
                  double(start_.deadline.count()) / 1000, " s"})
            .begin();
    if (strangers_ > 0)
      text += sentence({"; it has refused ", strangers_,
                        strangers_ > 1 ? " other connections, the last from "
                                       : " other connection, from ",
                        std::string_view(stranger_)})
                  .begin();
    return text;
  }
  /// The end of the start: all processes that have come are told, and throw the same text.
  ///
  /// throws: Error
  template <class Error>
  [[noreturn, gnu::cold]] void end(std::string const& text) {
    for (tcp_socket const& s : connections_.of[tcp_connections::calls])
      if (s.is_open()) send_refusal(s, text, std::is_same_v<Error, rank_error>);
    throw Error(text);
  }

  tcp_start start_;
  tcp_socket listener_, polled_;
  heap_array<newcomer> newcomers_;
  tcp_connections connections_;
  heap_array<std::string> places_;  // by process and channel: its address
  heap_array<member> joined_;       // by process
  time_limit limit_;
  int missing_;  // connections of the job
  long came_ = 0, strangers_ = 0;
  std::string stranger_, wrong_, lost_;
};

}  // namespace pp::detail
