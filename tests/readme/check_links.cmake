# Every relative link of a Markdown page names a file or folder that is there.
file(GLOB_RECURSE pages ${top}/src/*.md ${top}/docs/*.md ${top}/apps/*.md ${top}/bench/*.md ${top}/tools/*.md
     ${top}/tests/*.md)
file(GLOB top_pages ${top}/*.md)
foreach(page IN LISTS pages top_pages)
  get_filename_component(folder ${page} DIRECTORY)
  file(READ ${page} text)
  string(REPLACE "](" "@LINK@" text "${text}")
  string(REGEX REPLACE "[][;]" " " text "${text}")  # a CMake list would trip over them
  string(REGEX MATCHALL "@LINK@[^)# \n]+" links "${text}")
  foreach(link IN LISTS links)
    string(REPLACE "@LINK@" "" link "${link}")
    if(NOT link MATCHES "^[a-z]+:" AND NOT EXISTS ${folder}/${link})
      message(SEND_ERROR "${page}: nothing at ${link}")
    endif()
  endforeach()
endforeach()
