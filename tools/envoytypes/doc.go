// Command envoytypes lists the Go packages of Envoy's messages that may stand
// in an Any: envoytypes ROOT writes gen/envoy/types.go, which imports them
// all, and envoytypes ROOT - prints it. The versions are those of ROOT's go.mod.
package main
