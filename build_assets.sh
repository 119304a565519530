#!/bin/sh
# Put the JavaScript libraries of the HTML report beside its templates, where wheels and source
# distributions take them from. Versions and hashes are pinned in src/web/package-lock.json; axe-core
# is for tests only, and stays in build/.
#   sh build_assets.sh            needs npm; does nothing if the libraries are up to date
set -eu
cd "$(dirname "$0")"
target=src/isthmus/report/assets
if [ -f "$target/licences.txt" ] && [ "$target/licences.txt" -nt src/web/package-lock.json ]; then
  exit 0
fi
command -v npm >/dev/null || {
  echo "npm is missing: install Node.js 20 or newer. Without it, reports have a drawing without zoom." >&2
  exit 1
}
mkdir -p build/assets "$target"
cp src/web/package.json src/web/package-lock.json build/assets
(cd build/assets && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error)
modules=build/assets/node_modules
cp "$modules/cytoscape/dist/cytoscape.min.js" "$modules/@dagrejs/dagre/dist/dagre.min.js" "$target"
for package in cytoscape @dagrejs/dagre @dagrejs/graphlib; do
  version=$(sed -n 's/^ *"version": "\(.*\)",*$/\1/p' "$modules/$package/package.json")
  printf '%s %s\n\n' "$package" "$version"
  cat "$modules/$package/LICENSE"
  echo
done >"$target/licences.txt"
ls -l "$target"
