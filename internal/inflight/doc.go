// Package inflight bounds the bytes of requests that are on their way or not yet
// processed, over all connections, and shares them among callers.
//
// grpc reads a whole message into memory before anything else sees it, and lets its
// sender go on as soon as it knows the length. So a hundred streams that announce 60 MiB
// each take 6 GB. Budget.Credentials puts a connection of its own between grpc and the
// network (inside TLS), which looks at the frames as they pass (conn.go, frames.go). The
// length of a message is at its head. The connection takes a lease for it before grpc
// reads it, and waits a moment where there is no room: the sender then waits, too.
// Without room it shows grpc an empty message in place of the beginning of that one.
// Budget.Stream tells the handler of the refusal then, and the stream ends with the
// reason. For a unary call it passes on an impossible length, which grpc refuses itself.
//
// A lease is given back when the handler asks for the next message, or when its stream
// has ended on the wire. While more messages of a stream wait, the stream keeps up to 32 KiB
// for them. Each stream has 512 bytes without a lease, enough for most ACKs. A message that
// does not arrive in time ends its connection. share.Pool, too, ends connections of the caller
// that has most when others need room.
//
// The connection also makes one frame of small ones that have come together, for each frame
// costs grpc as much as a message of some hundred bytes.
//
// The connection also sees when nothing of a stream is left to send: After tells. A client that
// resets many streams while one write waits for it to read loses its connection.
//
// Package internal/rest has the same budget for the bodies of HTTP requests.
//
// It starts no goroutine but timers, and imports internal/caller, internal/share and
// grpc.
package inflight
