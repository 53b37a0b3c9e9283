// Package eds is the xDS server for data planes. It serves Clusters and
// ClusterLoadAssignments with health in them: state of the world and delta, over
// the aggregated service and over the services of the two types. It also answers
// fetches, over gRPC and REST.
//
// # Structure
//
//   - A publication holds what is published. Each resource has a slot: one encoded
//     frame, shared by every stream that sends it, and the watches of those who
//     subscribe to it. The version of a frame is a hash of its content. A ledger
//     knows which assignments an endpoint is in.
//   - A subscription is one type on one stream. It has an interest (names, or
//     everything), a queue of watches whose resource changed, a delivery (the
//     outstanding response, ACK and NACK) and a heartbeat. Nothing else is queued:
//     a slow client gets the latest version and costs no more than a fast one.
//   - A group is a set of subscriptions whose first requests name the same assignments, byte for
//     byte. Envoys with one configuration send such requests. The members share the names, the
//     first pages (encoded responses), and the versions in these pages, or those that they have
//     from an earlier stream. A member has a watch of its own only for resources that have changed
//     since, for those that it refuses, requests again or gives up, and for names that it requests
//     later. It stays in the group until its stream ends.
//   - A fetcher answers fetches with the latest resources, whichever client asks.
//     eds/poll remembers the versions it gave, only to show clients.
//   - An unaskedCounter counts the assignments of checked clusters that data planes took and do
//     not ask for.
//
// # Guarantees
//
// What is published:
//   - In an assignment, hdsd sets the health_status of endpoints that a verdict
//     decides. Everything else, unknown fields included, is as the source gave it, but for
//     what gRPC's clients need.
//   - A version depends on the content alone. It is the same after a restart, and on
//     every replica of the same release.
//   - Update and SetHealth cost what changes and who watches it. They never wait for a
//     client.
//
// What a caller's grants do not show it (package access) does not exist for it, whether
// it asks by name or for everything. A cluster is shown by its name, an assignment by its
// own.
//
// Responses:
//   - One response of a type is outstanding on a stream. A refused resource is sent
//     again when it changes. Others are not sent with it, except that a
//     state-of-the-world Cluster response has to be whole.
//   - On an aggregated stream, changed clusters go before changed assignments.
//   - A name that does not exist is answered at once. State of the world gets an empty
//     assignment, because Envoy acknowledges no clusters while it waits for one.
//     gRPC's clients get an error (resource_errors), too.
//   - gRPC's clients get an assignment with a name for each locality, and with weights where
//     no locality has one. That costs one more frame for each assignment that they ask for.
//   - With Options.Incomplete, nothing says before Complete that a resource does not
//     exist. Unknown names wait for their answer. No response goes out that would
//     remove what it lacks. A fetch that cannot be answered so gets UNAVAILABLE (503)
//     at once.
//   - A bounded number of clients is sent first resources of a type at a time, each for
//     at most 5 s. The others wait in line, so that each sync is fast. A client that
//     has its first resources never waits.
//
// Limits and costs:
//   - A request with too many names or fields is refused before it is decoded.
//   - Of a state-of-the-world request up to 64 kB, names that are byte for byte the last
//     ones of the type are compared (by hash, or with those of the group), not decoded.
//   - Of a client's node, everything but the extensions is kept; of a node over 64 kB,
//     only the names. Of refused resources, one response's worth is kept.
//   - The names of a first request up to 64 kB are compared with those of others on the wire if
//     there are 16 or more. If they are the same, they are not decoded, and the page is made
//     once. A page in more than eight responses is copied; the copies of a type take 64 MiB at
//     most. The first change of a resource costs each member a watch, 72 bytes in all.
//   - A client that polls is shown until five minutes after its last poll. All that is
//     remembered of polls takes 64 MiB; the oldest poll goes first.
//
// Time to live:
//   - Where a type has a TTL, clients that understand it get it with each resource, and
//     three heartbeats within it. A heartbeat is for the version that the client has; a
//     resource on its way needs none.
//   - By delta a heartbeat has no body. By state of the world the resources are sent
//     again, wrapped: Envoy takes clusters without bodies for removed, and does not
//     prolong assignments by them.
//   - By state of the world, assignments have no TTL: not every Envoy lives with one.
//     Fetches have no TTL either.
//
// Zones:
//   - With Options.ZoneVariants, a locator with a zone gets the variant of that zone.
//     The answer carries constraints that the locator meets, and those of no other
//     variant: the zone and region asked for, or their absence.
//   - With Options.ZoneByLocality, a client that gives no zone gets the variant of its
//     node's, whatever way it subscribes.
//   - A variant shares its base's frame where the zone has no health of its own.
//     Variants cost only what someone watches.
//
// Aliases:
//   - With Options.Authority, xdstp://AUTHORITY/TYPE/NAME is another name of NAME, for who
//     asks for it. An alias costs only what someone watches: a frame of its own.
//   - A version under an alias is that of the base.
//
// Fetches and REST:
//   - A REST client that has the latest version gets 304.
//   - A resource is written as JSON once for all, when a client first asks for it, and
//     kept until it changes. Two fetches are worked on at a time.
//
// Unasked assignments:
//   - A client that took checked clusters, and asks for their assignments neither on a
//     stream of its node nor by polls within 30 s, is shown and logged. They are counted when
//     clients are listed, 30 s after a client took clusters, and every 30 s while some are
//     missing. A count costs a look at each cluster that clients have. Counts that no caller asks
//     for wait twenty times as long as the one before took.
//
// # Locks and goroutines
//
// Locks are taken in this order: publication, streams, table, slot (a variant's
// or an alias's before its base's), group, subscription. The admission's lock comes before a
// subscription's, and the lock of the unaskedCounter before all of these. No
// lock is held while a message is written.
//
// Each stream has two goroutines, one that receives and one that sends. They end when
// the stream's handler returns. The handler waits for an error of either, for the write
// deadline, or for Close; Close waits for all of them. A subscription with a TTL has a
// timer, which ends with the stream. The count of unasked assignments that is due has one, which
// does nothing after Close. Fetches run on their callers' goroutines. Close ends their wait for a turn and
// refuses new ones.
//
// The grpc.Server has to use wire.Codec, which lets frames go out as they are. The
// package imports access, envoy, envoy/fields, eds/poll, health, publish, gate, rest, the
// protos, grpc, zerolog and the Prometheus client.
package eds
