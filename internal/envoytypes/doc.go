// Package envoytypes has the types that an Any of a cluster or its endpoints may hold: all
// messages of Envoy's API and of its contrib extensions.
//
// It links the generated code of those that Envoy reads to build a cluster (types.go), which has
// their validation rules. The others are descriptors in one file; Register makes
// dynamic messages of them. They can be read, written, redacted and shown like any other, but
// have no validation rules. Their generated code would be a fifth of the program.
//
// In a dynamic message, inner messages are dynamic, too: code that looks for an Any asks
// internal/dynamic instead of the Go type. tools/envoytypes generates types.go and
// descriptors.binpb.gz (make generate).
package envoytypes
