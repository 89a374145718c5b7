package token

// keywords are OpenBSD's keywords.
var keywords = map[string]bool{
	"af-to": true, "all": true, "allow-opts": true, "anchor": true, "antispoof": true, "any": true,
	"bandwidth": true, "binat-to": true, "bitmask": true, "block": true, "block-policy": true, "burst": true,
	"code": true, "debug": true, "default": true, "delay": true, "divert-packet": true, "divert-reply": true,
	"divert-to": true, "drop": true, "dup-to": true, "file": true, "fingerprints": true, "flags": true,
	"floating": true, "flows": true, "flush": true, "for": true, "fragment": true, "from": true, "global": true,
	"group": true, "hostid": true, "icmp-type": true, "icmp6-type": true, "if-bound": true, "in": true,
	"include": true, "inet": true, "inet6": true, "keep": true, "label": true, "least-states": true,
	"limit": true, "load": true, "log": true, "loginterface": true, "match": true, "matches": true, "max": true,
	"max-mss": true, "max-pkt-rate": true, "max-src-conn": true, "max-src-conn-rate": true,
	"max-src-nodes": true, "max-src-states": true, "min": true, "min-ttl": true, "modulate": true,
	"nat-to": true, "no": true, "no-df": true, "no-route": true, "no-sync": true, "on": true, "once": true,
	"optimization": true, "os": true, "out": true, "overload": true, "parent": true, "pass": true,
	"pflow": true, "port": true, "prio": true, "probability": true, "proto": true, "qlimit": true,
	"quantum": true, "queue": true, "quick": true, "random": true, "random-id": true, "rdomain": true,
	"rdr-to": true, "reassemble": true, "received-on": true, "reply-to": true, "return": true,
	"return-icmp": true, "return-icmp6": true, "return-rst": true, "round-robin": true, "route": true,
	"route-to": true, "rtable": true, "rule": true, "ruleset-optimization": true, "scrub": true, "set": true,
	"skip": true, "sloppy": true, "source-hash": true, "source-track": true, "state": true,
	"state-defaults": true, "state-policy": true, "static-port": true, "sticky-address": true,
	"syncookies": true, "synproxy": true, "table": true, "tag": true, "tagged": true, "timeout": true,
	"to": true, "tos": true, "ttl": true, "urpf-failed": true, "user": true, "weight": true,
}

// openBSDOnly are keywords that pf of old FreeBSD releases lacks, where they may be
// names: those missing in sbin/pfctl/parse.y, lookup(), of opnsense/src at commit
// 0a19f813177d, the oldest pf still in use.
var openBSDOnly = map[string]bool{
	"af-to": true, "binat-to": true, "burst": true, "default": true, "delay": true, "divert-packet": true,
	"flows": true, "least-states": true, "match": true, "matches": true, "max-pkt-rate": true, "min": true,
	"nat-to": true, "once": true, "parent": true, "pflow": true, "prio": true, "quantum": true, "rdomain": true,
	"rdr-to": true, "received-on": true, "syncookies": true, "weight": true,
}

// IsReserved reports whether s is a keyword in every pf, so that it cannot be a macro's
// name either (pf.conf(5), MACROS).
func IsReserved(s string) bool { return keywords[s] && !openBSDOnly[s] }

// IsKeyword reports whether s is a keyword, so that it needs quotes as a name.
func IsKeyword(s string) bool { return keywords[s] }
