#!/bin/sh
# Move podd and the programs of Kubernetes that it is compared with to another version, or only the
# oldest control plane with which podd is tested:
#
#	testdata/controlplane/upgrade.sh 1.37.2
#	testdata/controlplane/upgrade.sh 1.34.4 oldest
#
# The script changes go.mod and go.sum of podd's module and of this module, or of the module oldest. It
# does not change the recordings; doc.go describes this and the other steps of an upgrade.
set -eu

version=$1 # without "v"
staging=v0.${version#1.}
cd "$(dirname "$0")/${2:-.}"

kubernetes=$(cd / && go mod download -json "k8s.io/kubernetes@v$version" | sed -n 's/.*"Dir": "\(.*\)",/\1/p')
modules=$(sed -n 's|^\t\(k8s.io/[a-z-]*\) => ./staging/.*|\1|p' "$kubernetes/go.mod")

# Kubernetes replaces its staging modules with directories, which do not exist in its module.
for module in $modules; do
	go mod edit -replace "$module=$module@$staging"
done
used=$(sed -n 's|^\t\(k8s.io/[a-z-]*\) v0\.[0-9.]*$|\1|p' go.mod)
# shellcheck disable=SC2086
go mod edit -require "k8s.io/kubernetes@v$version" $(for module in $used; do printf -- '-require %s@%s ' "$module" "$staging"; done)
go mod tidy
[ -z "${2:-}" ] || exit 0

cd ../..
used=$(sed -n 's|^\t\(k8s.io/[a-z-]*\) v0\.[0-9.]*$|\1|p' go.mod)
# shellcheck disable=SC2086
go get $(for module in $used; do printf '%s@%s ' "$module" "$staging"; done)
go mod tidy
