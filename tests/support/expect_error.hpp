// SPDX-License-Identifier: BSD-3-Clause
/// Errors that tests expect, by a part of their text. For GoogleTest.
#pragma once

#include <gtest/gtest.h>

#include <headway/base/error.hpp>
#include <string>

namespace headway::testing {

/// f() throws a UsageError with `part` in its text.
template <class F>
void expect_usage_error(F f, const std::string& part) {
  try {
    f();
    ADD_FAILURE() << "no error says: " << part;
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

/// f() throws a SettingError with `part` in its text.
template <class F>
void expect_setting_error(F f, const std::string& part) {
  try {
    f();
    ADD_FAILURE() << "no error says: " << part;
  } catch (const SettingError& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

}  // namespace headway::testing
