// Package envoyrules knows the rules for Clusters and ClusterLoadAssignments that
// come from any source: their type URLs, their names, and which of Envoy's own rules
// they break.
//
// It is pure. Of this module it may import internal/yamlpb.
package envoyrules
