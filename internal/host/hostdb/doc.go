// Package hostdb reads what this machine calls users, groups, hosts, services and
// protocols, from its databases under /etc, and looks other hosts up in the DNS
// within a time limit.
package hostdb
