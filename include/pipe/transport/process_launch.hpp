// SPDX-License-Identifier: BSL-1.0
//
// The processes of a program as its launcher numbers them, by the variables that it sets. Only the
// innermost launcher counts, in this order: mpirun of Open MPI, mpirun of MPICH, srun, any that
// sets RANK and WORLD_SIZE, such as torchrun; without any of them the process is alone.
#pragma once

#include <cstdlib>
#include <cstring>

#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>

namespace pp::detail {

/// The value of a variable, by its name; null: it is not set.
using environment = char const* (*)(char const* name);

/// The environment of this process.
inline char const* variable_of_process(char const* name) { return std::getenv(name); }

/// A variable that is a decimal number in [least, most].
///
/// throws: error, which names the variable, its value and the range
[[gnu::cold]] inline int number_in(environment from, char const* name, int least, int most) {
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

/// This process among those that one launcher has started.
///
/// law: the numbers of one launcher are never mixed with those of another
struct process_launch {
  char const* launcher = "";  ///< empty: the process is alone
  char const* size = "";      ///< the variable that has the number of processes
  int process = 0, processes = 1;
  /// Its number among those of its machine, and how many these are; -1 and 0: the launcher does not
  /// say.
  int local = 0, locals = 1;

  /// To be asked before MPI is initialised, which sets some of these variables itself.
  ///
  /// throws: error if a variable is no number or out of range, if RANK is set and WORLD_SIZE is
  ///         not, or if srun and RANK contradict each other
  [[gnu::cold]] static process_launch from(environment all = variable_of_process) {
    for (variables const& v : known) {
      // Both: a batch script of Slurm, or a shell, may have the one or the other.
      if (all(v.mark) == nullptr || all(v.size) == nullptr) continue;
      process_launch const found = from(all, v);
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
    if (all("RANK") != nullptr)
      throw_error<error>({"RANK is '", all("RANK"), "', and WORLD_SIZE is not set: set both"});
    return {};
  }

 private:
  static constexpr int most_processes = 1'000'000;
  /// Names of variables. mark: one that only processes have which the launcher has started.
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
  [[gnu::cold]] static process_launch from(environment all, variables const& v) {
    process_launch found{v.launcher, v.size, 0, 1, -1, 0};
    found.processes = number_in(all, v.size, 1, most_processes);
    found.process = number_in(all, v.rank, 0, found.processes - 1);
    if (all(v.locals) != nullptr) found.locals = number_in(all, v.locals, 1, found.processes);
    int const others = found.locals > 0 ? found.locals : found.processes;
    if (all(v.local) != nullptr) found.local = number_in(all, v.local, 0, others - 1);
    return found;
  }
};

/// The address at which process 0 listens for the others, on loopback unless MASTER_ADDR names
/// another one.
struct meeting_place {
  char const* address = "127.0.0.1";
  int port = 0;

  /// throws: error if MASTER_PORT is not set, or is no port
  [[gnu::cold]] static meeting_place from(environment all = variable_of_process) {
    meeting_place found;
    if (char const* const address = all("MASTER_ADDR"); address != nullptr && *address != 0)
      found.address = address;
    found.port = number_in(all, "MASTER_PORT", 1, 65535);
    return found;
  }
};

/// A number that all processes of a job have, and no other process: PIPE_JOB_TOKEN, 32 hexadecimal
/// digits. Without it all bytes are 0, and jobs are told apart by their plans alone.
struct job_token {
  static constexpr int size = 16;
  unsigned char bytes[size]{};

  /// throws: error, which does not show the value, if it is set and no such number
  [[gnu::cold]] static job_token from(environment all = variable_of_process) {
    job_token found;
    char const* const text = all("PIPE_JOB_TOKEN");
    if (text == nullptr) return found;
    auto const digit = [](char c) {
      return c >= '0' && c <= '9'   ? c - '0'
             : c >= 'a' && c <= 'f' ? c - 'a' + 10
             : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                    : -1;
    };
    long const length = long(std::strlen(text));
    bool is_good = length == 2 * size;
    for (int i = 0; is_good && i < size; ++i) {
      int const high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
      is_good = high >= 0 && low >= 0;
      found.bytes[i] = static_cast<unsigned char>(16 * high + low);
    }
    if (!is_good)
      throw_error<error>({"PIPE_JOB_TOKEN has ", length,
                          " characters: expected 32 hexadecimal digits, as of `openssl rand -hex "
                          "16`"});
    return found;
  }
  /// Whether they are equal, in a time that does not depend on the bytes: a stranger learns nothing
  /// from it.
  bool operator==(job_token const& other) const {
    int differ = 0;
    for (int i = 0; i < size; ++i) differ |= bytes[i] ^ other.bytes[i];
    return differ == 0;
  }
};

}  // namespace pp::detail
