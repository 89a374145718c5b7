// Package device is the part of wireguard-go that is not a path of data: handshakes (noise), cookies, timers, keys
// and their rotation, allowed networks, and the configuration protocol. It is golang.zx2c4.com/wireguard/device of
// version 0.0.0-20260522210424-ecfc5a8d5446 (MIT: LICENSE), with its tests, because the library does not give out the
// keys of a session. Packages of the library that do (replay, tai64n, ratelimiter, ipc) are used as they are.
//
// Changed against the original:
//
//   - The queues, the goroutines of tun device and sockets, and the pools of buffers are gone (send.go, receive.go,
//     channels.go, pools.go, tun.go, sticky_linux.go). What a path of data needs instead is in datapath.go: reserving
//     numbers, sealing, opening, accepting numbers, and telling a peer what was sent and received.
//   - A Network (network.go) sends and receives messages; an endpoint does not change once a peer has it.
//   - Handshakes are handled by one goroutine, and their messages wait in a channel without buffers of their own
//     (handshake.go). Between the check for a replay and the update after it no other message is handled.
//   - Packets that wait for a session are copies, 128 for each peer (staged.go).
//   - The replay window has a lock, because several threads may deliver messages of one session.
//   - A timer that is not pending is not locked to be stopped, and the timer of persistent keepalives moves ten times a
//     second at most.
//   - The mark of packets, the server for wg(8), and workarounds for mobile systems are gone.
//   - A peer may be held to one of several ways, and handshakes probe them (held.go). An endpoint has the interface
//     that messages leave by.
//   - A peer may have lanes, tunnels beside its own with other keys and other ports (lane.go). A message counts only at the
//     port of the peer that it is for.
//   - It remembers who has begun handshakes that no peer has, and what a peer has sent that it may not (refused.go). An
//     answer that does not fit says that the preshared keys differ.
//   - A clock that goes back does not have peers refuse handshakes: the first message has a later time than the one before all the same. Messages
//     of peers whose clocks have gone back are remembered (clock.go).
//   - circle.go makes sessions for measurements.
package device
