// SPDX-License-Identifier: BSL-1.0
//
// All schedule families of the library.
#pragma once

#include <pipe/schedule/building_block.hpp>
#include <pipe/schedule/dual_pipe.hpp>
#include <pipe/schedule/eager.hpp>
#include <pipe/schedule/forward_only.hpp>
#include <pipe/schedule/gpipe.hpp>
#include <pipe/schedule/interleaved.hpp>
#include <pipe/schedule/one_f_one_b.hpp>
#include <pipe/schedule/paired.hpp>
#include <pipe/schedule/pipedream.hpp>
#include <pipe/schedule/recompute_ahead.hpp>
#include <pipe/schedule/search.hpp>
#include <pipe/schedule/steady.hpp>
#include <pipe/schedule/waves.hpp>
#include <pipe/schedule/zb_v.hpp>
#include <pipe/schedule/zero_bubble.hpp>
