// Package partition cuts the network between real Envoys and the endpoints they
// check, by resets and by silence. A checker loses all its upstreams, or all others
// lose its zone, or both at once, while everybody still reaches hdsd.
//
// In each case:
//   - No healthy endpoint goes out of rotation, not even for a moment.
//   - hdsd shows which checkers are cut off.
//   - hdsd still finds what is down.
//   - The data planes of a zone learn what that zone cannot reach.
//
// It uses no network namespaces, because not every machine allows them. Each checker
// probes from a loopback address of its own instead, and upstreams treat probes from
// some addresses as a broken network would. An Envoy takes its source address from
// the specifier only. So each checker has a relay before hdsd that adds the address
// there and passes on everything else. A relay has two goroutines for each stream,
// which end with the test.
package partition
