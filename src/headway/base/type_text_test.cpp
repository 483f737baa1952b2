#include <gtest/gtest.h>

#include <headway/base/type_text.hpp>
#include <string>

namespace headway {
namespace {

TEST(TypeText, is_what_a_program_writes) {
  const std::string string = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >";
  EXPECT_EQ(as_written("std::span<const char, 18446744073709551615>"), "std::span<const char>");
  EXPECT_EQ(as_written(string), "std::string");
  EXPECT_EQ(as_written("std::basic_string_view<char, std::char_traits<char> >"), "std::string_view");
  EXPECT_EQ(as_written("std::basic_string_view<char>"), "std::string_view");
  EXPECT_EQ(as_written("std::vector<" + string + ", std::allocator<" + string + " > >"), "std::vector<std::string>");
  EXPECT_EQ(as_written("std::map<" + string + ", std::vector<long int, std::allocator<long int> >, std::less<" + string +
                       " >, std::allocator<std::pair<const " + string +
                       ", std::vector<long int, std::allocator<long int> > > > >"),
            "std::map<std::string, std::vector<long>>");
  EXPECT_EQ(as_written("std::unordered_map<int, float, std::hash<int>, std::equal_to<int>, std::allocator<std::pair<const "
                       "int, float> > >"),
            "std::unordered_map<int, float>");
  EXPECT_EQ(as_written("std::set<int*, std::less<int*>, std::allocator<int*> >"), "std::set<int*>");
  EXPECT_EQ(as_written("long unsigned int, std::pair<short int, long long unsigned int>"),
            "unsigned long, std::pair<short, unsigned long long>");
  EXPECT_EQ(as_written("unsigned int, my::longint, long int&"), "unsigned int, my::longint, long&");
  EXPECT_EQ(as_written(string + " (*)(const " + string + "&)"), "std::string (*)(const std::string&)");
  EXPECT_EQ(as_written(""), "");
}

TEST(TypeText, tells_different_types_apart) {
  EXPECT_EQ(as_written("std::span<int, 3>"), "std::span<int, 3>");
  EXPECT_EQ(as_written("std::vector<int, my::Allocator<int> >"), "std::vector<int, my::Allocator<int>>");
  EXPECT_EQ(as_written("std::vector<int, std::allocator<long int> >"), "std::vector<int, std::allocator<long>>");
  EXPECT_EQ(as_written("std::map<int, int, std::greater<int>, std::allocator<std::pair<const int, int> > >"),
            "std::map<int, int, std::greater<int>>");
  EXPECT_EQ(as_written("std::map<int, int, std::less<void>, my::A<int> >"), "std::map<int, int, std::less<void>, my::A<int>>");
  EXPECT_EQ(as_written("my::vector<int, std::allocator<int> >"), "my::vector<int, std::allocator<int>>");
  EXPECT_EQ(as_written("{anonymous}::Message, my::Pair<1, (2 > 1)>"), "{anonymous}::Message, my::Pair<1, (2 > 1)>");
}

TEST(TypeText, of_closures_and_of_what_is_no_type_stays) {
  EXPECT_EQ(as_written("main(int, char**)::<lambda(headway::Pe&)>::<lambda(long int)>"),
            "main(int, char**)::<lambda(headway::Pe&)>::<lambda(long)>");
  EXPECT_EQ(as_written("(lambda at a.cpp:1:2)"), "(lambda at a.cpp:1:2)");
  EXPECT_EQ(as_written("std::vector<int, std::allocator<int>"), "std::vector<int, std::allocator<int>");
  EXPECT_EQ(as_written("a > b, c"), "a > b, c");
}

}  // namespace
}  // namespace headway
