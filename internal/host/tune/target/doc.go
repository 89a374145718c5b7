// Package target writes settings for systems other than the one that weir runs on:
// FreeBSD, pfSense and OPNsense, as lines for their files, each with its reason.
//
// A key is written only for versions in which public sources have it (keys.yaml). The
// FreeBSD that a firewall is built on is in targets.yaml. For a version that neither file
// knows, all lines are comments. keys.yaml also lists the drivers that have keys of
// iflib(4).
package target
