// Package link carries the messages of package replica between replicas: one gRPC stream for each pair of them.
//
// # Who calls
//
// SetMembers tells the other replicas and their addresses. Of two replicas that have each other as members, the
// one with the smaller id calls, and the other accepts. A call that fails is repeated after a back-off of at most a
// second, and at once after the end of a link and when SetMembers brings another address. The link of a replica that is no member any more
// ends. A replica that calls before SetMembers has brought it waits a few seconds for that.
//
// The first frame each way is a Hello. A replica that reaches itself, another replica than the one that it dialled, or one without a
// common protocol gets a gRPC status that says what to do. Who may call at all is for the server's credentials and
// interceptors to decide.
//
// A newer connection of a replica replaces the older one, whose end the former may not have noticed yet. Both ends ping, so
// each notices a dead one within seconds.
//
// # Guarantees
//
//   - For each link, post gets LinkOpened, then Received and Sent, then LinkClosed, and nothing after that. The
//     number of a link is new. A replica has one link at a time: LinkClosed of the older one precedes LinkOpened of
//     the newer one.
//   - Messages arrive in order, each once, until the link ends.
//   - Send never waits. A message is encoded on a goroutine of the link, so neither the message nor what it refers to
//     may change after Send.
//   - What a replica sends causes no panic. What cannot be decoded, or shown in answers, ends the link with an error.
//     Fields that a later release adds are ignored.
//
// # Bounds
//
// A frame has at most MaxMessage bytes and eight million fields, which are counted before it is decoded. A link holds one
// message to send and one that arrives; while post waits, the link reads nothing more, and the sender waits. Decoded
// specifiers share their equal heads and localities.
//
// # Goroutines
//
// Each replica that this one dials has a goroutine, and each link three. Close waits for all, and so for calls of
// post: these must end, although the mailbox of the core may not be read any more. The goroutines of gRPC end with their
// connections and server.
//
// It imports replica and what the messages consist of, and the generated code.
package link
