# libhalflab_common.so: the numbers, the simulator and the frame, once for all programs of a package. Programs name it before the
# static libraries, from which the linker then takes nothing.
set(parts halflab_experiments halflab_frame halflab_sizing halflab_sim halflab_fp16_bulk halflab_names)
list(TRANSFORM parts REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE archives)
list(JOIN archives "," archives)
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/common.cpp "// Its contents are whole libraries.\n")
add_library(halflab_common SHARED ${CMAKE_CURRENT_BINARY_DIR}/common.cpp)
add_dependencies(halflab_common ${parts})
string(REPLACE "," ";" dependencies "${archives}")
set_target_properties(halflab_common PROPERTIES LINK_DEPENDS "${dependencies}")
target_link_options(halflab_common PRIVATE "LINKER:--whole-archive,${archives},--no-whole-archive")
target_link_libraries(halflab_common PRIVATE fmt::fmt tomlplusplus::tomlplusplus ZLIB::ZLIB Threads::Threads ${CMAKE_DL_LIBS})
set(halflab_common halflab_common)
set(halflab_common ${halflab_common} PARENT_SCOPE)
