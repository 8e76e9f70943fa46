# SPDX-License-Identifier: BSL-1.0
#
# What the tests have cost, as tests/structure/costs.py recorded it in tests/costs.txt, decides what is left out without --all: a source or an example
# that one core compiles in more than PIPE_MOST_SECONDS. What has no line there is new, and is not left out.
set(PIPE_MOST_SECONDS 17 CACHE STRING "Seconds of one core that the compilation of a source or an example may take without PIPE_ALL_TESTS")

set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/costs.txt)
file(STRINGS ${PROJECT_SOURCE_DIR}/tests/costs.txt lines REGEX "^[0-9]")
foreach(line IN LISTS lines)
  string(REGEX MATCH "^([0-9]+)[0-9.]* (.+)$" line "${line}")
  set(seconds ${CMAKE_MATCH_1})
  set(what ${CMAKE_MATCH_2})
  set("seconds of ${what}" ${seconds})
  if(what MATCHES "^compile (example[^ ]+) ")  # an example is one: all its sources
    set(program "seconds of program ${CMAKE_MATCH_1}")
    math(EXPR "${program}" "0${${program}} + ${seconds}")
  endif()
endforeach()

# pipe_cost_of(SECONDS "compile PROGRAM SOURCE" | "program EXAMPLE" | "test NAME"): whole seconds, 0 if they are not known.
function(pipe_cost_of out what)
  set(seconds 0)
  set(name "seconds of ${what}")
  if(DEFINED "${name}")
    set(seconds ${${name}})
  endif()
  set(${out} ${seconds} PARENT_SCOPE)
endfunction()

function(pipe_is_left_out out what)
  pipe_cost_of(seconds ${what})
  set(${out} FALSE PARENT_SCOPE)
  if(PIPE_TESTS AND NOT PIPE_ALL_TESTS AND seconds GREATER PIPE_MOST_SECONDS)
    set(${out} TRUE PARENT_SCOPE)
    set_property(GLOBAL APPEND PROPERTY PIPE_LEFT_OUT "${seconds} s: ${what}")
  endif()
endfunction()

# pipe_longest_first(SOURCES PROGRAM): sorts the list of a program's sources.
function(pipe_longest_first list program)
  set(sorted)
  foreach(source IN LISTS ${list})
    cmake_path(ABSOLUTE_PATH source NORMALIZE OUTPUT_VARIABLE path)
    cmake_path(RELATIVE_PATH path BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
    pipe_cost_of(seconds "compile ${program} ${path}")
    list(APPEND sorted "${seconds}|${source}")
  endforeach()
  list(SORT sorted COMPARE NATURAL ORDER DESCENDING)
  list(TRANSFORM sorted REPLACE "^[0-9]+[|]" "")
  set(${list} ${sorted} PARENT_SCOPE)
endfunction()

# pipe_leave_out(SOURCES PROGRAM): removes from the list of a program's sources those that are left out.
function(pipe_leave_out list program)
  set(kept)
  foreach(source IN LISTS ${list})
    cmake_path(ABSOLUTE_PATH source NORMALIZE OUTPUT_VARIABLE path)
    cmake_path(RELATIVE_PATH path BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
    pipe_is_left_out(left_out "compile ${program} ${path}")
    if(NOT left_out)
      list(APPEND kept ${source})
    endif()
  endforeach()
  set(${list} ${kept} PARENT_SCOPE)
endfunction()
