// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <pipe/report/drawing.hpp>

#include "command.hpp"

/// A step, or steps that overlap, as predicted and as measured: as text, as a page, or not at all,
/// as the options say.
void show(options const& o, pp::drawings::drawing const& predicted,
          pp::drawings::drawing const& measured);
