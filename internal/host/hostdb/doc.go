// Package hostdb tells the resolver of rules what this machine is: its interfaces
// with their groups and addresses, and what it calls users, groups, hosts,
// services and protocols, from its databases under /etc. It looks other hosts up
// in the DNS within a time limit.
package hostdb
