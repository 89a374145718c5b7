// Package target writes settings for other systems than the one weir runs on:
// FreeBSD, pfSense and OPNsense, as lines for their files, each with its reason.
//
// A key is written only for versions in which public sources were found to have it
// (keys.yaml). Which FreeBSD a firewall is built on is in targets.yaml. For a version
// that neither knows, all lines are comments. The drivers that have keys of iflib(4) are
// in keys.yaml, too.
package target
