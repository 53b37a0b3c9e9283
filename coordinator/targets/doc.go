// Package targets is pure: it counts the probes a second that each IP address is to get, of all
// clusters, checks and ports together, and says which endpoints wait because their address has
// no room for more.
//
// What counts is the plan: for each endpoint, its redundancy times its checks by their shortest
// intervals. Who is counted stays counted, as long as it asks for no more. Whoever comes later,
// or asks for more, waits until there is room, first come, first served.
//
// The cost of a change is that of what differs between two versions of a cluster, beside one
// comparison of their endpoints.
package targets
