// SPDX-License-Identifier: BSL-1.0
//
// What happens to the other processes when one fails or is lost, and when the processes are not one
// program. Each case is a program of its own, started by test_failures.py, because a failure
// between processes is the end: failures CASE, or failures PHASE WAY FILE. Every process says how
// it ended.
#include <algorithm>
#include <bit>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#ifdef BY_SOCKETS
#include <sys/socket.h>
#include <sys/syscall.h>
#endif
#include <unistd.h>

#include <pipe/checkpoint/checkpoint.hpp>
#include <pipe/loose/delayed_replica.hpp>
#include <pipe/loose/virtual_worker.hpp>
#include <pipe/pipe.hpp>
#include <pipe/schedule/catalog/families.hpp>
#include <pipe/weights/weights.hpp>

#include "laws/data.hpp"
#include "mpi/between.hpp"
#include "transport/models.hpp"

using namespace pp;
using test_transports::Shared, test_transports::Small;
using Many = Small<Shared, Between, Stages<8>>;
using Replicas = Small<Shared, Between>;
using Overlapping = Small<Shared, Between, Stages<2>, Steady<>>;
using Ring = Small<Shared, Between, StageReplicas<4>>;
using Alone = Small<Shared, Stages<2>>;

namespace {

struct Chain
    : Model<Input<4>, Linear<4>, Tanh, Linear<4>, Tanh, Linear<4>, Tanh, Linear<4>, Tanh, MSE> {};
template <class Family>
using FlowOf = Pipeline<Chain, PortableHost, SGD, Stages<4>, MicroBatches<2>, MicroBatchSize<1>,
                        Between, Family>;
using Flow = FlowOf<PipeDream<>>;

bool is(char const* a, char const* b) { return std::strcmp(a, b) == 0; }
void say(char const* what) {
  std::printf("process %d: %s\n", Between::process(), what);
  std::fflush(stdout);
}

// ---- the loss of process 2 in a phase ----

constexpr int lost = 2;
char const *phase = "", *way = "", *file = "", *hook = "";

/// The end of this process, by the way that is asked for. One that was stopped returns when mpirun
/// continues it to end it.
void strike() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  std::printf("strikes at %ld.%09ld\n", long(now.tv_sec), now.tv_nsec);
  std::fflush(stdout);
  if (is(way, "killed")) kill(getpid(), SIGKILL);
  if (is(way, "terminated")) kill(getpid(), SIGTERM);
  if (is(way, "stopped") || is(way, "stopped_with_patience")) kill(getpid(), SIGSTOP);
  if (is(way, "exits")) std::exit(5);
}
/// Strikes in this phase: in the given call of MPI, or of send() by sockets, or at once.
void arrive(char const* at, char const* in = nullptr) {
  if (!is(phase, at) || Between::process() != lost) return;
  if (in == nullptr)
    strike();
  else
    hook = in;
}
/// Called in a function of MPI. Where there is none, the next send() is as good.
[[maybe_unused]] void pass(char const* function) {
  if (is(hook, function)) hook = "", strike();
}

void run_through_all_phases() {
  laws::sample_batch<Many> const data(1);
  try {
    if (is(way, "stopped_with_patience")) Between::patience(std::chrono::seconds(2));
    arrive("constructing", "MPI_Iallgather");
    Many many({.seed = 3});
    many.step(data.view());
    arrive("sending", "MPI_Start");
    many.step(data.view());
    many.watch(data.view(), [&](launch_seen const& seen) {
      if (seen.chunk == 2 * lost && seen.micro_batch == 2) arrive("computing");
    });
    arrive("meeting", "MPI_Ibarrier");
    many.step(data.view());
    arrive("saving", "MPI_Ibcast");
    save_weights(many, file);
    arrive("outside");
    if (is(phase, "outside")) sleep(60);
    arrive("destroying");
  } catch (error const& e) {
    return say(e.what());
  }
  arrive("ending", "MPI_Ibarrier");
}

void run_replicas() {
  laws::sample_batch<Replicas> const data(1);
  try {
    Replicas replicas({.seed = 3});
    replicas.step(data.view());
    arrive("exchanging", "MPI_Isend");
    replicas.step(data.view());
  } catch (error const& e) {
    say(e.what());
  }
}

/// The others wait for the sums that the process does not send on.
void run_ranks_of_a_stage() {
  laws::sample_batch<Ring> const data(1);
  try {
    Ring ring({.seed = 3});
    ring.step(data.view());
    ring.watch(data.view(), [&](launch_seen const& seen) {
      if (seen.micro_batch == lost && seen.which == detail::program::backward && seen.launch == 1)
        arrive("adding");
    });
  } catch (error const& e) {
    say(e.what());
  }
}

