package relay

import (
	"hash/maphash"
	"slices"
	"strings"

	"hdsd/relay/message"
)

// maxNamed limits the names that hdsd keeps of the subscriptions of a delta client. With more, the client
// counts as subscribed to all that it gets.
const maxNamed = 1 << 15

// subscriptions are the names that a delta client has subscribed to.
type subscriptions struct {
	hashes    map[uint32]struct{} // half of a hash for each name: by a collision, a client misleads only itself
	unbounded bool                // the client may have subscribed to any name
}

func shortHash(name string) uint32 { return uint32(maphash.String(seed, name)) }

// add adds the names that a request subscribes to.
func (n *subscriptions) add(r *message.Request) {
	if n.hashes == nil {
		n.hashes = make(map[uint32]struct{}, min(len(r.Names), maxNamed))
	}
	n.unbounded = n.unbounded || r.Locators
	for _, name := range r.Names {
		n.unbounded = n.unbounded || strings.HasPrefix(name, "xdstp:") && (strings.HasSuffix(name, "/*") || strings.Contains(name, "?"))
		if n.unbounded = n.unbounded || len(n.hashes) == maxNamed; n.unbounded {
			n.hashes = nil
			return
		}
		if name != "*" {
			n.hashes[shortHash(name)] = struct{}{}
		}
	}
}

// wants reports whether the client is subscribed to a resource. A delta client drops a resource that
// crosses its unsubscription, and hdsd would keep it for ever. By state of the world, the next request has
// all names.
func (l *ledger) wants(x *body) bool {
	if !l.key.delta || !l.requested || l.scope.wildcard || l.subscriptions.unbounded {
		return true
	}
	_, named := l.subscriptions.hashes[uint32(x.hash)]
	return named
}

// unsubscribe forgets the resources that a delta client gives up. The control plane removes those that a
// wildcard still asks for.
func (l *ledger) unsubscribe(names []string) {
	for _, name := range names {
		delete(l.subscriptions.hashes, shortHash(name))
		if !l.scope.wildcard {
			l.forget(name)
			l.claims.settle(name, "")
		}
	}
	if !slices.Contains(names, "*") || l.scope.wildcard {
		return
	}
	var unwanted []string
	for s := range l.holdings.all() {
		if !l.wants(s.item.body) {
			unwanted = append(unwanted, s.name())
		}
	}
	for _, name := range unwanted {
		l.forget(name)
	}
}
