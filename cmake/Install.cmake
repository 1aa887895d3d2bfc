# halflab_install(...): install() of what belongs to the programs, below the prefix. It is the component "programs"; in a wheel, all
# of which is the component "python", the prefix is the environment's, and a wheel that is no package holds the module alone.
# Programs find the rest by where they lie themselves.
function(halflab_install)
  set(words ${ARGN})
  if(SKBUILD AND NOT HALFLAB_PACKAGE)
    return()
  endif()
  if(SKBUILD)
    list(FIND words DESTINATION place)
    math(EXPR place "${place} + 1")
    list(GET words ${place} folder)
    list(REMOVE_AT words ${place})
    list(INSERT words ${place} ${SKBUILD_DATA_DIR}/${folder})
    install(${words} COMPONENT python)
  else()
    install(${words} COMPONENT programs)
  endif()
endfunction()
