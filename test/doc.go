// Package test holds stories: weir between real programs, in network namespaces. Each
// opens with a drawing. Each runs under TCX with the offloads of veth on, and under XDP
// with them off.
package test
