// Package targets is pure. It counts the planned probes per second at each IP address, of all
// clusters, checks and ports together. An endpoint waits while its address has no room.
//
// It counts planned probes: for each endpoint, its redundancy times its checks by their
// shortest intervals. A counted endpoint stays counted while its rate does not grow. A later
// endpoint, or one with a higher rate, waits until there is room: first come, first served.
//
// A change of a cluster costs one comparison of the endpoints of both versions, and the work
// for the differences.
package targets
