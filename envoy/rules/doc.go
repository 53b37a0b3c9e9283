// Package rules knows the rules for Clusters and ClusterLoadAssignments that
// come from any source: their type URLs, their names, which of Envoy's own rules they
// break, and when an Envoy disregards the health of endpoints (panic).
//
// It is pure. Of this module it may import envoy/fields and internal/yamlpb.
package rules
