# What `cmake --install` gives beside the Python package: one library of all layers, their headers, and
# penstockConfig.cmake for find_package(penstock). All of it is of the component `cpp`, which no wheel has.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Of the objects that the layers' libraries have: nothing is compiled twice. Static, or with BUILD_SHARED_LIBS shared.
add_library(penstock)
add_library(penstock::penstock ALIAS penstock)
foreach(part IN ITEMS base job io rows columns cells batch engine shuffle layout text writer)
  target_sources(penstock PRIVATE $<TARGET_OBJECTS:penstock_${part}>)
endforeach()
set_target_properties(penstock PROPERTIES LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
target_compile_features(penstock PUBLIC cxx_std_20)
target_include_directories(penstock INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(penstock
  PUBLIC fmt::fmt Boost::headers Threads::Threads
  PRIVATE simdjson::simdjson ZLIB::ZLIB PkgConfig::liburing ${CMAKE_DL_LIBS})

set(penstock_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/penstock)
install(TARGETS penstock EXPORT penstockTargets COMPONENT cpp)
install(EXPORT penstockTargets NAMESPACE penstock:: DESTINATION ${penstock_cmake_dir} COMPONENT cpp)
configure_package_config_file(cmake/penstockConfig.cmake.in penstockConfig.cmake INSTALL_DESTINATION ${penstock_cmake_dir})
# Before 1.0 a minor version may change what headers say.
write_basic_package_version_file(penstockConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/penstockConfig.cmake ${PROJECT_BINARY_DIR}/penstockConfigVersion.cmake
  DESTINATION ${penstock_cmake_dir} COMPONENT cpp)

# Headers go to include/penstock/core/…, and say so: "core/…" alone may be a folder of whoever includes them.
set(penstock_headers_dir ${PROJECT_BINARY_DIR}/installed_headers)
install(CODE "
  set(penstock_source_dir \"${PROJECT_SOURCE_DIR}\")
  set(penstock_headers_dir \"${penstock_headers_dir}\")
  include(\"${PROJECT_SOURCE_DIR}/cmake/install_headers.cmake\")" COMPONENT cpp)
install(DIRECTORY ${penstock_headers_dir}/penstock DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT cpp)
