// SPDX-License-Identifier: BSL-1.0
#include "mutants.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <utility>
#include <vector>

#include "opcodes.hpp"
#include "warp.hpp"

namespace ptx {
namespace {

struct mutant {
  char const* kind;
  int number;  ///< among those of its kind
  std::string kernel;
  std::size_t at;  ///< instruction
  int variant = 0;
  bool reached = false, survived = false;
};

std::vector<mutant> all_mutants(std::map<std::string, kernel> const& kernels) {
  std::vector<mutant> all;
  std::map<std::string, int> numbers;
  for (auto const& [name, k] : kernels)
    for (std::size_t at = 0; at < k.code.size(); ++at) {
      std::string const& opcode = opcode_names()[std::size_t(k.code[at].opcode)];
      auto const add = [&, &kernel = name](char const* kind, int variant = 0) {
        all.push_back({kind, numbers[kind]++, kernel, at, variant});
      };
      if (opcode == "bar.sync") add("barrier");
      if (opcode.starts_with("cp.async.wait_")) add("wait");
      if (opcode == "griddepcontrol.wait") add("start");
      if (opcode == "wgmma.fence.sync.aligned" || opcode.starts_with("fence.mbarrier_init"))
        add("fence");
      if (opcode.starts_with("wgmma.commit_group") || opcode.starts_with("wgmma.wait_group"))
        add("wait");
      if (opcode.starts_with("mbarrier.arrive")) add("arrival");
      if (opcode.starts_with("mma."))
        for (int variant : {0, 1}) add("product", variant);
      if (opcode.find(".shared") != opcode.npos && !opcode.starts_with("cvta")) add("shared");
    }
  return all;
}

void mutate(kernel& k, mutant const& m) {
  instruction& i = k.code[m.at];
  std::string const kind = m.kind;
  if (kind == "product")
    m.variant == 0 ? std::swap(i.of[4], i.of[5])
                   : std::swap(i.of[8], i.of[9]);  // of d, a, b, c: 4, 4, 2, 4 registers
  else if (kind == "shared")
    i.number += 16;
  else
    i.run = [](warp&, instruction const&, lanes) {};
}

/// Which instructions the process without a mutant executed: shared with its parent.
struct reach {
  bool* of = nullptr;
  std::map<instruction const*, std::pair<function, std::vector<std::size_t>>> watched;
} now;

void note_and_run(warp& w, instruction const& i, lanes active) {
  auto const& [run, mutants] = now.watched.at(&i);
  std::size_t const before = w.copies.size();
  run(w, i, active);
  auto const is_empty = [](copy const& c) { return c.from_memory == 0; };
  if (w.copies.size() > before &&
      std::all_of(w.copies.begin() + std::ptrdiff_t(before), w.copies.end(), is_empty))
    return;
  for (std::size_t const m : mutants) now.of[m] = true;
}

/// In the child: its output goes to a file, its errors nowhere.
void redirect(std::string const& output) {
  int const to = open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600),
            nowhere = open("/dev/null", O_WRONLY);
  dup2(to, 1);
  dup2(nowhere, 2);
}
std::string contents(std::string const& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

void run_mutants(std::map<std::string, kernel>& kernels) {
  char const* const file = std::getenv("PIPE_PTX_MUTANTS");
  if (file == nullptr) return;
  std::fflush(nullptr);
  std::vector<mutant> all = all_mutants(kernels);
  now.of = static_cast<bool*>(
      mmap(nullptr, all.size() + 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  auto const fail = [](char const* what) {
    std::fprintf(stderr, "mutants: %s\n", what);
    _exit(2);
  };
  auto const output_of = [&](std::size_t m) {
    return std::string(file) + "." + std::to_string(m) + ".out";
  };

  auto const begin = std::chrono::steady_clock::now();
  std::string const without = output_of(all.size());
  pid_t const first = fork();
  if (first == 0) {
    for (std::size_t m = 0; m < all.size(); ++m) {
      instruction& i = kernels.at(all[m].kernel).code[all[m].at];
      auto& [run, mutants] = now.watched[&i];
      if (mutants.empty()) run = std::exchange(i.run, note_and_run);
      mutants.push_back(m);
    }
    redirect(without);
    return;
  }
  int expected_status = 0;
  if (first < 0 || waitpid(first, &expected_status, 0) != first || expected_status != 0)
    fail("the program fails without any");
  std::string const expected = contents(without);
  unlink(without.c_str());
  std::chrono::duration<double> const alone = std::chrono::steady_clock::now() - begin;
  unsigned const limit = unsigned(20 + 20 * alone.count());  // seconds

  std::vector<std::size_t> chosen;
  char const* const only = std::getenv("PIPE_PTX_MUTANT");
  for (std::size_t m = 0; m < all.size(); ++m) {
    all[m].reached = now.of[m];
    bool const is_asked = only == nullptr || std::string(only) == std::string(all[m].kind) + ":" +
                                                                      std::to_string(all[m].number);
    if (all[m].reached && is_asked) chosen.push_back(m);
  }
  std::size_t const reached = chosen.size();
  if (char const* const n = std::getenv("PIPE_PTX_SAMPLE"); n != nullptr) {
    std::shuffle(chosen.begin(), chosen.end(), std::mt19937(1));
    chosen.resize(std::min(chosen.size(), std::size_t(std::atoi(n))));
    std::sort(chosen.begin(), chosen.end());
  }
  if (chosen.empty()) fail("the program executes none");

  char const* const jobs = std::getenv("PIPE_JOBS");
  std::size_t const at_once = jobs != nullptr ? std::size_t(std::max(1, std::atoi(jobs))) : 2;
  std::map<pid_t, std::size_t> running;
  auto const end_one = [&] {
    int status = 0;
    pid_t const id = wait(&status);
    std::size_t const m = running.at(id);
    running.erase(id);
    all[m].survived = status == expected_status && contents(output_of(m)) == expected;
    unlink(output_of(m).c_str());
  };
  for (std::size_t const m : chosen) {
    if (running.size() >= at_once) end_one();
    pid_t const id = fork();
    if (id < 0) fail("fork");
    if (id == 0) {
      mutate(kernels.at(all[m].kernel), all[m]);
      redirect(output_of(m));
      alarm(limit);
      return;
    }
    running[id] = m;
  }
  while (!running.empty()) end_one();

  std::FILE* const f = std::fopen(file, "w");
  if (f == nullptr) fail("cannot write the file");
  std::map<std::string, std::pair<int, int>> score;  // killed, of
  for (std::size_t const m : chosen) {
    mutant const& x = all[m];
    kernel const& k = kernels.at(x.kernel);
    std::fprintf(f, "%s\t%s\t%d\t%s\t%d\t%s\n", x.survived ? "survived" : "killed", x.kind,
                 x.number, x.kernel.c_str(), k.code[x.at].line, k.text[x.at].c_str());
    auto& [killed, of] = score[x.kind];
    killed += !x.survived, ++of;
  }
  std::fclose(f);
  int survivors = 0;
  for (auto const& [kind, s] : score) {
    std::printf("%s: %d of %d mutants killed\n", kind.c_str(), s.first, s.second);
    survivors += s.second - s.first;
  }
  std::printf("%zu mutants of %zu that the program executes; it has %zu\n", chosen.size(), reached,
              all.size());
  std::fflush(nullptr);
  _exit(survivors > 0 ? 1 : 0);
}

}  // namespace ptx
