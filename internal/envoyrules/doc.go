// Package envoyrules is what is known of Clusters and ClusterLoadAssignments in
// protobuf's form, whichever way they come: their type URLs, their names, and
// which of their own rules they break as a whole.
//
// It is pure. Of this module it may import internal/yamlpb.
package envoyrules
