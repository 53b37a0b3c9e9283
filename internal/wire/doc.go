// Package wire is the codec of hdsd's gRPC server.
//
// It lets single messages encode and decode themselves. A report can so be compared
// before it is decoded, and a frame is encoded once for all who get it. The standard
// protobuf codec treats every other message, exactly as in grpc. One codec serves the
// whole process, whatever services its server has.
//
// Buffers has grpc use the buffers of messages again without clearing them.
//
// It starts no goroutine, has no state but those buffers, and imports envoy/fields and grpc only.
package wire
