// Package wire is the codec of hdsd's gRPC server.
//
// It lets single messages take over their own encoding, so that a report can
// be compared before it is decoded and a frame can be encoded once for all who
// get it; every other message is treated by the standard protobuf codec. One
// codec serves the whole process, whatever services its server has.
//
// It guarantees that messages which implement neither Marshaler nor
// Unmarshaler are encoded and decoded exactly as grpc does without it. It
// starts no goroutine, has no state, and imports grpc only.
package wire
