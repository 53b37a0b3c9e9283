// Package overlay puts health into encoded Clusters and ClusterLoadAssignments.
//
// It owns what the relay changes of a resource: the health_status of endpoints that are
// found by locality and address, the health_checks of clusters that hdsd checks, and what is
// left of the lease of an assignment in hdsd's own responses. It
// guarantees that everything else stays byte for byte as it came, and that a resource in
// which nothing has to change is returned as it is.
//
// It is pure, and starts no goroutine. Of this module it may import health,
// internal/envoyaddr and internal/fields.
package overlay
