// SPDX-License-Identifier: BSL-1.0
#include "amoebanet.hpp"
#include "planned_model.hpp"

// The trained numbers of torchgpipe's.
namespace models {

static_assert(parameters_of<AmoebaNet18x208>() == 81'505'540);
static_assert(parameters_of<AmoebaNet18x256>() == 122'470'120);
static_assert(parameters_of<AmoebaNet<18, 416>>() == 319'024'120);
static_assert(parameters_of<AmoebaNet<18, 512>>() == 481'268'200);
static_assert(parameters_of<AmoebaNet<18, 544>>() == 542'734'840);
static_assert(parameters_of<AmoebaNet<36, 544>>() == 1'055'832'376);
#ifndef __clang__
static_assert(parameters_of<AmoebaNet<72, 512>>() == 1'844'858'344);
#endif
static_assert(parameters_of<AmoebaNet<3, 32, 10>>() == 391'354);
static_assert(parameters_of<AmoebaNet<6, 64, 10>>() == 2'686'346);

}  // namespace models

static listed<models::AmoebaNet18x208> const amoebanet_208("amoebanet-d-18-208");
static listed<models::AmoebaNet18x256> const amoebanet_256("amoebanet-d-18-256");
