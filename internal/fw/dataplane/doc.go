// Package dataplane manages what is loaded in the kernel: the programs of bpf/, their
// maps and links, and the change from one generation of them to the next.
//
// A change is a transaction. Build loads new programs beside the running ones, over the
// same states. Commit replaces the program of each link in one update, and keeps the old
// generation until the new one is live. What outlives the process is pinned in one folder
// per network namespace, so forwarding goes on without a daemon. Open reads the same
// pins, for commands that only read.
//
// The daemon decides what to load and describes interfaces and addresses.
// internal/fw/bpfload talks to the kernel. docs/packet-path.md says what the programs do
// with a packet.
package dataplane
