// Command corpus runs hdsd on the Envoy configuration of other projects, and
// holds what hdsd refuses, and what it publishes, against a real Envoy.
//
//	make corpus
//
// builds bin/hdsd, fetches the projects of projects.go as Go modules, and writes
// docs/internals/corpus.md. It needs Go, the module proxy and Envoy in .cache, which a
// demonstration fetches where it is not there yet; it takes some minutes. With
// arguments it looks through folders instead, and only prints:
//
//	cd tools && go run ./corpus /etc/envoy
//
// Each file goes the same way. find.go takes bootstraps and resources out of it,
// as the text that they are; hdsd.go serves them, once as they are and once with
// a default TCP check for all, and asks what is published; envoy.go has Envoy
// judge each resource alone; verdict.go compares the two.
package main