/// The others wait for what has begun to flow.
void run_flow() {
  laws::sample_batch<Flow> const data(1);
  try {
    Flow flow({.seed = 3});
    flow.train(std::vector(100, data.view()), [](step_result const&) {
      static int seen = 0;
      if (++seen == 3) arrive("flowing", "MPI_Start");
    });
  } catch (error const& e) {
    say(e.what());
  }
}

/// Process 3 ends steps that overlap by an exception of its own.
template <class Trainer>
void end_flow() {
  laws::sample_batch<Trainer> const data(1);
  try {
    Trainer trainer({.seed = 3});
    trainer.train(std::vector(100, data.view()), [](step_result const&) {
      if (Between::process() == 3) throw std::runtime_error("stopped");
    });
  } catch (std::exception const& e) {
    say(e.what());
  }
}

/// Waves of workers, of which `some` makes two and the others four, or is late for its first one.
void run_workers(int some = -1, std::chrono::milliseconds deadline = {}) {
  laws::sample_batch<Alone> const data(1);
  try {
    Alone trainer({.seed = 3});
    virtual_worker<Alone, Between> worker(trainer,
                                          {.clock_distance = 1, .waiting = {.deadline = deadline}});
    bool const other = Between::process() == some;
    if (other && deadline.count() > 0) sleep(30);
    for (int wave = 0; wave < (other ? 2 : 4); ++wave)
      worker.wave([&] {
        if (wave == 2) arrive("waving");
        trainer.step(data.view());
      });
    if (!other) worker.settle();
  } catch (error const& e) {
    say(e.what());
  }
}

// ---- other failures ----

/// Steps of replicas that apply their gradients late. Process 1 has another mini-batch in the
/// second one, or process 3 comes late.
void run_late(bool is_late) {
  laws::sample_batch<Alone> const data(1);
  int const process = Between::process();
  try {
    Alone trainer({.seed = 3});
    delayed_replica<Alone, Between> replica(trainer, {.deadline = std::chrono::seconds(2)});
    replica.step(data.view());
    if (is_late && process == 3) sleep(30);
    replica.step(data.view(Alone::samples - (!is_late && process == 1 ? 1 : 0)));
    replica.settle();
  } catch (error const& e) {
    say(e.what());
  }
}

/// The last process does something in the third micro-batch of its second step.
void in_the_last(std::function<void()> const& something, std::chrono::milliseconds deadline = {}) {
  Many many({.seed = 3, .runtime = {.waiting = {.deadline = deadline}}});
  laws::sample_batch<Many> const data(1);
  bool const is_last = Between::process() == Between::processes() - 1;
  many.step(data.view());
  std::string first;
  try {
    many.watch(data.view(), [&](launch_seen const& seen) {
      if (is_last && seen.chunk == 7 && seen.micro_batch == 2) something();
    });
  } catch (std::exception const& e) {
    first = e.what();
  }
  say(first.c_str());
  try {
    many.step(data.view());
  } catch (rank_error const& e) {
    say(e.what());
  }
}

/// Process 1 is given something else than the others, in a call or before.
void make_another_call(char const* what) {
  bool const other = Between::process() == 1;
  auto const differs = [&](char const* in) { return other && is(what, in); };
  laws::sample_batch<Many> const data(1);
  try {
    Many many({.seed = differs("seed") ? 4u : 3u,
               .optimizer = {.weight_decay = differs("decay") ? 0.5 : 0},
               .clip_norm = differs("clip") ? 1.0 : 0});
    many.step(data.view(), differs("rate") ? 0.5 : 0.25);
    if (differs("evaluate")) {
      many.evaluate(data.view());
    } else if (differs("gradients")) {
      many.gradients(data.view());
    } else {
      many.step(data.view(Many::samples - (differs("samples") ? 1 : 0)), 0.25);
    }
    if (differs("forward")) {
      std::vector<float> out(std::size_t(Many::samples * Many::outputs_per_sample));
      many.forward(data.view(), out);
    } else {
      many.evaluate(data.view());
    }
  } catch (error const& e) {
    return say(e.what());
  }
}

/// Process 1 gives other labels than the others, in the same number.
template <class Trainer>
void give_other_labels() {
  laws::sample_batch<Trainer> data(1);
  try {
    Trainer trainer({.seed = 3});
    trainer.step(data.view());
    if (Between::process() == 1)
      std::rotate(data.labels.begin(), data.labels.begin() + 1, data.labels.end());
    trainer.train(std::vector(4, data.view()));
  } catch (error const& e) {
    say(e.what());
  }
}

