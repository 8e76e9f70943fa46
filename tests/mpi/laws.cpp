// SPDX-License-Identifier: BSL-1.0
//
// The laws of a pipeline over processes. Started by mpirun: see run.py.
#include "mpi/alike.hpp"

#include <string>

#include <pipe/train/weights.hpp>

#include "mpi/folder.hpp"
#include "transport/models.hpp"

using namespace pp;
using processes::bytes_of, processes::in_folder;
using transports::Shared, transports::Small;

TEST_CASE("skips, shared weights and further inputs give the bits of one stage") {
  processes::trains_alike<Small<Shared>, Small<Shared, Mpi, Stages<8>>>();
}

namespace {

using One = Small<Shared>;
using Many = Small<Shared, Mpi, Stages<8>>;

}  // namespace

TEST_CASE("the file of weights is that of one process, and each loads its own") {
  One one({.seed = 3});
  Many many({.seed = 3}), other({.seed = 4});
  laws::sample_batch<One> const data(1);
  one.step(data.view());
  many.step(data.view<Many>());
  // Processes write this file one after the other: another of each.
  std::string const own = in_folder("one") + "-" + std::to_string(Mpi::process());
  save_weights(one, own);
  save_weights(many, in_folder("many"));
  CHECK(bytes_of(own) == bytes_of(in_folder("many")));
  CHECK(load_weights(other, in_folder("many")).loaded.size() == one.parameters().size());
  CHECK(processes::same_values(one, other));
  CHECK(laws::same_bits(one.evaluate(data.view()), other.evaluate(data.view<Many>())));
}
TEST_CASE("what fails in one process fails in all, and changes nothing") {
  Many many({.seed = 3}), same({.seed = 3}), other({.seed = 4});
  CHECK_THROWS_AS(save_weights(many, "/no/such/folder/weights"), file_error);
  save_weights(other, in_folder("other"));
  // The last process is given a file that is not there.
  bool const is_last = Mpi::process() == Mpi::processes() - 1;
  CHECK_THROWS_AS(load_weights(many, is_last ? "/no/such/file" : in_folder("other")), error);
  CHECK(processes::same_values(many, same));
  laws::sample_batch<Many> const data(1);
  CHECK(laws::same_bits(many.step(data.view()).loss, same.step(data.view()).loss));
}
