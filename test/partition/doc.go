// Package partition cuts the network between real Envoys and what they check:
// a checker loses all its upstreams, or the others lose a zone, or it and they
// each other, by resets and by silence, while everybody still reaches hdsd.
// Nothing that is well may go out of rotation, not for a moment; who is cut off
// has to be shown, what is down to be found all the same, and the data planes of a
// zone to be told what that zone cannot reach.
//
// There are no network namespaces, which not every machine allows: each
// checker probes from a loopback address of its own, and upstreams treat the
// probes from some addresses as a broken network would. An Envoy takes the
// address that it probes from out of the specifier only, so that each has a
// relay before hdsd that adds it there and passes on all else. A relay has two
// goroutines for each stream, which end with the test.
package partition
