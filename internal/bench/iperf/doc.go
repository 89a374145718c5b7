// Package iperf runs iperf3 and reads its results, for all versions from 3.9 to 3.18.
// People compare their figures with those of iperf3.
//
// Until 3.15 one iperf3 uses one core whatever its number of streams. [Tool.Run] then
// starts several and adds up their results. All clients of a run begin together at a
// barrier. The package knows nothing of network namespaces: a [Pair] starts programs on
// its hosts.
package iperf
