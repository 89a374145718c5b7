# shellcheck shell=sh disable=SC2154 # the caller sets $me, $root and $log
# Finding a Go that is new enough for go.mod, and fetching one as a module.

# go_wanted prints the oldest Go that builds this tree.
go_wanted() {
	awk '$1 == "go" { print $2; exit }' "$root/go.mod"
}

# go_toolchain prints the toolchain to fetch where there is none, as the
# version of a module: v0.0.1-go1.2.3.linux-amd64.
go_toolchain() {
	case $(uname -m) in
	x86_64) architecture=amd64 ;;
	aarch64) architecture=arm64 ;;
	*) refuse "no Go toolchain is named for $(uname -m)" ;;
	esac
	awk -v arch="$architecture" '$1 == "toolchain" { print "v0.0.1-" $2 ".linux-" arch; exit }' "$root/go.mod"
}

go_module_cache() {
	if [ -n "${GOMODCACHE:-}" ]; then
		echo "$GOMODCACHE"
	else
		gopath=${GOPATH:-${HOME:-/root}/go}
		echo "${gopath%%:*}/pkg/mod"
	fi
}

# go_version GO prints the version of that Go itself, whatever go.mod says.
go_version() {
	(cd / && GOTOOLCHAIN=local GOFLAGS='' "$1" version 2>/dev/null) | sed -n 's/^go version go\([0-9.]*\).*/\1/p'
}

# go_any prints every Go of this machine, by path.
go_any() {
	command -v go || true
	for go in /usr/local/go/bin/go /usr/lib/go-*/bin/go; do
		[ ! -x "$go" ] || echo "$go"
	done
}

# go_find prints the Go to build with, or nothing: a Go of this machine that is
# new enough, else the toolchain that go_fetch brought.
go_find() {
	wanted=$(go_wanted)
	go_any | while read -r go; do
		version=$(go_version "$go")
		if [ -n "$version" ] && at_least "$version" "$wanted"; then
			echo "$go"
			break
		fi
	done | grep . && return
	fetched=$(go_module_cache)/golang.org/toolchain@$(go_toolchain)/bin/go
	[ ! -x "$fetched" ] || echo "$fetched"
}

# go_fetch GO fetches the toolchain that go.mod names with any Go since 1.16,
# which checks it against the checksum database as it does every module. Go
# itself would do the same from 1.21 on; older ones know modules only. Files of
# a module come without the execute bit.
go_fetch() {
	toolchain=$(go_toolchain)
	(
		cd /
		GOTOOLCHAIN=local GO111MODULE=on GOFLAGS='' GOMODCACHE=$(go_module_cache) \
			"$1" mod download "golang.org/toolchain@$toolchain"
	)
	dir=$(go_module_cache)/golang.org/toolchain@$toolchain
	chmod 0755 "$dir"/bin/* "$dir"/pkg/tool/*/*
}