struct Words
    : Model<Tokens<7, 8>, Embedding<4>, Linear<4>, Tanh, Linear<4>, Linear<7>, CrossEntropy> {};
template <class... More>
using Unequal = Pipeline<Words, PortableHost, SGD, MicroBatches<2>, MicroBatchSize<2>, Between,
                         Lengths<2>, More...>;
/// Process 1 gives samples of other lengths than the others, with the same labels one behind the
/// other: micro-batches with fewer rows, and with more.
template <class Trainer>
void give_other_lengths() {
  bool const other = Between::process() == 1;
  try {
    Trainer trainer({.seed = 3});
    std::size_t const samples = std::size_t(trainer.batch_samples());
    std::vector<int> lengths(samples, 2), ids, labels;
    for (std::size_t s = 0; s < samples; s += 2) lengths[s] = s % 4 == 0 ? 8 : 4;
    for (int length : lengths)
      for (int i = 0; i < length; ++i) ids.push_back(i % 7), labels.push_back(i % 5);
    trainer.step(typename Trainer::batch{ids, labels}.set_lengths(lengths));
    if (other) std::reverse(lengths.begin(), lengths.end());
    for (int step = 0; step < 3; ++step)
      trainer.step(typename Trainer::batch{ids, labels}.set_lengths(lengths));
  } catch (error const& e) {
    say(e.what());
  }
}

struct Heads : Model<Input<3>, Linear<4>, Stash<"early">, Tanh, Linear<4>, Tanh, Linear<2>,
                     Losses<MSE, FurtherLoss<"worth", "early", Linear<2>, MSE>>> {};

/// As many ranks, or accumulations, as the processes cannot share.
struct Few : Model<Input<1>, Linear<1>, Linear<1>, Linear<1>, MSE> {};
template <class... More>
void is_refused() {
  try {
    Pipeline<Few, PortableHost, SGD, Between, More...> few;
  } catch (error const& e) {
    say(e.what());
  }
}

/// Process 1 asks for another output than the others, of as many numbers.
void ask_for_another_output() {
  using trainer = Small<Heads, Between, Stages<4>>;
  laws::sample_batch<trainer> const data(1);
  std::vector<float> outputs(std::size_t(2 * trainer::samples));
  try {
    trainer t({.seed = 3});
    t.forward<"worth">(data.view(), outputs);
    if (Between::process() == 1)
      t.forward(data.view(), outputs);
    else
      t.forward<"worth">(data.view(), outputs);
    t.evaluate(data.view());
  } catch (error const& e) {
    say(e.what());
  }
}

/// One bit of a parameter is another one in process 2, from the first step on. every: steps between
/// comparisons
template <class Trainer, class Go>
void compare_after(long every, Go const& go) {
  laws::sample_batch<Trainer> const data(1);
  try {
    Trainer trainer({.seed = 3, .compare_replicas = every});
    trainer.step(data.view());
    if (Between::process() == 2) {
      float& w = trainer.parameters()[0].values[1];
      w = std::bit_cast<float>(std::bit_cast<std::uint32_t>(w) ^ 1u);
      trainer.parameters_changed();
    }
    go(trainer, data);
    say("has found nothing");
  } catch (error const& e) {
    say(e.what());
  }
}
void compare_replicas(char const* when) {
  if (is(when, "step"))
    compare_after<Replicas>(3, [](auto& trainer, auto const& data) {
      for (int step = 0; step < 4; ++step) trainer.step(data.view());
    });
  if (is(when, "train"))
    compare_after<Overlapping>(
        3, [](auto& trainer, auto const& data) { trainer.train(std::vector(4, data.view())); });
  if (is(when, "save"))
    compare_after<Replicas>(0, [](auto& trainer, auto const& data) {
      for (int step = 0; step < 4; ++step) trainer.step(data.view());
      trainer.save(file);
    });
}

