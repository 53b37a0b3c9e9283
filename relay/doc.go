// Package relay stands between data planes and their control plane. It passes on every
// type of discovery, and puts health into Clusters and ClusterLoadAssignments on their way.
//
// # Structure
//
//   - A Server owns the connections to the control plane (upstream) and the streams. Each
//     client's stream has one stream to the control plane, of the same kind.
//   - A stream passes requests up and responses down. A ledger of it, for each of the two
//     types, knows what the client has (holdings), and maps nonces and versions.
//   - The stock has each resource once, however many clients have it: what it says (body),
//     and how it stands in responses (item), with its latest health. Both are encoded; only
//     clusters that the catalogue uses are decoded, without their endpoints.
//   - The book has the health to publish. It follows hdsd's decisions as eds.Server does.
//   - The catalogue makes a source of the stock, so that hdsd checks what clients have.
//
// # Guarantees
//
//   - Of other types, every byte passes as it came, in both directions.
//   - Of a Cluster or an assignment, only what package publish changes differs. A response
//     in which nothing differs passes as it came, with its version and nonce.
//   - A version with a mark (package message) stands for a changed resource. The control
//     plane gets its own version back.
//   - The client's answer to what the control plane sends goes to the control plane. A flip
//     is hdsd's own: it is sent once the client has answered all else, and hdsd takes the
//     answer.
//   - Only the control plane renews the lease of an assignment (policy.endpoint_stale_after), and
//     the time to live of a resource. hdsd's own responses have what is left, and end with it.
//   - An answer is about a whole response, and clients take the good resources of one that they
//     refuse. hdsd keeps, and checks, all that a client may have (doubts). A flip has the newest
//     of it, alone in its response, so that the answer says whether the client has it. If not,
//     the client gets the health of the version before. A cluster with another check that is refused
//     among others goes out again, alone. By state of the world, a Cluster
//     response has to be whole: it has every name of the control plane's last one, and only
//     the newest of each.
//     By state of the world, what it had by an earlier stream counts as well until it accepts something.
//   - What a refused response removed by delta is removed once more. By state of the world, it is
//     checked until the client accepts a response without it.
//   - What a client gives up is not kept, not even if it is on its way to the client. Of a delta
//     client that asks for more than maxNamed names, or by patterns, hdsd keeps what crosses.
//   - An assignment is sent again if hdsd alone has changed its cluster, on the same stream: an
//     Envoy waits for it before it uses the cluster. If the control plane has changed the
//     cluster, it sends the assignment itself: an old one may not fit.
//   - A response waits, up to LearnTimeout, until hdsd's core knows what may change it: so
//     stored health is in the first one. For what is only new, it waits if that is little
//     (await).
//   - Health checks stay in a cluster until hdsd has taken it over. An EDS cluster whose
//     endpoints are not known yet has them removed if it was taken over before, and hdsd
//     would check it. So a restart makes no client take it twice. If no endpoints come within
//     promiseTimeout, they are put back. They always stay in a cluster whose endpoints do not
//     come from where it comes from itself: hdsd does not see these.
//   - What a node had is remembered for Keep after its stream has ended (memory). It is
//     checked, it answers the versions that the node brings back, and the node is served
//     it while the control plane cannot be reached (outage). Of a node with several streams,
//     what all had is remembered, and each is served the names that it asks for.
//   - What the control plane removes is forgotten with its answer, and the assignments that
//     only removed clusters of the node used go with them.
//   - Nothing is queued but one message each way. Who does not read keeps the other side
//     waiting. After WriteTimeout without progress the stream ends (writer).
//   - A large response waits in the control plane until there is room for it (answers). It keeps
//     the room until hdsd has written it. Clients that get the same resources share one encoded
//     copy and its room. A stream that has room waits for no stream that asks for room. A response
//     that is larger than all the room passes alone. A stream that keeps room for longestHold
//     while others wait ends.
//   - What a client says it has, and hdsd does not know, is bounded (claims). Beyond the
//     bound it is sent again.
//
// Of what package eds guarantees, these are left to the control plane, since only health changes
// here: what is said of names that do not exist, the order of the types, when all resources are
// known, forms for gRPC's clients, zones and aliases.
//
// # Locks and goroutines
//
// A turn (turns) is taken before any lock. Locks are taken in this order: stream, memory's
// settling, nodes, node, body, book, memory, stock; catalogue's last. The server's, the
// changes' and the outage's are held alone. No lock is held while a message is written.
//
// Each stream has three goroutines: one for requests, one that receives from the control
// plane, and one that sends to the client. One more writes NACKs while some wait (nacks). They end when the stream's handler returns, and
// Close waits for them. The catalogue runs on the goroutine of the feed.
package relay
