// SPDX-License-Identifier: BSL-1.0
//
// The variables of launchers, and which of them count.
#include "catch.hpp"

#include <pipe/transport/process_launch.hpp>

#include "message_of.hpp"

#include <map>
#include <string>

using namespace pp;
using namespace pp::detail;

namespace {

using variables = std::map<std::string, std::string>;
variables environment_of_test;

char const* value(char const* name) {
  auto const found = environment_of_test.find(name);
  return found == environment_of_test.end() ? nullptr : found->second.c_str();
}
process_launch launched(variables v) {
  environment_of_test = std::move(v);
  return process_launch::from(value);
}
std::string refusal(variables v) {
  environment_of_test = std::move(v);
  return message_of<error>([] { process_launch::from(value); });
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
  check(launched({{"PMI_RANK", "3"}}), "", 0, 1, 0, 1);
  check(launched({{"WORLD_SIZE", "8"}}), "", 0, 1, 0, 1);
  CHECK(refusal({{"RANK", "3"}}) == "RANK is '3', and WORLD_SIZE is not set: set both");
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
    return meeting_place::from(value);
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

TEST_CASE("a token is 16 bytes, and no message shows it") {
  auto const token = [](char const* text) {
    environment_of_test = {{"PIPE_JOB_TOKEN", text}};
    return job_token::from(value);
  };
  job_token const one = token("000102030405060708090A0b0c0d0e0f");
  for (int i = 0; i < job_token::size; ++i) CHECK(one.bytes[i] == i);
  CHECK(one == token("000102030405060708090a0B0c0d0e0f"));
  CHECK_FALSE(one == token("000102030405060708090a0b0c0d0e0e"));
  CHECK_FALSE(one == job_token{});
  environment_of_test = {};
  CHECK(job_token::from(value) == job_token{});
  for (char const* text :
       {"", "0", "000102030405060708090a0b0c0d0e0", "000102030405060708090a0b0c0d0e0g",
        "000102030405060708090a0b0c0d0e0f0"}) {
    std::string const said = message_of<error>([&] { token(text); });
    CHECK(said == "PIPE_JOB_TOKEN has " + std::to_string(std::string(text).size()) +
                      " characters: expected 32 hexadecimal digits, as of `openssl rand -hex 16`");
  }
}
