// Package inflight bounds the bytes of requests that are on their way or not yet
// processed, over all connections, and shares them among callers. Where there is no room,
// messages wait; nobody who keeps to HTTP/2 is refused or ended for that.
//
// grpc lets a client send as soon as its handler asks for a message, however large that is, and
// reads it into memory before anything else sees it. So a hundred streams that announce 60 MiB
// each take 6 GB. A Budget puts a connection of its own between grpc and the network (inside
// TLS), which looks at the frames as they pass (conn.go, frames.go), and decides how much clients
// may send (window.go). grpc believes that they may send anything.
//
// # Windows
//
// A stream begins with a window of 4 KiB: most requests and ACKs fit into that, and need no room.
// The length of a message is at its head. A larger one asks share.Room for all of it. Once it has
// room, the client is told that it may send the rest (WINDOW_UPDATE), and nothing more. Until
// then it waits, as HTTP/2 has it, while PINGs and the other streams of its connection go on. A
// message has room until the handler asks for the next one, or its stream has ended on the wire;
// the next one asks only then. So whoever has room waits for nobody else's, and nothing can wait
// for ever. Callers take turns. No part of this knows whether a call is unary.
//
// A stream that has had a message of more than 4 KiB, or four at once, gets a wide window of 64 KiB
// for as long as it lasts, where there is one (Budget.Wide): each ACK of a thousand names would
// otherwise wait for an answer of hdsd's, and each dozen of small reports would cost one. What that lets the client send counts apart from the room of messages. Windows
// that no client waits for are told with grpc's next frames.
//
// A client that has just connected does not know the windows, and may send 64 KiB in all
// (RFC 9113). For what is more than 4 KiB of that its connection waits to be read, apart from the
// room of messages. Nothing else keeps a connection from being read.
//
// # Who is ended
//
//   - A message that is larger than any, or than the handler says (Check), is refused at its head:
//     the handler gets an empty message in its place, and Stream turns that into the refusal. For
//     a unary call the connection passes on an impossible length, which grpc refuses itself.
//   - A message that has room and does not arrive in time ends its connection, and so does one in
//     too many parts: each takes grpc memory beside what is in it. While hdsd itself stands
//     still, at most a fifth of a client's time passes.
//   - So does a client that sends more than it may, and one that has room for what it sent early and
//     does not acknowledge the settings in time.
//   - The message of a call that has one, and a stream of answers, has room until the handler has
//     it: the answers may go on for long. So it is small, and its end has to come in time.
//
// The connection also makes one frame of small ones that have come together, for each frame
// costs grpc as much as a message of some hundred bytes.
//
// The connection also sees when nothing of a stream is left to send: After tells. A client that
// resets many streams while one write waits for it to read loses its connection.
//
// # Clients
//
// DialOptions read the frames of a gRPC client, and change nothing. Follow returns the size of the
// next message of a stream before the client asks for it (client.go). Until then, a server can send
// ReadAhead bytes of it.
//
// Package internal/rest has the same budget for the bodies of HTTP requests.
//
// It starts no goroutine but timers, and imports peer, peer/limit and
// grpc.
package inflight
