// Package autorate follows a line whose rate varies, such as a cellular, cable or satellite
// one: it says which rate the queues in front of it should have. It learns from probes, which
// are delayed or lost when packets wait behind the queues, and from what the queues carry.
//
// Step is the whole method, without clock and network: a state and a sample give a state and
// a decision.
package autorate
