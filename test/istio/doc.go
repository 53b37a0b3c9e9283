// Command istio serves xDS as Istio's control plane does, by Istio's own code, for the services in
// a file of Istio's configuration. It is a module of its own, since it needs most of Istio.
package main
