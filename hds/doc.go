// Package hds is the server side of Envoy's health discovery service: it tells
// checkers what to check and turns their reports into votes.
//
// It owns the streams of the checkers, from the first message of each to its
// end, and the fetches of those without one (fetch.go, visits.go, rest.go): who
// a checker is (join.go, caller.go) and which of two has a node id (contest.go),
// which specifier it was sent and what has to be sent next (outbox.go,
// sender.go), in v2 where that is what it speaks (v2.go, form.go), what its
// reports are expected to look like (plan.go), and reading them (reader.go with
// walk.go, the fast way, and decode.go, the general one).
// What is safe to send is decided in hds/specifier, not here.
//
// # Guarantees
//
// For each checker the Sink is called once at a time, in the order Connected,
// Reported and so on, Disconnected; where a new stream takes the place of an
// old one, its Connected comes after the old one's last Reported, and there is
// no Disconnected between.
//
// Nothing is sent on a stream before its Connected has returned, and what was
// assigned to an earlier stream of that id is forgotten. A specifier built for
// another binary is therefore never sent, provided that the Sink has taken note
// of the checker when Connected returns.
//
// The latest specifier wins; it is sent when it differs from the last one sent
// on that stream. A cluster that disappears is sent once more without
// endpoints, and dropped a report interval later: some Envoys crash when a
// cluster goes away while a probe of it is being connected.
//
// Of two streams with one node id, the one that is heard stays. Another waits
// until the stream ends, or nothing was heard on it for three intervals, and then
// takes its place; it is refused when the stream is heard an interval after it
// came. So it waits for less than four intervals, but where hdsd itself is held up
// and does not read the first. Neither address nor certificate
// counts. While it waits, and when it is refused, the Sink hears nothing of it.
//
// A node that fetches is the same checker as on a stream, and the same holds of
// it, but that a fetch is refused at once. It is connected until three intervals
// after its last fetch. Fetches are of one checker where node, abilities and
// certificate are the same or, without a certificate, the address; two such nodes
// with all of this in common cannot be told apart. A fetched report counts only
// where it is of the same certificate, or address, as that node's fetches.
//
// A v2 checker is sent what v2 can say; a cluster that v2 would read otherwise,
// or not whole, is left out, counted and logged.
//
// There is no acknowledgement in the protocol: a specifier is SYNCED when a
// report lists exactly its endpoints in its order, by cluster, locality and
// address. Until then a report may follow an earlier specifier; only endpoints
// of the current one give votes. A checker that within three intervals of its
// first specifier with something in it reports nothing of that is called silent
// until it does; heartbeats do not count. A report equal to the one before, byte
// for byte, is not decoded.
//
// No input of a peer panics, and every wait on a peer has an end: the first
// message, a fetch's body, each write, and, by keepalive, its life.
//
// # Goroutines
//
// A stream has the handler's goroutine, which waits for the reason to end it,
// one that receives and calls the Sink, and from Connected on one that sends.
// All end with the stream. Each node that fetches has one, which answers it,
// calls the Sink and ends when the node is given up. Server.Close ends the
// streams and the fetches, and waits for them.
//
// It may import health, hds/specifier, rest, wire, protos, grpc, net/http, and the
// metrics and log libraries. The grpc.Server must use wire's codec;
// ServerOptions has it.
package hds
