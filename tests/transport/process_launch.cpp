// SPDX-License-Identifier: BSL-1.0
//
// The variables of launchers, and which of them count.
#include "catch.hpp"

#include <pipe/transport/process/process_launch.hpp>

#include "message_of.hpp"

#include <map>
#include <string>

using namespace pp;
using namespace pp::detail;

namespace {

using variables = std::map<std::string, std::string>;
variables environment_of_test;

char const* variable(char const* name) {
  auto const found = environment_of_test.find(name);
  return found == environment_of_test.end() ? nullptr : found->second.c_str();
}
process_launch launched(variables v) {
  environment_of_test = std::move(v);
  return process_launch::from(variable);
}
std::string refusal(variables v) {
  environment_of_test = std::move(v);
  return message_of<error>([] { process_launch::from(variable); });
}
variables operator+(variables a, variables const& b) {
  a.insert(b.begin(), b.end());
  return a;
}

variables const open_mpi{{"OMPI_COMM_WORLD_RANK", "1"},
                         {"OMPI_COMM_WORLD_SIZE", "4"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
variables const mpich{
    {"PMI_RANK", "2"}, {"PMI_SIZE", "5"}, {"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "1"}};
variables const srun{{"SLURM_STEP_ID", "0"},
                     {"SLURM_STEP_NUM_TASKS", "6"},
                     {"SLURM_PROCID", "3"},
                     {"SLURM_LOCALID", "1"}};
variables const torchrun{{"RANK", "4"},
                         {"WORLD_SIZE", "8"},
                         {"LOCAL_RANK", "0"},
                         {"LOCAL_WORLD_SIZE", "4"},
                         {"TORCHELASTIC_RUN_ID", "none"}};
variables const plain{{"RANK", "0"}, {"WORLD_SIZE", "2"}};

void check(process_launch const& found, char const* launcher, int process, int processes, int local,
           int locals) {
  CHECK(std::string(found.launcher) == launcher);
  CHECK(found.process == process);
  CHECK(found.processes == processes);
  CHECK(found.local == local);
  CHECK(found.locals == locals);
}

}  // namespace

TEST_CASE("every launcher is known by its variables") {
  check(launched({}), "", 0, 1, 0, 1);
  check(launched(open_mpi), "mpirun of Open MPI", 1, 4, 1, 2);
  check(launched(mpich), "mpirun of MPICH", 2, 5, 0, 1);
  check(launched(srun), "srun", 3, 6, 1, 0);
  check(launched(torchrun), "a launcher that sets RANK", 4, 8, 0, 4);
  check(launched(plain), "a launcher that sets RANK", 0, 2, -1, 0);
}

TEST_CASE("of several launchers the innermost counts") {
  check(launched(open_mpi + mpich + srun + torchrun), "mpirun of Open MPI", 1, 4, 1, 2);
  check(launched(mpich + srun + plain), "mpirun of MPICH", 2, 5, 0, 1);
  // torchrun in a step of srun; and srun that has started one shell, in which a launcher runs.
  check(launched(srun + torchrun), "a launcher that sets RANK", 4, 8, 0, 4);
  variables shell = srun;
  shell["SLURM_STEP_NUM_TASKS"] = "1", shell["SLURM_PROCID"] = shell["SLURM_LOCALID"] = "0";
  check(launched(shell), "srun", 0, 1, 0, 0);
  check(launched(shell + plain), "a launcher that sets RANK", 0, 2, -1, 0);
  check(launched(srun + variables{{"RANK", "3"}, {"WORLD_SIZE", "6"}}), "srun", 3, 6, 1, 0);
  CHECK(refusal(srun + plain) ==
        "srun has started this as process 3 of 6, and RANK and WORLD_SIZE say 0 of 2: unset them, "
        "or set both to the same");
}

TEST_CASE("variables that a shell or a batch script may have are no launch") {
  check(launched({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_STEP_NUM_TASKS", "8"}}), "",
        0, 1, 0, 1);
  check(launched({{"MASTER_ADDR", "a17"}, {"MASTER_PORT", "29500"}}), "", 0, 1, 0, 1);
}

TEST_CASE("what sets some of its variables and forgets others trains no lonely models") {
  auto const half = [](char const* set, char const* missing) {
    return std::string(set) + " is '3', and " + missing + " is not set: set both, or unset " + set +
           " for a process that is alone";
  };
  constexpr char const* pairs[][2]{{"RANK", "WORLD_SIZE"},
                                   {"WORLD_SIZE", "RANK"},
                                   {"LOCAL_RANK", "RANK"},
                                   {"LOCAL_WORLD_SIZE", "RANK"},
                                   {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                   {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
                                   {"PMI_RANK", "PMI_SIZE"},
                                   {"PMI_SIZE", "PMI_RANK"}};
  for (auto const& [set, missing] : pairs) CHECK(refusal({{set, "3"}}) == half(set, missing));
  CHECK(refusal({{"WORLD_SIZE", "3"}, {"LOCAL_RANK", "0"}, {"MASTER_PORT", "29500"}}) ==
        half("WORLD_SIZE", "RANK"));
  CHECK(refusal({{"WORLD_SIZE", "3"}, {"SLURM_PROCID", "0"}}) == half("WORLD_SIZE", "RANK"));
  // A step of srun says both itself, but not that of one shell, in which a launcher forgot one.
  check(launched(srun + variables{{"WORLD_SIZE", "6"}}), "srun", 3, 6, 1, 0);
  check(launched(srun + variables{{"RANK", "3"}}), "srun", 3, 6, 1, 0);
  variables shell = srun;
  shell["SLURM_STEP_NUM_TASKS"] = "1", shell["SLURM_PROCID"] = shell["SLURM_LOCALID"] = "0";
  CHECK(refusal(shell + variables{{"WORLD_SIZE", "3"}}) == half("WORLD_SIZE", "RANK"));
  CHECK(refusal(shell + variables{{"RANK", "3"}}) == half("RANK", "WORLD_SIZE"));
}

TEST_CASE("a block of variables is looked up as a program's own") {
  std::string const block("RANK=2\0RANKS=7\0=x\0EMPTY=\0WORLD_SIZE=3\0WORLD_SIZE=9\0CUT=1", 55);
  environment const all{std::string_view(block)};
  CHECK(std::string(all("RANK")) == "2");
  CHECK(std::string(all("RANKS")) == "7");
  CHECK(std::string(all("EMPTY")).empty());
  CHECK(std::string(all("WORLD_SIZE")) == "3");
  CHECK(all("CUT") == nullptr);  // its end is not there
  CHECK(all("RAN") == nullptr);
  CHECK(environment(std::string_view("", 0))("RANK") == nullptr);
}

TEST_CASE("numbers out of range are named") {
  auto const with = [](variables v, char const* name, char const* text) {
    v[name] = text;
    return v;
  };
  for (char const* text : {"", "-1", "+1", " 1", "1 ", "one", "0x1", "4", "99999999999999999999"}) {
    INFO(text);
    CHECK(refusal(with(open_mpi, "OMPI_COMM_WORLD_RANK", text)) ==
          "OMPI_COMM_WORLD_RANK is '" + std::string(text) + "': expected a number from 0 to 3");
  }
  CHECK(refusal(with(mpich, "PMI_SIZE", "0")) ==
        "PMI_SIZE is '0': expected a number from 1 to 1000000");
  CHECK(refusal(with(srun, "SLURM_LOCALID", "6")) ==
        "SLURM_LOCALID is '6': expected a number from 0 to 5");
  CHECK(refusal(with(torchrun, "LOCAL_WORLD_SIZE", "9")) ==
        "LOCAL_WORLD_SIZE is '9': expected a number from 1 to 8");
  variables no_rank = srun;
  no_rank.erase("SLURM_PROCID");
  CHECK(refusal(no_rank) == "SLURM_PROCID is not set: expected a number from 0");
}

TEST_CASE("process 0 listens on loopback unless MASTER_ADDR says otherwise") {
  auto const place = [](variables v) {
    environment_of_test = std::move(v);
    return meeting_place::from(variable);
  };
  CHECK(std::string(place({{"MASTER_PORT", "29500"}}).address) == "127.0.0.1");
  CHECK(std::string(place({{"MASTER_PORT", "29500"}, {"MASTER_ADDR", ""}}).address) == "127.0.0.1");
  meeting_place const told = place({{"MASTER_PORT", "65535"}, {"MASTER_ADDR", "a17"}});
  CHECK(std::string(told.address) == "a17");
  CHECK(told.port == 65535);
  CHECK(message_of<error>([&] { place({}); }) ==
        "MASTER_PORT is not set: expected a number from 1");
  CHECK(message_of<error>([&] { place({{"MASTER_PORT", "65536"}}); }) ==
        "MASTER_PORT is '65536': expected a number from 1 to 65535");
}
