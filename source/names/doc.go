// Package names resolves the DNS names in clusters of the types STRICT_DNS, LOGICAL_DNS and
// DnsCluster, as an Envoy would, and makes EDS clusters of them.
//
// # What it owns
//
// A Rewriter translates the sets of one source. It leaves each cluster alone that has no
// name to resolve, and puts addresses in the place of the names in the others. A Resolver
// knows the addresses: it asks DNS servers, again and again. It keeps the last good answer,
// in a file too.
//
// # What it guarantees
//
//   - A name that cannot be resolved keeps its last addresses. Only when DNS has said for
//     five minutes that a name has none are those of a STRICT_DNS cluster taken away that
//     are not healthy.
//   - An address that an answer lacks stays while it is healthy (Options.Standings), but in
//     LOGICAL_DNS and where the cluster says otherwise. A name has a bounded number of them.
//   - A cluster is in no set until each of its names has an answer or has failed once, or
//     the wait for that is over. A changed cluster keeps its last version until then.
//   - A cluster keeps its pointer while it and its addresses do not change, and a set, too.
//     The order of the addresses in an answer is no change.
//   - Names, addresses of a name, and queries on their way are bounded.
//
// # How it is built
//
// The book is what is known of each name, and when to ask again. It is pure, and so are the
// Rewriter and combine, which makes one answer of those for A and AAAA. Resolver.mu guards
// the book. Run's goroutine decides what to ask, hands on changes and writes the file; each
// lookup has a goroutine, and all have ended when Run returns. The client asks: the hosts
// file first, then DNS over UDP, and over TCP what does not fit.
//
// Of this module it may import source.
package names
