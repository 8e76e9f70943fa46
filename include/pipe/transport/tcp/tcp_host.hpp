// SPDX-License-Identifier: BSL-1.0
//
// The listening side of the hand-shake, process 0 or another host. It listens at one address, and
// looks at all connections at once, so that none that is silent or slow keeps it from another. A
// stranger is sent away; a process of this job that does not fit ends the start of all, with one
// sentence.
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

/// The host of a job's start: it accepts, asks each newcomer for a proof, and counts who has come.
///
/// law: there are at most channels * (processes - 1) connections that belong to the job, and a
///      fixed number of newcomers; one more takes the place of the oldest, silent ones first
/// law: a newcomer has memory for a frame and a hello, whatever it announces
/// law: who has not proved to have the token ends nothing
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
      // Room for many who are not accepted yet: the system lets one more wait for a second.
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
  /// throws: error if one does not fit; rank_error if one does not come before the deadline of any
  ///         that has come, or is lost
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

  /// Of the listener: the system's choice, if it was asked for port 0.
  [[gnu::cold]] int port() const { return listener_.port(); }
  /// A descriptor that can be read when look() has something to do. After meet(): newcomers, which
  /// are all sent away.
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
  /// A connection of which it is not known yet whether it belongs to the job: its hello, and then
  /// its proof.
  struct newcomer {
    tcp_socket socket;
    tcp_address from;
    long number = 0;  // in the order of their coming
    time_limit patience{std::chrono::milliseconds(0)};
    bool is_challenged = false;
    tcp_frame frame;  // of the hello
    tcp_hello hello;
    nonce drawn;  // of this side, once it is challenged
    long have = 0;
    char bytes[sizeof(tcp_frame) + sizeof(tcp_hello)];

    /// Free places come first, then the silent ones, then the oldest.
    bool gives_way_before(newcomer const& other) const {
      auto const rank = [](newcomer const& n) {
        return !n.socket.is_open() ? 0 : n.have == 0 && !n.is_challenged ? 1 : 2;
      };
      int const here = rank(*this), there = rank(other);
      return here != there ? here < there : number < other.number;
    }
  };
  static_assert(sizeof(job_proof) <= sizeof(tcp_hello));
  /// Of a process that has joined, until all have.
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
  /// Takes connections that have come, and reads what they have said already. More than these wait
  /// for the next look, so that no flood of them keeps others from being read.
  [[gnu::cold]] void accept() {
    for (int most = 64; most > 0 && wrong_.empty(); --most) {
      tcp_address from;
      tcp_socket s = listener_.accept(from);
      if (!s.is_open()) {
        // Without a descriptor to give, the system would say again and again that one has come.
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
      read(*place);  // a process of the job has said something already
    }
  }
  /// Sends a stranger away, with an answer that it may understand. It is counted, and the last one
  /// is remembered for the message of a process that is missing.
  [[gnu::cold]] void send_away(newcomer& n, std::string_view why) {
    ++strangers_;
    stranger_ = n.from.text() + ": " + std::string(why);
    // An answer that cannot be taken for one of another protocol; a stranger may be anything.
    send_refusal(n.socket,
                 sentence({"process ", start_.host, " of the job at this address has refused ",
                           std::string_view(n.from.text()), ": ", why})
                     .begin(),
                 false);
    n.socket = {};
  }
  /// Of a process of this job. Before all are there it is the end of the start.
  [[gnu::cold]] void refuse(newcomer& n, std::string const& text) {
    send_refusal(n.socket, text, false);
    n.socket = {};
    if (missing_ > 0) wrong_ = text;
  }

  /// Reads what there is, and judges what has come so far: magic, kind and length before anything
  /// that they announce.
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
  /// A whole hello, which anyone can have sent: this side shows to have the token, and the other
  /// one has to.
  ///
  /// cost: a hash; the one that is expected is made when there is a proof to compare it with
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
  /// A whole hand-shake. Of who has not got the token, nothing is believed, nor is it told more.
  /// Otherwise the connection has a place from now on, or the sender does not fit.
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
    // What it says is read later: here it only lives.
    see(s, newcomers_.size() + 1 + h.process, EPOLLRDHUP);
  }
  /// Says that this process lives, and finds those that have joined and do not say so. What they
  /// say is not read here, but counted: it stays for the first operation.
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
  /// Of jobs of one user at one port none begins where more than one might: which process belongs
  /// to which is not known.
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

  /// Which processes have not come, by number, and the last stranger, which may be one of them with
  /// other variables.
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
  /// The end of the start: all that have come are told, and throw the same text.
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
