// Package daemon is weir run: it brings the dataplane up behind a guard, keeps
// what the dataplane knows of the machine true (interfaces, addresses, routes,
// neighbours), answers the control socket, and can die at any moment without a
// packet noticing.
//
// Start is a ladder. Each rung is undone if a later one fails: record what was
// found, raise the guard, build the dataplane aside, attach it, switch
// forwarding on. Stop goes down the same ladder and works from the records in
// the run folder, so it needs no living daemon. A second start builds its
// dataplane beside the running one, asks the first daemon to leave, and swaps.
//
// Everything that runs on is a Task (Run, Ready, String) under one errgroup.
package daemon
