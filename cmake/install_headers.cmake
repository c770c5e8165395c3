# Run by `cmake --install`: copies the layers' headers, with includes that begin with penstock/, into
# ${penstock_headers_dir}/penstock, from where they are installed.
file(REMOVE_RECURSE "${penstock_headers_dir}")
file(GLOB_RECURSE headers RELATIVE "${penstock_source_dir}"
  "${penstock_source_dir}/core/*.h" "${penstock_source_dir}/shuffle/*.h" "${penstock_source_dir}/layout/*.h"
  "${penstock_source_dir}/text/*.h" "${penstock_source_dir}/writer/*.h")
# Headers of nlohmann/json, liburing and simdjson are for compiling the library alone: what includes them, or what includes that,
# stays here.
set(private "nlohmann/|liburing\\.h|simdjson\\.h")
set(found TRUE)
while(found)
  set(found FALSE)
  foreach(header IN LISTS headers)
    file(STRINGS "${penstock_source_dir}/${header}" lines REGEX "^#include [<\"](${private})")
    if(lines)
      list(REMOVE_ITEM headers ${header})
      string(REPLACE "." "\\." name "${header}")
      string(APPEND private "|${name}")
      set(found TRUE)
    endif()
  endforeach()
endwhile()
foreach(header IN LISTS headers)
  file(READ "${penstock_source_dir}/${header}" text)
  string(REGEX REPLACE "#include \"(core|shuffle|layout|text|writer)/" "#include \"penstock/\\1/" text "${text}")
  file(WRITE "${penstock_headers_dir}/penstock/${header}" "${text}")
endforeach()
