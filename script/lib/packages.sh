# shellcheck shell=sh disable=SC2154 # the caller sets $me, $root and $log
# What each kind of work needs beyond a bare Debian or Ubuntu, and installing
# it with apt. Nothing here starts a service, and nothing installed is upgraded.

# needs SET prints one line per need: what to look for, the package that brings
# it, and what it is for. "python3:NAME" is a module of Python, a path is a file.
needs() {
	case $1 in
	build) cat <<-'END' ;;
		make make runs the build
	END
	demo) needs build && cat <<-'END' ;;
		nft nftables is the guard behind weir, and what the benchmark compares with
		ping iputils-ping is used by the demo
		curl curl is used by the demo
		iperf3 iperf3 is used by the demo
	END
	test)
		needs demo
		cat <<-'END'
		ip iproute2 looks from outside at what weir set up
		tc iproute2 shapes links in the tests
		ethtool ethtool switches offloads in the tests
		tcpdump tcpdump looks at what crosses a link
		tshark tshark reads what weir captures, comments too
		xz xz-utils unpacks the earlier version that the tests upgrade from
		socat socat makes connections of every kind
		strace strace sees every change that weir makes of the kernel
		traceroute traceroute is one of the tests
		iptables-legacy iptables is another firewall, which weir has to name
		scapy python3-scapy makes broken packets
		nfcapd nfdump collects the flow records of the tests, and nfdump prints them
		nmap nmap looks for open ports from outside
		busybox busybox-static has a DHCP client and a web server for the tests
		dnsmasq dnsmasq-base gives out addresses by DHCP and router advertisements
		kea-dhcp6 kea-dhcp6-server delegates prefixes by DHCPv6 in the tests; it is not started as a service
		nginx nginx serves what the benchmark's web clients fetch; it is not started as a service
		haproxy haproxy is a transparent proxy in the tests; it is not started as a service
		/usr/lib/python3/dist-packages/pyftpdlib/servers.py python3-pyftpdlib pyftpdlib is an FTP server in the tests
		upnpc miniupnpc asks for ports by UPnP in the tests
		turnserver coturn is a STUN server and client in the tests; it is not started as a service
		natpmpc natpmpc asks for ports by NAT-PMP in the tests
		/usr/share/doc/python3-libtorrent/copyright python3-libtorrent libtorrent asks for ports by PCP in the tests
		fail2ban-client fail2ban bans addresses by pfctl in the tests; it is not started as a service
		/usr/libexec/sshguard/sshg-fw-pf sshguard bans addresses by pfctl in the tests; it is not started as a service
		swanctl strongswan-swanctl sets up peers of IPsec tunnels
		charon-systemd charon-systemd does IKE for IPsec tunnels; it is not started as a service
		/usr/lib/ipsec/plugins/libstrongswan-gcm.so libstrongswan-standard-plugins has the algorithms of IPsec tunnels
		dbus-daemon dbus-daemon is the bus of systemd-resolved in the tests; it is not started as a service
		dropbear dropbear-bin has an SSH server and client that touch no keys of this machine
	END
		# Ubuntu has it only as a snap, which neither root nor a container can run:
		# there the test that needs it is skipped, also where no test may be.
		grep -q '^ID=ubuntu' /etc/os-release || cat <<-'END'
		chromium chromium opens the benchmark's reports as a reader would
	END
		;;
	lint) needs build && cat <<-'END' ;;
		clang-19 clang-19 compiles the BPF programs
		llvm-strip-19 llvm-19 strips the BPF objects
		shellcheck shellcheck checks the scripts
		git git tells whether generated files are the committed ones
	END
	kernels) needs test && cat <<-'END' ;;
		qemu-system-x86_64 qemu-system-x86 emulates a machine for another kernel
		depmod kmod indexes that kernel's modules
		busybox busybox-static mounts its root file system
		file file tells virtme-ng what busybox is
		python3 python3 runs virtme-ng
		python3:ensurepip python3-venv installs virtme-ng apart from the system
		wg wireguard-tools is one of the tests there
		pppd ppp is one of the tests there, and a peer of others
		pppoe-server pppoe is a peer of tests there
	END
	*) fail "no such set of needs: $1 (build, demo, test, lint, kernels)" ;;
	esac
}

