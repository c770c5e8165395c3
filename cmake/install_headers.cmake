# Run by `cmake --install`: copies the layers' headers, with includes that begin with penstock/, into
# ${penstock_headers_dir}/penstock, from where they are installed.
file(REMOVE_RECURSE "${penstock_headers_dir}")
file(GLOB_RECURSE headers RELATIVE "${penstock_source_dir}"
  "${penstock_source_dir}/core/*.h" "${penstock_source_dir}/shuffle/*.h" "${penstock_source_dir}/layout/*.h"
  "${penstock_source_dir}/writer/*.h")
# These include what only the library's own sources need: nlohmann/json, liburing.
list(REMOVE_ITEM headers core/base/json.h core/io/local/ring.h core/io/local/uring_channel.h layout/foreign_index.h)
foreach(header IN LISTS headers)
  file(READ "${penstock_source_dir}/${header}" text)
  string(REGEX REPLACE "#include \"(core|shuffle|layout|writer)/" "#include \"penstock/\\1/" text "${text}")
  file(WRITE "${penstock_headers_dir}/penstock/${header}" "${text}")
endforeach()
