// SPDX-License-Identifier: BSD-3-Clause
/// Includes the whole layer: arrays, groups and singletons of elements that run methods by messages and move between
/// PEs.
#pragma once

#include <headway/object/balance.hpp>
#include <headway/object/checkpoint.hpp>
#include <headway/object/collection.hpp>
#include <headway/object/element.hpp>
#include <headway/object/entry.hpp>
#include <headway/object/index.hpp>
#include <headway/object/options.hpp>
#include <headway/object/placement.hpp>
#include <headway/object/proxy.hpp>
#include <headway/object/section.hpp>
