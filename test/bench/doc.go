// Command bench measures hdsd from outside, beside floors and peers, in one run:
//
//	make bench
//
// prints one table and writes docs/reference/performance.md. A floor is a server that only
// moves the bytes. A peer is what others would use for the same work. All of them, and
// hdsd, are processes of their own; the load is this process. What each has cost is the
// processor time that the kernel has accounted to it alone.
//
// The contenders of a scenario (scenario.go) take turns, several times, on the same machine.
// A figure is the median of its runs, and a ratio that of the turns, each with the
// lowest and the highest. After each turn an endpoint fails and a data plane must be told,
// so that speed gained by not listening is not counted: bench fails where the news does
// not arrive.
//
// Replicas are measured beside a coordinator alone and beside their etcd alone, on the same cores.
//
// bench is also the program of floors and peers: bench floor, bench floor-tuned, bench peer.
package main
