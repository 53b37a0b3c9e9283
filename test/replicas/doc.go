// Package replicas runs three real hdsd on real etcd servers, and breaks what they stand on: it kills, stops and
// pauses replicas and members of etcd, wipes, sets back, fills and slows down etcd, and cuts replicas from etcd, from
// each other and from checkers, by proxies of its own.
//
// Simulated checkers report to each replica how endpoints are, of which some fail and recover all the time. A data
// plane of each replica records each health that it gets, with the time. Operators give orders to each replica.
//
// For each fault, the tests hold:
//
//   - No data plane gets a health that the endpoint did not have since the fault began, or in the seconds before.
//     Endpoints that never change have one health throughout.
//   - All replicas have the same history, and each change of an endpoint is in it once.
//   - An order that was acknowledged is in the audit once, and in force. One that was refused is not. Orders are
//     linearizable, and what a replica shows of them never goes back.
//   - Decisions resume by themselves. The tests print how long the longest one waited.
//
// An upgrade under load is held to the same, also between two releases (make upgrades).
//
// SOAK makes the outages longer and the kills more. The processes and goroutines of a test end with it.
package replicas
