// SPDX-License-Identifier: BSL-1.0
//
// All schedule families of the library.
#pragma once

#include <pipe/schedule/families/adapted.hpp>
#include <pipe/schedule/families/building_block.hpp>
#include <pipe/schedule/families/dual_pipe.hpp>
#include <pipe/schedule/families/eager.hpp>
#include <pipe/schedule/families/forward_only.hpp>
#include <pipe/schedule/families/gpipe.hpp>
#include <pipe/schedule/families/interleaved.hpp>
#include <pipe/schedule/families/one_f_one_b.hpp>
#include <pipe/schedule/families/paired.hpp>
#include <pipe/schedule/families/pipedream.hpp>
#include <pipe/schedule/families/recompute_ahead.hpp>
#include <pipe/schedule/families/steady.hpp>
#include <pipe/schedule/families/waves.hpp>
#include <pipe/schedule/families/zb_v.hpp>
#include <pipe/schedule/families/zero_bubble.hpp>
#include <pipe/schedule/search/search.hpp>
