# Write the software bill of materials of a wheel, in CycloneDX: what it contains of others.
# scikit-build-core puts it into the folder of metadata, where PEP 770 looks for it.

file(READ ${CMAKE_CURRENT_SOURCE_DIR}/src/web/package-lock.json locked)

# Add a component: its licence (SPDX), and as name and version what a package URL begins with.
function(add_component type url name version licence)
  set(component "{\"type\": \"${type}\", \"bom-ref\": \"${name}\", \"name\": \"${name}\"")
  if(version)
    string(APPEND component ", \"version\": \"${version}\"")
  endif()
  string(APPEND component ", \"licenses\": [{\"license\": {\"id\": \"${licence}\"}}]")
  if(url)
    string(APPEND component ", \"purl\": \"${url}@${version}\"")
  endif()
  list(APPEND components "${component}}")
  set(components "${components}" PARENT_SCOPE)
endfunction()

add_component(library "pkg:pypi/nanobind" nanobind "${nanobind_VERSION}" BSD-3-Clause)
add_component(library "" robin-map "" MIT)  # a copy without a version, inside of nanobind
if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/src/isthmus/report/assets/cytoscape.min.js)
  foreach(package cytoscape @dagrejs/dagre @dagrejs/graphlib)
    string(JSON version GET "${locked}" packages node_modules/${package} version)
    string(REPLACE "@" "%40" escaped ${package})
    add_component(library "pkg:npm/${escaped}" ${package} ${version} MIT)
  endforeach()
endif()
list(JOIN components ",\n    " components)
set(version ${SKBUILD_PROJECT_VERSION_FULL})
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/isthmus.cdx.json "{
  \"bomFormat\": \"CycloneDX\",
  \"specVersion\": \"1.6\",
  \"version\": 1,
  \"metadata\": {\"component\": {
    \"type\": \"library\", \"bom-ref\": \"isthmus\", \"name\": \"isthmus\", \"version\": \"${version}\",
    \"licenses\": [{\"license\": {\"id\": \"Apache-2.0\"}}], \"purl\": \"pkg:pypi/isthmus@${version}\"}},
  \"components\": [
    ${components}]
}
")
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/isthmus.cdx.json DESTINATION ${SKBUILD_METADATA_DIR}/sboms)
