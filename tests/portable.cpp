// SPDX-License-Identifier: BSL-1.0
//
// Training on a POSIX system that is not Linux, as far as Linux can show it: compiled with
// -U__linux__, so that headers take their fallbacks, and with names that only Linux has poisoned.
#ifdef __linux__
#error "to be compiled with -U__linux__"
#endif

#include "catch.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#if defined(_SYS_EPOLL_H) || defined(_SYS_EVENTFD_H) || defined(_LINUX_FUTEX_H)
#error "these headers must be seen where the library includes them"
#endif
#pragma GCC poison syscall cpu_set_t sched_getaffinity sched_setaffinity pthread_getaffinity_np
#pragma GCC poison pthread_setaffinity_np madvise memfd_create mremap fallocate posix_fadvise
#pragma GCC poison eventfd epoll_create1 epoll_ctl epoll_wait signalfd timerfd_create prctl gettid
#pragma GCC poison accept4 pipe2 getrandom renameat2 copy_file_range statx secure_getenv mallinfo2
#undef MAP_POPULATE
#undef O_PATH
#undef O_TMPFILE
#undef RUSAGE_THREAD

#include <pipe/checkpoint/checkpoint_parts.hpp>
#include <pipe/checkpoint/checkpoints.hpp>
#include <pipe/checkpoint/step_log.hpp>
#include <pipe/data.hpp>
#include <pipe/metrics/tensorboard.hpp>
#include <pipe/pipe.hpp>
#include <pipe/report/explain.hpp>
#include <pipe/report/page.hpp>
#include <pipe/report/progress_line.hpp>
#include <pipe/report/trace.hpp>
#include <pipe/train/stop_request.hpp>
#include <pipe/weights/weights.hpp>

#if defined(_SYS_EPOLL_H) || defined(_SYS_EVENTFD_H) || defined(_LINUX_FUTEX_H)
#error "a header of Linux is included"
#endif

#include "laws/bit_law.hpp"

using namespace pp;
using detail::progress;
using std::chrono::milliseconds;

namespace {

struct Small : Model<Input<4>, Linear<8>, GELUTanh, Linear<8>, Dropout<1, 4>, Tanh, Linear<3>,
                     CrossEntropy> {};
template <class... Options>
using Trainer = Pipeline<Small, MicroBatches<6>, MicroBatchSize<2>, AdamW, Options...>;

/// What a thread that waits for 1 comes back with, when the counter is published after a while.
transports::waited published(transports::patience const& limits,
                             transports::failure_flag const* failed) {
  progress counter;
  transports::waited seen = transports::waited::failed;
  std::thread waiter(
      [&] { seen = failed ? counter.wait(1, limits, *failed) : counter.wait(1, limits); });
  std::this_thread::sleep_for(milliseconds(20));
  counter.publish(1);
  waiter.join();
  return seen;
}

}  // namespace

TEST_CASE("a parked thread is woken without a futex", "[portable]") {
  transports::failure_flag failed = false;
  for (auto const deadline : {milliseconds(300'000), transports::no_deadline}) {
    transports::patience const limits{std::chrono::nanoseconds(0), deadline};
    CHECK(published(limits, nullptr) == transports::waited::done);
    CHECK(published(limits, &failed) == transports::waited::done);
  }
}

TEST_CASE("a thread that waits without limit is not woken", "[portable]") {
  auto const sleeps = [] {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    return used.ru_nvcsw;
  };
  progress counter;
  std::thread waiter(
      [&] { counter.wait(1, {std::chrono::nanoseconds(0), transports::no_deadline}); });
  std::this_thread::sleep_for(milliseconds(20));
  long const before = sleeps();
  std::this_thread::sleep_for(milliseconds(200));
  CHECK(sleeps() - before < 20);
  counter.publish(1);
  waiter.join();
}

TEST_CASE("a wait ends at its deadline and with a failure", "[portable]") {
  progress counter;
  transports::patience const soon{std::chrono::nanoseconds(0), milliseconds(30)};
  transports::failure_flag failed = false;
  CHECK(counter.wait(1, soon) == transports::waited::too_long);
  CHECK(counter.wait(1, soon, failed) == transports::waited::too_long);
  failed = true;
  CHECK(counter.wait(1, {std::chrono::nanoseconds(0), transports::no_deadline}, failed) ==
        transports::waited::failed);
}

TEST_CASE("training has the bits of one stage", "[portable]") {
  laws::same_as_one_stage<Trainer<>, Trainer<Stages<3>, HostThreads<2>>>(5);
  laws::same_as_one_stage<Trainer<>, Trainer<Stages<2>, Interleaved<2>>>(5);
}
