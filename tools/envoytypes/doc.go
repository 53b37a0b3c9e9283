// Command envoytypes writes what internal/envoytypes has of Envoy's messages that may stand in an
// Any: envoytypes ROOT FOLDER writes types.go, which links some, and descriptors.binpb.gz, which
// describes all with what they import. The versions are those of ROOT's go.mod.
package main