void run(char const* what) {
  if (is(what, "throws")) in_the_last([] { throw std::runtime_error("broken"); });
  if (is(what, "hangs")) in_the_last([] { sleep(60); }, std::chrono::seconds(1));
  if (is(what, "is_elsewhere")) {
    try {
      if (Between::process() == 3) sleep(60);
      Many many({.runtime = {.waiting = {.deadline = std::chrono::seconds(1)}}});
    } catch (rank_error const& e) {
      say(e.what());
    }
  }
  if (is(what, "exits_early") || is(what, "is_late")) {
    bool const exits = is(what, "exits_early");
    bool const is_first_to_miss = !exits && Between::process() == 0;
    Many many(
        {.runtime = {.waiting = {.deadline = std::chrono::seconds(is_first_to_miss ? 1 : 30)}}});
    laws::sample_batch<Many> const data(1);
    try {
      many.step(data.view());
      if (Between::process() == 3) exits ? std::exit(0) : void(sleep(30));
      many.evaluate(data.view());
    } catch (rank_error const& e) {
      say(e.what());
    }
  }
  if (is(what, "worker_ends_early")) run_workers(1);
  if (is(what, "worker_is_late")) run_workers(3, std::chrono::seconds(2));
  if (is(what, "late_other_call")) run_late(false);
  if (is(what, "labels of ranks")) give_other_labels<Many>();
  if (is(what, "lengths of ranks")) give_other_lengths<Unequal<Stages<4>>>();
  if (is(what, "lengths of replicas")) give_other_lengths<Unequal<>>();
  if (is(what, "outputs")) ask_for_another_output();
  if (is(what, "labels of replicas")) give_other_labels<Replicas>();
  if (is(what, "labels in steps that overlap")) give_other_labels<Overlapping>();
  if (std::strncmp(what, "compare ", 8) == 0) compare_replicas(what + 8);
  if (is(what, "late_replica")) run_late(true);
  if (is(what, "ends_early")) {
    Many many({.seed = 3});
    laws::sample_batch<Many> const data(1);
    for (int step = 0; step < 3; ++step) {
      if (step == 1 && Between::process() == 1) return say("ends early");
      if (step == 1 && Between::process() == 3) sleep(1);  // it may know before its next run
      try {
        many.step(data.view());
      } catch (error const& e) {
        say(e.what());
      }
    }
  }
  if (is(what, "ends_flow")) end_flow<Flow>();
  if (is(what, "ends_steady")) end_flow<FlowOf<Steady<>>>();
  if (std::strncmp(what, "other ", 6) == 0) make_another_call(what + 6);
  if (is(what, "other_plan")) {
    try {
      if (Between::process() == 1)
        Flow other;
      else
        Many many;
    } catch (error const& e) {
      say(e.what());
    }
  }
  if (is(what, "too_many_processes")) {
    is_refused<Stages<3>>();
    is_refused<GradientAccumulation<2>>();
  }
}

}  // namespace

#ifdef BY_SOCKETS
extern "C" ssize_t send(int to, void const* data, std::size_t n, int flags) {
  if (*hook != 0) hook = "", strike();
  return syscall(SYS_sendto, to, data, n, flags, nullptr, 0);
}
#else
// MPI's functions in which a process is lost: PMPI_ is their second name, for programs that look
// into calls.
extern "C" {
int MPI_Comm_idup(MPI_Comm of, MPI_Comm* made, MPI_Request* r) {
  int process = 0;  // pipe does not know it yet
  MPI_Comm_rank(MPI_COMM_WORLD, &process);
  if (is(phase, "starting") && process == lost) strike();
  return PMPI_Comm_idup(of, made, r);
}
int MPI_Iallgather(void const* from, int n, MPI_Datatype of, void* to, int m, MPI_Datatype as,
                   MPI_Comm on, MPI_Request* r) {
  pass("MPI_Iallgather");
  return PMPI_Iallgather(from, n, of, to, m, as, on, r);
}
int MPI_Start(MPI_Request* r) {
  pass("MPI_Start");
  return PMPI_Start(r);
}
int MPI_Isend(void const* data, int n, MPI_Datatype of, int to, int tag, MPI_Comm on,
              MPI_Request* r) {
  pass("MPI_Isend");
  return PMPI_Isend(data, n, of, to, tag, on, r);
}
int MPI_Ibarrier(MPI_Comm on, MPI_Request* r) {
  pass("MPI_Ibarrier");
  return PMPI_Ibarrier(on, r);
}
int MPI_Ibcast(void* data, int n, MPI_Datatype of, int from, MPI_Comm on, MPI_Request* r) {
  pass("MPI_Ibcast");
  return PMPI_Ibcast(data, n, of, from, on, r);
}
}
#endif

int main(int count, char** arguments) {
  std::printf("runs as %d\n", int(getpid()));
  std::fflush(stdout);
  if (count == 2) run(arguments[1]);
  if (count == 4) {
    phase = arguments[1], way = arguments[2], file = arguments[3];
    if (is(phase, "exchanging")) return run_replicas(), 0;
    if (is(phase, "flowing")) return run_flow(), 0;
    if (is(phase, "waving")) return run_workers(), 0;
    return is(phase, "adding") ? run_ranks_of_a_stage() : run_through_all_phases(), 0;
  }
  say("ends");
}
