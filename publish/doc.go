// Package publish knows what data planes get, for eds and relay alike: changes of what is published
// (Update, Health), and how health goes into encoded Clusters and ClusterLoadAssignments.
//
//   - TakeOver makes the form of a cluster in which hdsd checks it, and CanTakeOver says whether there
//     is one.
//   - Combine and Worst are the health of an endpoint by several verdicts and the source's word.
//   - Splice makes an encoded assignment in which a change of health is a change of one byte. eds
//     publishes these.
//   - OverlayCluster and OverlayAssignment put health into a resource of a control plane, which relay
//     passes on. Everything else stays byte for byte as it came, and a resource in which nothing has
//     to change is returned as it is.
//   - Client and Refuser are what both say of the clients that take it.
//
// It is pure, but for the lock of Refusing, and starts no goroutine. Of this module it may import health, envoy and envoy/fields.
package publish
