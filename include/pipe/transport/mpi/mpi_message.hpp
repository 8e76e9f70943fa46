// SPDX-License-Identifier: BSL-1.0
//
// The count and the type of a message for MPI, whose counts are ints.
#pragma once

#include <climits>

#include <mpi.h>

namespace pp::detail {

/// A message of any size: `number` items of a type of MPI.
///
/// law: number * size of the type == bytes; a count is an int
class mpi_message {
 public:
  explicit mpi_message(long bytes, long most = INT_MAX) {
    if (bytes <= most) {
      number = int(bytes);
      return;
    }
    // Blocks of `most` bytes and the rest, as one item.
    MPI_Datatype block = MPI_DATATYPE_NULL, blocks = MPI_DATATYPE_NULL;
    int const count = int(bytes / most), rest = int(bytes % most);
    MPI_Type_contiguous(int(most), MPI_BYTE, &block);
    MPI_Type_contiguous(count, block, &blocks);
    int lengths[] = {1, rest};
    MPI_Aint places[] = {0, MPI_Aint(count) * MPI_Aint(most)};
    MPI_Datatype types[] = {blocks, MPI_BYTE};
    MPI_Type_create_struct(2, lengths, places, types, &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&block);
    MPI_Type_free(&blocks);
    number = 1;
  }
  mpi_message(mpi_message const&) = delete;
  mpi_message& operator=(mpi_message const&) = delete;
  /// Requests that use the type keep it.
  ~mpi_message() {
    if (type != MPI_BYTE) MPI_Type_free(&type);
  }

  int number = 0;
  MPI_Datatype type = MPI_BYTE;
};

}  // namespace pp::detail
