// Package fields reads, counts, writes and replaces single fields of an encoded message. Everything
// else of the message stays byte for byte as it came, unknown fields and their order included.
//
// It is the one place that knows how messages are encoded, and numbers.go has the numbers of the
// fields of Envoy's messages that hdsd reads or writes so.
//
// It is pure, and starts no goroutine. It imports the protobuf library only.
package fields
