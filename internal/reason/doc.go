// Package reason gives errors a reason that programs can act on
// (google.rpc.ErrorInfo), because the words of a message may change.
//
// It is pure and imports nothing of this module.
package reason
