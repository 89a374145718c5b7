# shellcheck shell=sh disable=SC2154 # the caller sets $me, $root and $log
# How the scripts speak, and how they end.

say() {
	printf '%s: %s\n' "$me" "$*"
}

# refuse ends the script because of something that only the user can change.
refuse() {
	printf '%s: %s\n' "$me" "$*" >&2
	exit 2
}

fail() {
	printf '%s: %s\n' "$me" "$*" >&2
	exit 1
}

# at_least A B: version A is B or newer.
at_least() {
	[ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]
}
