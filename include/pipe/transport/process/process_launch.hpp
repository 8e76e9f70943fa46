// SPDX-License-Identifier: BSL-1.0
//
// The processes of a program as its launcher numbers them, by the variables that the launcher sets.
// Only the innermost launcher counts, in this order: mpirun of Open MPI, mpirun of MPICH, srun, any
// launcher that sets RANK and WORLD_SIZE, such as torchrun; without a launcher the process is
// alone.
#pragma once

#include <cstdlib>
#include <cstring>
#include <string_view>

#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>

namespace pp::detail {

/// Variables by their names: the environment of this process, the results of a function, or a block
/// of memory that outlives this object.
class environment {
 public:
  /// The environment of this process.
  environment() = default;
  /// value: of a variable, by its name; null: it is not set
  environment(char const* (*value)(char const* name)) : value_(value) {}
  /// block: "NAME=value", with a zero after each, also after the last one
  explicit environment(std::string_view block) : block_(block) {}

  /// The value of a variable; null: it is not set.
  [[gnu::cold]] char const* operator()(char const* name) const {
    if (block_.data() == nullptr) return value_(name);
    std::string_view const wanted = name;
    for (std::string_view left = block_; !left.empty();) {
      std::string_view const one = left.substr(0, left.find('\0'));
      if (one.size() == left.size()) break;  // not whole
      if (one.size() > wanted.size() && one[wanted.size()] == '=' && one.starts_with(wanted))
        return one.data() + wanted.size() + 1;
      left.remove_prefix(one.size() + 1);
    }
    return nullptr;
  }

 private:
  char const* (*value_)(char const*) = [](char const* name) -> char const* {
    return std::getenv(name);
  };
  std::string_view block_;
};

/// A variable that is a decimal number in [least, most].
///
/// throws: error, which names the variable, its value and the range
[[gnu::cold]] inline int number_in(environment const& from, char const* name, int least, int most) {
  char const* const text = from(name);
  if (text == nullptr) throw_error<error>({name, " is not set: expected a number from ", least});
  long value = -1;
  if (*text >= '0' && *text <= '9') {
    char* end = nullptr;
    value = std::strtol(text, &end, 10);
    if (*end != 0 || std::strlen(text) > 9) value = -1;
  }
  if (value < least || value > most)
    throw_error<error>({name, " is '", text, "': expected a number from ", least, " to ", most});
  return int(value);
}

/// This process among the processes that one launcher has started.
///
/// law: the numbers of one launcher are never mixed with the numbers of another
struct process_launch {
  char const* launcher = "";  ///< empty: the process is alone
  char const* size = "";      ///< the variable that has the number of processes
  int process = 0, processes = 1;
  /// Its number among the processes of its machine, and the number of these; -1 and 0: the launcher
  /// does not say.
  int local = 0, locals = 1;

  /// Reads the variables. To be called before MPI is initialised, which sets some of them itself.
  ///
  /// throws: error if a variable is no number or out of range; if a launcher has set only some of
  ///         its variables, as each process would then train alone; or if srun and RANK contradict
  ///         each other
  [[gnu::cold]] static process_launch from(environment const& all = {}) {
    for (variables const& v : known) {
      // Both variables: a batch script of Slurm, or a shell, may have one of them.
      if (all(v.mark) == nullptr || all(v.size) == nullptr) continue;
      process_launch const found = from(all, v);
      if (&v == &known[srun]) refuse_half_of_srun(all, found);
      if (&v == &known[srun] && all("RANK") != nullptr && all("WORLD_SIZE") != nullptr) {
        // torchrun inside of srun starts more processes than srun has.
        if (all("TORCHELASTIC_RUN_ID") != nullptr || found.processes == 1) continue;
        process_launch const other = from(all, known[srun + 1]);
        if (other.process != found.process || other.processes != found.processes)
          throw_error<error>({"srun has started this as process ", found.process, " of ",
                              found.processes, ", and RANK and WORLD_SIZE say ", other.process,
                              " of ", other.processes, ": unset them, or set both to the same"});
      }
      return found;
    }
    refuse_half(all);
    return {};
  }

 private:
  static constexpr int most_processes = 1'000'000;
  /// Names of variables. mark: a variable that only processes have which the launcher has started.
  struct variables {
    char const *launcher, *mark, *size, *rank, *local, *locals;
  };
  static constexpr int srun = 2;
  static constexpr variables known[] = {
      {"mpirun of Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK",
       "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
      {"mpirun of MPICH", "PMI_RANK", "PMI_SIZE", "PMI_RANK", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
      {"srun", "SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_LOCALID", ""},
      {"a launcher that sets RANK", "RANK", "WORLD_SIZE", "RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
  };
  /// Refuses variables of a launcher that has set some and not all, or of a script that forgot a
  /// variable.
  ///
  /// throws: error
  [[gnu::cold]] static void refuse_half(environment const& all) {
    constexpr char const* halves[][2]{{"RANK", "WORLD_SIZE"},
                                      {"WORLD_SIZE", "RANK"},
                                      {"LOCAL_RANK", "RANK"},
                                      {"LOCAL_WORLD_SIZE", "RANK"},
                                      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                      {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
                                      {"PMI_RANK", "PMI_SIZE"},
                                      {"PMI_SIZE", "PMI_RANK"}};
    for (auto const& [set, missing] : halves)
      if (all(set) != nullptr && all(missing) == nullptr) refuse_half(all, set, missing);
  }
  [[noreturn, gnu::cold]] static void refuse_half(environment const& all, char const* set,
                                                  char const* missing) {
    throw_error<error>({set, " is '", all(set), "', and ", missing,
                        " is not set: set both, or unset ", set, " for a process that is alone"});
  }
  /// A step of srun may have one of RANK and WORLD_SIZE, if the variable says what srun says.
  [[gnu::cold]] static void refuse_half_of_srun(environment const& all,
                                                process_launch const& found) {
    bool const has_rank = all("RANK") != nullptr, has_size = all("WORLD_SIZE") != nullptr;
    if (has_rank && !has_size && number_in(all, "RANK", 0, most_processes - 1) != found.process)
      refuse_half(all, "RANK", "WORLD_SIZE");
    if (has_size && !has_rank && number_in(all, "WORLD_SIZE", 1, most_processes) != found.processes)
      refuse_half(all, "WORLD_SIZE", "RANK");
  }
  [[gnu::cold]] static process_launch from(environment const& all, variables const& v) {
    process_launch found{v.launcher, v.size, 0, 1, -1, 0};
    found.processes = number_in(all, v.size, 1, most_processes);
    found.process = number_in(all, v.rank, 0, found.processes - 1);
    if (all(v.locals) != nullptr) found.locals = number_in(all, v.locals, 1, found.processes);
    int const others = found.locals > 0 ? found.locals : found.processes;
    if (all(v.local) != nullptr) found.local = number_in(all, v.local, 0, others - 1);
    return found;
  }
};

/// The address at which process 0 listens for the other processes, on loopback unless MASTER_ADDR
/// names another address.
struct meeting_place {
  char const* address = "127.0.0.1";
  int port = 0;

  /// throws: error if MASTER_PORT is not set, or is no port
  [[gnu::cold]] static meeting_place from(environment const& all = {}) {
    meeting_place found;
    if (char const* const address = all("MASTER_ADDR"); address != nullptr && *address != 0)
      found.address = address;
    found.port = number_in(all, "MASTER_PORT", 1, 65535);
    return found;
  }
};

}  // namespace pp::detail
