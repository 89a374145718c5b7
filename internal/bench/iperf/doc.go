// Package iperf runs iperf3 and reads what it says, for all of its versions
// from 3.9 to 3.18: the program that people compare their figures with.
//
// Until 3.15 one iperf3 works on one core whatever the number of its streams,
// so [Tool.Run] starts several and adds up. All clients of a run begin together,
// at a barrier. It knows nothing of network namespaces: a [Pair] says how a
// program is started on its hosts.
package iperf
