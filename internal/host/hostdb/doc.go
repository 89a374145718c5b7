// Package hostdb gives the resolver of rules the facts of this machine: its interfaces
// with their groups and addresses, and the users, groups, hosts, services and protocols
// in its databases under /etc. It looks up other hosts in the DNS within a time limit.
package hostdb
