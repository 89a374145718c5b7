# shellcheck shell=sh disable=SC2154 # the caller sets $me, $root and $log
# What weir needs of the machine and cannot install. Every check ends the
# script with one sentence and exit status 2, before anything was changed.

KERNEL_MIN=6.6 # weir itself has it in internal/fw/bpfload/need.go

need_root() {
	[ "$(id -u)" = 0 ] || refuse "run this as root: weir loads programs into the kernel and makes network namespaces"
}

need_architecture() {
	case $(uname -s)/$(uname -m) in
	Linux/x86_64 | Linux/aarch64) ;;
	*) refuse "weir runs on Linux, amd64 or arm64; this is $(uname -s) on $(uname -m)" ;;
	esac
}

need_kernel() {
	at_least "$(uname -r)" "$KERNEL_MIN" ||
		refuse "weir needs Linux $KERNEL_MIN or newer (TCX); this machine runs $(uname -r)"
}

# A root without these is root in a container. CAP_SYS_ADMIN includes CAP_BPF
# and CAP_PERFMON.
need_capabilities() {
	effective=$(sed -n 's/^CapEff:[[:space:]]*//p' /proc/self/status)
	missing=
	for capability in 12:CAP_NET_ADMIN 13:CAP_NET_RAW 21:CAP_SYS_ADMIN; do
		bit=${capability%%:*}
		[ $(((0x$effective >> bit) & 1)) = 1 ] || missing="$missing ${capability#*:}"
	done
	[ -z "$missing" ] || refuse "this root lacks$missing (in a container? it must be a privileged one)"
}

need_bpf() {
	[ -e /proc/sys/kernel/unprivileged_bpf_disabled ] ||
		refuse "this kernel has no BPF system call (CONFIG_BPF_SYSCALL)"
	[ -e /proc/sys/net/core/bpf_jit_enable ] ||
		refuse "this kernel has no BPF JIT compiler (CONFIG_BPF_JIT)"
	[ "$(cat /proc/sys/net/core/bpf_jit_enable)" != 0 ] ||
		refuse "the BPF JIT compiler is off: sysctl net.core.bpf_jit_enable=1 turns it on"
	grep -qw bpf /proc/filesystems ||
		refuse "this kernel has no BPF file system (CONFIG_BPF_SYSCALL with CONFIG_BPFFS)"
}

need_namespaces() {
	[ -e /proc/self/ns/net ] ||
		refuse "this kernel has no network namespaces (CONFIG_NET_NS)"
	unshare --net true 2>/dev/null ||
		refuse "this machine does not let root make network namespaces (unshare --net fails)"
}

# need_machine checks everything, the cheapest and most likely first.
need_machine() {
	need_architecture
	need_root
	need_kernel
	need_capabilities
	need_bpf
	need_namespaces
}
