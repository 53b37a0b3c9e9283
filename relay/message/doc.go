// Package message reads and rewrites encoded discovery requests and responses, state of the world and
// delta. It changes nonces, versions and the bodies of resources, and leaves every other byte as it is.
//
// Mark and Unmark map versions: a resource that hdsd has changed has the control plane's version with a
// mark. They need no state, so they work after a restart.
//
// The package is pure, and starts no goroutine. Of this module it may import envoy/fields.
package message
