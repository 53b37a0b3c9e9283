// Package relay stands between data planes and their control plane. It passes on every
// type of discovery, and puts health into Clusters and ClusterLoadAssignments on their way.
//
// # Structure
//
//   - A Server owns the connections to the control plane (upstream) and the streams. Each
//     client's stream has one stream to the control plane, of the same kind.
//   - A stream passes requests up and responses down. A ledger of it, for each of the two
//     types, knows what the client has (holdings), and maps nonces and versions.
//   - The stock has each resource once, however many clients have it: its encoded form (body),
//     and the forms that it has in responses (item), with its latest health. Only clusters that
//     the catalogue uses are decoded, without their endpoints.
//   - The book has the published health. It follows hdsd's decisions as eds.Server does.
//   - The catalogue makes a source of the stock, so that hdsd checks what clients have.
//
// # Guarantees
//
// What passes:
//
//   - Of other types, every byte passes unchanged, in both directions.
//   - Of a Cluster or an assignment, only what package publish changes differs. A response
//     in which nothing differs passes unchanged, with its version and nonce.
//   - A version with a mark (package message) stands for a changed resource. The control
//     plane gets its own version back.
//   - The control plane gets the client's answers to its responses. A flip is a response of
//     hdsd's own: it goes out once the client has answered all others, and hdsd takes the answer.
//   - Only the control plane renews the lease of an assignment (policy.endpoint_stale_after), and
//     the time to live of a resource. hdsd's own responses have the rest of both, and end with it.
//   - An assignment goes out again if hdsd alone has changed its cluster, on the same stream: an
//     Envoy waits for it before it uses the cluster. If the control plane has changed the
//     cluster, it sends the assignment itself: an old one may not fit.
//
// What clients have:
//
//   - An answer is about a whole response, and clients take the good resources of a response that
//     they refuse. hdsd keeps, and checks, all that a client may have (doubts). A flip has the newest
//     version, alone in its response, so that the answer says whether the client has it. If not,
//     the client gets the health of the version before. A delta client that refuses a cluster with
//     another check among other resources gets it again, alone.
//   - By state of the world, a response of clusters has every name of the control plane's last one,
//     and only the newest version of each. The resources of an earlier stream count as well, until
//     the client accepts a response.
//   - A removal that a delta client refuses goes out once more. By state of the world, hdsd checks
//     the resource until the client accepts a response without it.
//   - hdsd does not keep a resource that the client gives up, not even if it is on its way. Of a
//     delta client that subscribes to more than maxNamed names, or by patterns, hdsd keeps it.
//   - hdsd remembers the resources of a node for Keep after its stream has ended (memory). It checks
//     them, recognizes the versions that the node brings back, and serves them to the node while the
//     control plane cannot be reached (outage). Of a node with several streams, it remembers all
//     resources, and serves each stream the names that it asks for.
//   - A removal without an answer may not have reached the client: hdsd remembers the resource. With
//     the answer, it forgets the resource, and the assignments that only removed clusters of the node
//     used.
//   - A data plane may come back while hdsd takes its old stream for alive. By delta, hdsd recognizes
//     the versions of that stream, too.
//   - The versions that a client says it has, and that hdsd does not know, are limited (claims).
//     Beyond the limit, the client gets them again.
//
// What hdsd checks:
//
//   - Health checks stay in a cluster until hdsd has taken it over. An EDS cluster without known
//     endpoints loses them if hdsd would check it, and has taken it over before. So no client checks
//     it again after a restart. If no endpoints come within promiseTimeout, it gets them back. A
//     cluster always keeps them if its endpoints come from another server: hdsd does not see these.
//
// Time and memory:
//
//   - A response waits, up to LearnTimeout, until hdsd's core knows its resources, if that may
//     change it: so stored health is in the first one. It also waits for a few new resources
//     (await).
//   - hdsd queues one message each way. A peer that does not read keeps the other side
//     waiting. After WriteTimeout without progress the stream ends (writer).
//   - A large response waits in the control plane until there is room for it (answers). It keeps
//     the room until hdsd has written it. Clients that get the same resources share one encoded
//     copy and its room. A stream that has room waits for no stream that asks for room. A response
//     that is larger than all the room passes alone. A stream that keeps room for longestHold
//     while others wait ends.
//
// Unlike package eds, the relay leaves to the control plane: names that do not exist, the order of the
// types, when all resources are known, forms for gRPC's clients, zones and aliases.
//
// # Locks and goroutines
//
// A goroutine takes its turn (turns) before any lock. Locks are taken in this order: stream, memory's
// panelMu, nodes, node, body, book, memory, stock; catalogue's last. Nobody holds the locks of two
// streams. The locks of the server, the changes and the outage are held alone. Nobody writes a message
// with a lock held.
//
// Each stream has three goroutines: one for requests, one that receives from the control
// plane, and one that sends to the client. A fourth one writes NACKs while some wait (nacks). They end
// when the stream's handler returns, and Close waits for them. The catalogue runs on the goroutine of
// the feed.
package relay
