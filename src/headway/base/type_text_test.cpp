// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <headway/base/type_text.hpp>
#include <string>

namespace headway::base {
namespace {

TEST(TypeText, is_what_a_program_writes) {
  const std::string string = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >";
  EXPECT_EQ(short_type_names("std::span<const char, 18446744073709551615>"), "std::span<const char>");
  EXPECT_EQ(short_type_names(string), "std::string");
  EXPECT_EQ(short_type_names("std::basic_string_view<char, std::char_traits<char> >"), "std::string_view");
  EXPECT_EQ(short_type_names("std::basic_string_view<char>"), "std::string_view");
  EXPECT_EQ(short_type_names("std::vector<" + string + ", std::allocator<" + string + " > >"),
            "std::vector<std::string>");
  EXPECT_EQ(short_type_names("std::map<" + string + ", std::vector<long int, std::allocator<long int> >, std::less<" +
                             string + " >, std::allocator<std::pair<const " + string +
                             ", std::vector<long int, std::allocator<long int> > > > >"),
            "std::map<std::string, std::vector<long>>");
  EXPECT_EQ(short_type_names(
                "std::unordered_map<int, float, std::hash<int>, std::equal_to<int>, std::allocator<std::pair<const "
                "int, float> > >"),
            "std::unordered_map<int, float>");
  EXPECT_EQ(short_type_names("std::set<int*, std::less<int*>, std::allocator<int*> >"), "std::set<int*>");
  EXPECT_EQ(short_type_names("long unsigned int, std::pair<short int, long long unsigned int>"),
            "unsigned long, std::pair<short, unsigned long long>");
  EXPECT_EQ(short_type_names("unsigned int, my::longint, long int&"), "unsigned int, my::longint, long&");
  EXPECT_EQ(short_type_names(string + " (*)(const " + string + "&)"), "std::string (*)(const std::string&)");
  EXPECT_EQ(short_type_names("std::plus<void>, std::multiplies<>"), "std::plus<>, std::multiplies<>");
  EXPECT_EQ(short_type_names(""), "");
}

TEST(TypeText, tells_different_types_apart) {
  EXPECT_EQ(short_type_names("std::span<int, 3>"), "std::span<int, 3>");
  EXPECT_EQ(short_type_names("std::vector<int, my::Allocator<int> >"), "std::vector<int, my::Allocator<int>>");
  EXPECT_EQ(short_type_names("std::vector<int, std::allocator<long int> >"), "std::vector<int, std::allocator<long>>");
  EXPECT_EQ(short_type_names("std::map<int, int, std::greater<int>, std::allocator<std::pair<const int, int> > >"),
            "std::map<int, int, std::greater<int>>");
  EXPECT_EQ(short_type_names("std::map<int, int, std::less<void>, my::A<int> >"),
            "std::map<int, int, std::less<>, my::A<int>>");
  EXPECT_EQ(short_type_names("my::vector<int, std::allocator<int> >"), "my::vector<int, std::allocator<int>>");
  EXPECT_EQ(short_type_names("{anonymous}::Message, my::Pair<1, (2 > 1)>"),
            "{anonymous}::Message, my::Pair<1, (2 > 1)>");
}

TEST(TypeText, of_closures_and_of_what_is_no_type_stays) {
  EXPECT_EQ(short_type_names("main(int, char**)::<lambda(headway::Pe&)>::<lambda(long int)>"),
            "main(int, char**)::<lambda(headway::Pe&)>::<lambda(long)>");
  EXPECT_EQ(short_type_names("(lambda at a.cpp:1:2)"), "(lambda at a.cpp:1:2)");
  EXPECT_EQ(short_type_names("std::vector<int, std::allocator<int>"), "std::vector<int, std::allocator<int>");
  EXPECT_EQ(short_type_names("a > b, c"), "a > b, c");
}

}  // namespace
}  // namespace headway::base
