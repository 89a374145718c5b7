// Package audit judges the settings in an existing configuration of FreeBSD or of a
// firewall built on it: loader.conf, sysctl.conf, rc.conf, or a page of prose that
// contains such lines.
package audit