have() {
	case $1 in
	python3:*) python3 -c "import ${1#python3:}" 2>/dev/null ;;
	/*) [ -s "$1" ] ;;
	*) command -v "$1" >/dev/null ;;
	esac
}

# missing SET prints the needs that are not met, in the form of needs.
missing() {
	needs "$1" | while read -r thing package purpose; do
		have "$thing" || echo "$thing $package $purpose"
	done
}

apt_quiet() {
	# needrestart, which Ubuntu installs, would restart services after us.
	DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 NEEDRESTART_MODE=l \
		apt-get -q -y -o DPkg::Lock::Timeout=300 "$@" </dev/null >"$log" 2>&1
}

apt_failed() {
	cat "$log" >&2
	fail "$*"
}

can_install() {
	[ "$(id -u)" = 0 ] || refuse "run this as root, to install: $*"
	command -v apt-get >/dev/null ||
		refuse "there is no apt-get here to install $* with: install what brings them on this system, then start again"
}

# apt_update refreshes the package lists once per run. A source that fails is
# no reason to end: the packages may be in another.
apt_update() {
	[ -z "${lists_fresh:-}" ] || return 0
	say "reading the package lists"
	apt_quiet update || apt_quiet update || say "a package source cannot be read; going on with the others"
	lists_fresh=yes
}

# Packages ask this file before they start their services; one that is there is
# the machine's own and stays, unless its second line says that it is what a
# killed run of ours has left.
service_policy=${WEIR_SERVICE_POLICY:-/usr/sbin/policy-rc.d}
policy_mark='# made by script/bootstrap of weir while it installs; it may be removed'
own_policy=

# remove_left_policy takes away what a killed run has left, and only that.
remove_left_policy() {
	[ "$(sed -n 2p "$service_policy" 2>/dev/null)" = "$policy_mark" ] || return 0
	[ -w "$service_policy" ] && ! maker_lives || return 0
	say "removing $service_policy, which a killed run has left"
	rm -f "$service_policy"
}

# maker_lives tells whether the run that made the file, whose number its third
# line has, is still there.
maker_lives() {
	maker=$(sed -n '3s/^# process //p' "$service_policy")
	[ -n "$maker" ] && grep -qs bootstrap "/proc/$maker/cmdline"
}

forbid_services() {
	[ ! -e "$service_policy" ] || return 0
	own_policy=$service_policy
	printf '#!/bin/sh\n%s\n# process %s\nexit 101\n' "$policy_mark" "$$" >"$own_policy"
	chmod 755 "$own_policy"
}

allow_services() {
	[ -z "$own_policy" ] || rm -f "$own_policy"
	own_policy=
}

apt_install() {
	forbid_services
	apt_quiet install --no-install-recommends --no-upgrade --no-remove "$@" || {
		allow_services
		apt_failed "installing $* failed"
	}
	allow_services
	# Nor at the next boot, where the package was not there before.
	case " $* " in
	*" nginx "*) ! command -v systemctl >/dev/null || systemctl --quiet disable nginx 2>/dev/null || true ;;
	esac
	case " $* " in
	*" fail2ban "*) ! command -v systemctl >/dev/null || systemctl --quiet disable fail2ban 2>/dev/null || true ;;
	esac
	case " $* " in
	*" sshguard "*) ! command -v systemctl >/dev/null || systemctl --quiet disable sshguard 2>/dev/null || true ;;
	esac
	case " $* " in
	*" charon-systemd "*) ! command -v systemctl >/dev/null || systemctl --quiet disable strongswan 2>/dev/null || true ;;
	esac
	case " $* " in
	*" haproxy "*) ! command -v systemctl >/dev/null || systemctl --quiet disable haproxy 2>/dev/null || true ;;
	esac
}

# install_certificates comes before everything else that is fetched: sources of
# apt may be https, and Go's modules are.
install_certificates() {
	[ -z "${SSL_CERT_FILE:-}" ] || return 0
	! have /etc/ssl/certs/ca-certificates.crt || return 0
	can_install ca-certificates
	apt_update
	say "installing ca-certificates, to know whom we fetch from"
	apt_install ca-certificates
	lists_fresh=
}

# install_packages SET... installs what is missing of the sets.
install_packages() {
	packages=
	lines=$(for set in "$@"; do missing "$set"; done)
	[ -n "$lines" ] || return 0
	while read -r _ package _; do
		case " $packages " in
		*" $package "*) ;;
		*) packages="$packages $package" ;;
		esac
	done <<-END
		$lines
	END
	packages=${packages# }
	can_install "$packages"
	apt_update
	# Each package once, with the purpose of what is missed first.
	printf '%s\n' "$lines" | awk -v me="$me" '!seen[$2]++ {
		package = $2; $1 = ""; $2 = ""; sub(/^ */, ""); print me ": installing " package ", which " $0 }'
	# shellcheck disable=SC2086 # a list of names
	apt_install $packages
	lines=$(for set in "$@"; do missing "$set"; done)
	[ -z "$lines" ] || fail "installed $packages, but still missing: $(printf '%s\n' "$lines" | cut -d' ' -f1 | sort -u | tr '\n' ' ')"
}

# unpack_resolved unpacks systemd-resolved for a test, where it is not installed: as
# a package it would give the machine another resolv.conf. Where that is not
# possible, the test is left out.
unpack_resolved() {
	unpacked=$root/.build/systemd-resolved
	[ ! -x /lib/systemd/systemd-resolved ] && [ ! -e "$unpacked/complete" ] && [ -w "$root" ] || return 0
	command -v apt-get >/dev/null && command -v dpkg >/dev/null || return 0
	say "fetching systemd-resolved, to be unpacked into $unpacked"
	rm -rf "$unpacked" && mkdir -p "$unpacked"
	if (cd "$unpacked" && apt-get -qq -o APT::Sandbox::User=root download systemd-resolved && dpkg -x ./*.deb .) >"$log" 2>&1; then
		rm -f "$unpacked"/*.deb
		touch "$unpacked/complete"
	else
		say "systemd-resolved cannot be fetched: $(tail -n 1 "$log")"
	fi
}
