package relay

import (
	"hash/maphash"
	"slices"
	"strings"

	"hdsd/relay/message"
)

// maxNamed is how many names of a delta client are known apart. Of one that asks for more, hdsd keeps
// what it is sent.
const maxNamed = 1 << 15

// names are what a delta client asks for by name.
type names struct {
	hashes map[uint32]struct{} // half of a hash each: a client can mislead only itself
	loose  bool                // it may ask for others, too: resources may have other names than it asks for
}

func shortHash(name string) uint32 { return uint32(maphash.String(seed, name)) }

// add notes what a request asks for.
func (n *names) add(r *message.Request) {
	if n.hashes == nil {
		n.hashes = make(map[uint32]struct{}, min(len(r.Names), maxNamed))
	}
	n.loose = n.loose || r.Locators
	for _, name := range r.Names {
		n.loose = n.loose || strings.HasPrefix(name, "xdstp:") && (strings.HasSuffix(name, "/*") || strings.Contains(name, "?"))
		if n.loose = n.loose || len(n.hashes) == maxNamed; n.loose {
			n.hashes = nil
			return
		}
		if name != "*" {
			n.hashes[shortHash(name)] = struct{}{}
		}
	}
}

// wants reports whether the client asks for a resource. By delta it may be on its way when the
// client gives it up: the client drops it then, and nothing would end that hdsd keeps it. By state
// of the world, the next request tells.
func (l *ledger) wants(x *body) bool {
	if !l.key.delta || !l.begun || l.asks.wildcard || l.named.loose {
		return true
	}
	_, named := l.named.hashes[uint32(x.hash)]
	return named
}

// unsubscribe notes what a delta client gives up. Of what it asks for by a wildcard, too, the
// control plane says what becomes.
func (l *ledger) unsubscribe(given []string) {
	for _, name := range given {
		delete(l.named.hashes, shortHash(name))
		if !l.asks.wildcard {
			l.forget(name)
			l.claims.settle(name, "")
		}
	}
	if !slices.Contains(given, "*") || l.asks.wildcard {
		return
	}
	var left []string
	for s := range l.held.all() {
		if !l.wants(s.item.body) {
			left = append(left, s.name())
		}
	}
	for _, name := range left {
		l.forget(name)
	}
}
