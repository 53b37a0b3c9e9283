// Package message reads and rewrites discovery requests and responses in their encoded
// form, state of the world and delta. It changes nonces, versions and the bodies of
// resources, and leaves the rest byte for byte as it came.
//
// Mark and Unmark map versions: a resource that hdsd has changed has the control plane's
// version with a mark. They need no state, so they work after a restart too.
//
// It is pure, and starts no goroutine. Of this module it may import envoy/fields.
package message
