# Writes HEADER with the revision of SOURCE_DIRECTORY; the file is touched only when its text changes.
# Naming the repository keeps git from a surrounding one, and from refusing a checkout that another user owns.
function(git output)
  execute_process(
    COMMAND ${GIT_EXECUTABLE} --git-dir=${SOURCE_DIRECTORY}/.git --work-tree=${SOURCE_DIRECTORY}
      --no-optional-locks ${ARGN}
    OUTPUT_VARIABLE text RESULT_VARIABLE result ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT result EQUAL 0)
    set(text "")
  endif()
  set(${output} "${text}" PARENT_SCOPE)
endfunction()

set(revision "")
if(GIT_EXECUTABLE)
  git(revision rev-parse --verify HEAD)
  git(changes status --porcelain --untracked-files=no)
endif()

set(dirty false)
if(NOT revision)
  set(revision unknown)
elseif(changes)
  set(dirty true)
endif()

file(CONFIGURE OUTPUT ${HEADER} CONTENT [[
#pragma once

inline constexpr char git_revision[] = "@revision@";
inline constexpr bool git_dirty = @dirty@;
]] @ONLY)
