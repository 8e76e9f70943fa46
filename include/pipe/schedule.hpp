// SPDX-License-Identifier: BSL-1.0
//
// Schedules, complete and on their own: build one, prove it, time it. Needs no layers and no device. The table for run
// time is apart, in <pipe/schedule/dynamic_table.hpp>, and so is what sorts, in <pipe/schedule/communication.hpp>.
#pragma once

#include <pipe/schedule/boundary_slots.hpp>
#include <pipe/schedule/building_block.hpp>
#include <pipe/schedule/critical_path.hpp>
#include <pipe/schedule/dual_pipe.hpp>
#include <pipe/schedule/eager.hpp>
#include <pipe/schedule/floors.hpp>
#include <pipe/schedule/forward_only.hpp>
#include <pipe/schedule/gpipe.hpp>
#include <pipe/schedule/in_flight.hpp>
#include <pipe/schedule/interleaved.hpp>
#include <pipe/schedule/one_f_one_b.hpp>
#include <pipe/schedule/pipedream.hpp>
#include <pipe/schedule/search.hpp>
#include <pipe/schedule/simulate.hpp>
#include <pipe/schedule/validate.hpp>
#include <pipe/schedule/waves.hpp>
#include <pipe/schedule/zb_v.hpp>
#include <pipe/schedule/zero_bubble.hpp>
