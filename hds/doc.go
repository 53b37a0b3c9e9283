// Package hds is the server side of Envoy's health discovery service. It sends
// checkers their specifiers and turns their reports into votes.
//
// A session is a checker's stream, or its fetches. Each of its parts is a type:
//
//   - its end (lifetime.go);
//   - when it was heard (activity.go);
//   - the specifier that waits to be sent (pending.go);
//   - the specifiers that were sent, and the one that reports follow (progress.go);
//   - the calls of the sink (notifier.go).
//
// Other files decide
//
//   - who a checker is (join.go), which ones may come in (door.go), and which of two sessions has a node
//     id (contest.go);
//   - what has to be sent next (outbox.go, sender.go for streams, fetcher.go for
//     fetches), in v2 if the checker speaks it (v2.go, form.go);
//   - what reports should look like (plan.go, expected.go), and how to read them
//     (reader.go with walk.go, the fast way, and decode.go, the general one);
//   - what is too much to be read (allowance.go), before it is decoded (message.go,
//     unary.go, rest.go).
//
// Package envoy/specifier decides what is safe to send.
//
// # Guarantees
//
// The sink is called once at a time for each checker, in the order Connected,
// Reported and so on, Disconnected. If a new session replaces an old one, its
// Connected comes after the old one's last Reported, without Disconnected.
//
// Nothing is sent in a session before its Connected has returned, and what was
// assigned to an earlier session of that id is forgotten. So a specifier built for
// another binary is never sent, provided that the sink knows the checker when
// Connected returns.
//
// The latest specifier wins. It is sent if it differs from the last one sent in
// that session. A cluster that disappears is sent once more without endpoints, and
// dropped a report interval later: not every Envoy lives with less.
//
// A specifier that brings back an endpoint which the one before took away is held back
// until a report follows that one, for three intervals at most. The checker checks the
// endpoint anew, and its reports of before and after look alike.
//
// Of two sessions with one node id, the one that reports stays. Another waits until
// the first ends, or says nothing for three intervals, and then takes its place. It
// is refused when the first is heard an interval or more after it came. So it waits
// for less than four intervals, unless hdsd itself is held up and does not read the
// first. Neither address nor certificate counts, except that a grant may bind the id
// to one's identity and not to the other's (package access): then that one has it at
// once. The sink hears nothing of a session that waits or is refused. A checker that
// says it is a node that its identity is not bound to is refused.
//
// A node that fetches is the same checker as on a stream, with the same rules,
// except that a fetch is refused at once. It is connected until three intervals
// after its last fetch. Fetches belong to one checker if node, abilities and
// certificate are the same, or the address if there is no certificate. Two nodes
// with all of this in common cannot be told apart. A fetched report counts only if
// its certificate, or address, is that of the node's fetches.
//
// A v2 checker is sent what v2 can say. A cluster that v2 would read differently,
// or only in part, is left out, counted and logged.
//
// The protocol has no acknowledgement. A specifier is SYNCED when a report lists
// exactly its endpoints in its order, by cluster, locality and address. Until then
// a report may follow an earlier specifier; only endpoints of the current one give
// votes. A checker falls silent if it reports nothing of its first non-empty
// specifier within three intervals. Heartbeats do not count as reports.
// A report equal to the one before is not decoded. Small ones are compared byte for
// byte, others by a keyed hash of 64 bits. The sink hears of such reports ten times an
// interval at most.
//
// A report may list twice what is assigned to its checker, or 1,000 endpoints, and may
// have as many bytes as these need. Whatever is beyond is refused before it is copied
// or decoded, since an entry takes two bytes on the wire and a hundred in memory.
//
// No input of a peer panics, and every wait for a peer ends: the first message, the
// body of a fetch, each write, and, by keepalive, the connection. A peer that is only
// busy may be late with its answer to a ping, by 20 s.
//
// # Goroutines
//
// A stream has three: the handler's, which waits for the reason to end it; one that
// receives and calls the sink; and, from Connected on, one that sends. All end with
// the stream. Each node that fetches has one, which answers it, calls the sink and
// ends with the session. Server.Close ends all sessions and waits for them.
//
// It may import access, health, envoy and its packages, peer,
// internal/gate, peer/limit, internal/rest, internal/wire, protos, grpc, net/http, and the metrics
// and log libraries. The grpc.Server must use wire's codec; ServerOptions has it.
package hds
