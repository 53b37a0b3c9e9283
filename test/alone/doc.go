// Package alone holds hdsd to what a cluster did before: one cluster in, two data
// planes out. One Envoy is alone, with the cluster's own health checks. One is behind
// hdsd, with three Envoys as checkers. Both get the same requests while endpoints
// fail, hang, recover, come, go, move and are relabelled.
//
// It owns the rig, the cases, which are data, and the judgement of each field of
// Envoy's messages that bears on health, hosts or weights:
//
//   - Rig starts the processes. Any number of cases share one, each with a cluster
//     and upstreams of its own; the processes end with the test.
//   - Play plays a case's steps and records what each data plane did: requests by
//     endpoint, failed requests, and what else a step notes.
//   - Compare holds the records to the case's verdict. A difference that is expected
//     and missing fails as one that is not.
//   - Fields lists the judgements, of which docs/reference/fidelity.md is made.
//
// HDSD_ALONE=full plays the slow cases too, and all with each release of Envoy, as
// make soak does. No time is asserted: a step waits for a condition, and what is
// compared are counts. The package may import anything.
package alone
