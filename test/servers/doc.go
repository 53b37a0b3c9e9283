// Package servers runs hdsd with other projects' control planes as its sources,
// and behind its relay with an Envoy: go-control-plane, and java-control-plane in a process of
// its own (SERVERS=java, since it needs a JDK and Maven, which fetches it into the repository's
// .cache).
package servers
