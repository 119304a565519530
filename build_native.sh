#!/bin/sh
# Build the compiled core and put it beside its Python side, for work on the sources.
#   sh build_native.sh [release | sanitize]     PYTHON=... names the interpreter
set -eu
cd "$(dirname "$0")"
variant="${1:-release}"
case "$variant" in
  release) options="" ;;
  sanitize) options="-DISTHMUS_SANITIZE=ON -DISTHMUS_WERROR=ON -DCMAKE_BUILD_TYPE=Debug" ;;
  *) echo "unknown variant: $variant" >&2; exit 2 ;;
esac
python="${PYTHON:-python3}"
# shellcheck disable=SC2086 - options are words
cmake -S . -B "build/$variant" -G Ninja $options \
  -DPython_EXECUTABLE="$(command -v "$python")" -Dnanobind_DIR="$("$python" -m nanobind --cmake_dir)" >/dev/null
ninja -C "build/$variant" _native
# Moved into place, because a running process may have the old module mapped.
for module in build/"$variant"/_native*.so; do
  cp "$module" src/isthmus/kernels/new.so
  mv src/isthmus/kernels/new.so src/isthmus/kernels/"$(basename "$module")"
done
if [ "$variant" = release ]; then
  # The stub is checked in, so that type checkers need no build; .ci/run compares the two.
  PYTHONPATH=src/isthmus/kernels "$python" -m nanobind.stubgen -q -m _native -o src/isthmus/kernels/_native.pyi
fi
