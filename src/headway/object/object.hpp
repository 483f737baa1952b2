/// Arrays, groups and single objects whose methods are called by messages, and that move.
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
