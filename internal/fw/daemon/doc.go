// Package daemon implements `weir run`. It brings the dataplane up behind a guard, keeps
// the dataplane's view of the machine current (interfaces, addresses, routes, neighbours)
// and answers the control socket. It can die at any moment without disturbing a packet.
//
// Start is a ladder: record the settings found, raise the guard, build the dataplane
// aside, attach it, switch forwarding on. If a rung fails, the earlier ones are undone.
// Stop goes down the same ladder. It works from the records in the run folder, so it
// needs no living daemon. A second start builds its dataplane beside the running one,
// asks the first daemon to end, and swaps.
//
// Everything that keeps running is a Task (Run, Ready, String) under one errgroup.
package daemon
