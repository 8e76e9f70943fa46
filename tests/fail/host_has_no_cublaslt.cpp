// error: wrong::host_has_no_cublaslt, .*Host.*CublasLtProducts
// SPDX-License-Identifier: BSL-1.0
//
// cuBLASLt multiplies on a GPU.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Tanh, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, OwnProducts>;
#else
using Trainer = Pipeline<Net, PortableHost, CublasLtProducts>;
#endif

#include "program.hpp"
