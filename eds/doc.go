// Package eds serves Clusters and ClusterLoadAssignments to data planes, with
// health in them: state of the world and delta, over the aggregated service
// and over the services of the two types, and by fetches, over gRPC and REST.
//
// It owns the xDS server and the encoding of what it serves. Each resource
// lives in a slot: one encoded frame, shared by every stream that sends it, a
// version that is a hash of its content, and the subscriptions that watch it.
// A subscription (one type on one stream) keeps what each resource was last
// sent as, and which of its resources changed since; nothing is queued but
// that, so a slow client gets the latest and costs no more than a fast one. A
// fetch subscribes to nothing: it is answered with what there is, whoever asks; which
// versions that were is remembered for those who show clients, and for nothing else.
//
// Guarantees:
//   - Of an assignment only the health_status of endpoints that a verdict
//     decides is hdsd's; everything else, unknown fields included, is as the
//     source gave it.
//   - The version depends on the content alone: the same after a restart and
//     on every replica of the same release.
//   - Update and SetHealth cost what changed and who watches that, and never
//     wait for a client.
//   - One response of a type is outstanding on a stream; a refused one is sent
//     again only when one of its resources changes, and then only that one
//     (a state-of-the-world Cluster response has to be whole).
//   - A request with more names or parts than may be is refused before it is decoded.
//   - Of a client's node everything but the extensions is kept (of one larger
//     than 64 kB, the names), and of what it refused one response's worth.
//   - Who polls is a client until five minutes after its last poll. All that is
//     remembered of polls takes 64 MiB; what was polled longest ago goes first.
//   - On an aggregated stream, clusters go before assignments where both
//     changed.
//   - A name that does not exist is answered at once, by state of the world with
//     an empty assignment: Envoy acknowledges no clusters while it waits for one.
//   - With Options.Incomplete nobody is told before Complete that something does
//     not exist: names that are not known are not answered, and no response goes
//     out that would remove what is missing in it (one of clusters by state of
//     the world, an empty one of everything). Fetches that cannot be answered
//     without it get UNAVAILABLE (503) at once: who polls comes again.
//   - Where a type has a ttl, clients that heed it get each resource with it, and
//     heartbeats three times as often for what they have: what they refused, the
//     version before it; of what is on its way, nothing. By delta a heartbeat has
//     no body; by state of the world the resources are sent again, wrapped, since
//     Envoy takes clusters without bodies for removed and does not prolong
//     assignments by them. Envoy dies when an assignment expires that it has by
//     state of the world: it is sent none with a ttl. Fetches have no ttl.
//   - With Options.ZoneVariants, who subscribes by a locator gets the variant of
//     the zone in it, or the one that most clients get, under constraints that
//     the locator meets, and those of no other variant: zone and region are those
//     asked for, or none is given. With Options.ZoneByLocality, who gives none gets
//     the variant of its node's, by whatever subscription. Variants share the
//     base's frame where a zone has nothing of its own; they cost only what someone
//     watches.
//   - A client that took checked clusters and has not asked for their assignments in
//     half a minute, on any stream of its node or by polls, is shown and logged. That
//     costs what it took and did not ask for on the same stream.
//   - What clients named and is not there is told in resource_errors, too, to
//     those that heed them.
//   - A bounded number of clients is sent first resources of a type at once, each
//     for 5 s at most; the others wait in line, so that one sync is fast. Who has
//     its first resources never waits.
//   - A fetch that shows by its version to have what there is gets 304 by REST.
//     A resource is written as JSON once for all who poll, when the first of
//     them asks, and kept until it changes. Two fetches are worked on at a time.
//
// Locks are taken in the order owner, table, slot (a variant's before its base's),
// subscription; the admission's before a subscription's, and that of who looks for
// what is owed; the debtors' after a subscription's; that of who polls is taken alone. None is held while a message is written.
//
// Goroutines: two for each stream, one that receives and one that sends, both
// ended by the return of the stream's handler, which waits beside them for
// either's error, for the write deadline, or for Close; Close waits for all. A
// subscription that heeds ttl has one timer, and one of clusters that was ever
// owed an assignment has another; they end with its stream.
// Fetches run on their callers' goroutines; Close ends the wait of those whose
// turn has not come, and refuses new ones.
//
// The grpc.Server has to use wire.Codec, which lets frames go out as they are.
// The package imports health, rest, wire, the protos, grpc, zerolog and the
// Prometheus client.
package eds
