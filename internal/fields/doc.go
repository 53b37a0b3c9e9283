// Package fields reads, writes and replaces single fields of an encoded message. Everything else
// of the message stays byte for byte as it came, unknown fields and their order included.
//
// It is pure, and starts no goroutine. It imports protowire only.
package fields
