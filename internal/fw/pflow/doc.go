// Package pflow tells collectors of connections that have ended: it turns them into flow
// records of NetFlow 5 or IPFIX (RFC 7011), as pflow(4) does, and sends them by UDP. A
// connection is two records, one for each direction, with the addresses that its packets
// arrived with. IPFIX also has those that they left with, if they were translated.
package pflow
