// SPDX-License-Identifier: BSL-1.0
//
// The memory of a process beside its plan: peak LEVEL, started as several processes. What a trainer
// does between steps takes no whole copy of parameters or states, at any level of ZeRO. The peak is
// that of the process, as the system counts it.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <pipe/checkpoint/checkpoint.hpp>
#include <pipe/checkpoint/optimizer_state.hpp>
#include <pipe/pipe.hpp>
#include <pipe/tcp.hpp>
#include <pipe/weights/copy_weights.hpp>
#include <pipe/weights/parameter_hash.hpp>
#include <pipe/weights/weights.hpp>

using namespace pp;

namespace {

/// 6.3 million parameters, 25 MB, of which the largest has more than the bound.
struct Net : Model<Input<1024>, Repeat<3, Linear<1024>, ReLU>, Linear<3072>, ReLU, Linear<10>,
                   CrossEntropy> {};
template <int Level, class... More>
using Trained = Pipeline<Net, MicroBatchSize<2>, AdamW, ZeRO<Level>, Tcp, More...>;
long bound = 8L << 20;
/// Weights of ranks in other processes are received one parameter at a time.
constexpr long largest = 1025 * 3072 * long(sizeof(float));

/// A line of /proc/self/status, in bytes.
long memory(std::string const& what) {
  std::ifstream lines("/proc/self/status");
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(what)) return std::stol(line.substr(what.size() + 1)) * 1024;
  std::abort();
}

long base = 0, plan = 0;
bool is_good = true;
void check(char const* what, bool is_so = true) {
  long const more = memory("VmHWM") - base - plan;
  if (more <= bound && is_so) return;
  std::printf("process %d: %s: %ld bytes beside the plan of %ld%s\n", Tcp::process(), what, more,
              plan, is_so ? "" : ", and wrong");
  std::fflush(stdout);
  is_good = false;
}

template <int Level, class... More>
void run(std::string const& folder) {
  using T = Trained<Level, More...>;
  base = memory("VmRSS");
  T t({.seed = 1});
  transports::process_place const place = Tcp::transport::place(T::plan().rank_count);
  for (int r = place.first_rank; r < place.first_rank + place.ranks; ++r)
    plan += T::plan().rank_bytes_of(r, place.replicas, place.replica);
  check("construction");
  std::vector<float> const x(std::size_t(t.batch_samples()) * 1024, 0.5F);
  std::vector<int> const y(std::size_t(t.batch_samples()), 3);
  auto const step = [&] { return t.step({x, y}).loss; };
  step(), step();
  check("steps");
  std::uint64_t const before = parameter_hash(t);
  check("parameter_hash");
  t.save(folder + "/one");
  check("save");
  t.save(folder + "/parts", {}, checkpoint_files::by_process);
  check("save by process");
  save_weights(t, folder + "/weights");
  check("save_weights");
  save_optimizer_state(t, folder + "/state");
  check("save_optimizer_state");
  double const next = step();
  t.load(folder + "/one");
  check("load", parameter_hash(t) == before && step() == next);
  t.load(folder + "/parts");
  check("load of parts", parameter_hash(t) == before && step() == next);
  load_weights(t, folder + "/weights");
  check("load_weights", parameter_hash(t) == before);
  load_optimizer_state(t, folder + "/state");
  check("load_optimizer_state", step() == next);
  load_weights(t, folder + "/weights");
  long numbers = 0;
  bool is_some = false;
  for_each_parameter(t, [&](auto const& p) {
    numbers += long(p.values.size());
    for (float& value : p.values) value *= 2;
    is_some = is_some || !p.values.empty();
  });
  t.parameters_changed();
  long here = 0;
  for (stage_plan const& s : T::plan().stages) here += place.has(s.rank) ? s.parameters : 0;
  check("for_each_parameter", numbers == here && parameter_hash(t) != before);
  for_each_parameter(t, [&](auto const& p) {
    for (float& value : p.values) value /= 2;
  });
  t.parameters_changed();
  check("for_each_parameter again", parameter_hash(t) == before && is_some);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 2;
  std::string const level = arguments[1], folder = arguments[2];
#ifdef WITH_ALL_LEVELS
  if (level == "0") run<0>(folder);
  if (level == "1") run<1>(folder);
  if (level == "2") run<2>(folder);
  if (level == "3") run<3>(folder);
#endif
  if (level == "2.micro") run<2, MicroBatches<4>>(folder);
  if (level == "3.micro") run<3, MicroBatches<4>>(folder);
  if (level == "stages") bound += largest, run<3, Stages<2>>(folder);
  std::printf("process %d of %d: %s\n", Tcp::process(), Tcp::processes(),
              is_good ? "good" : "not good");
  return is_good ? 0 : 1;
}
