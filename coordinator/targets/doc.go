// Package targets is pure. It counts the probes a second that each IP address is to get, of all
// clusters, checks and ports together. An endpoint for which its address has no room waits.
//
// The plan counts, not the probes: for each endpoint, its redundancy times its checks by their
// shortest intervals. An endpoint that counts goes on as long as it asks for no more. One that
// comes later, or asks for more, waits until there is room: first come, first served.
//
// A change of a cluster costs one comparison of the endpoints of both versions, and the work for
// those that differ.
package targets
