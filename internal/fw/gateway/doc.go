// Package gateway watches the next hops that rules choose with route-to and reply-to: by
// ARP or Neighbor Discovery, or by pings through them. It says which are down.
//
// A Watcher asks each gateway once a second. The answer, or its absence, is a sample. A
// gateway is down after lostInRow samples without an answer, or if lossDown of the last
// window samples have none. It is up again after answeredInRow answers in a row.
package gateway
