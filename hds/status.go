package hds

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/protobuf/proto"
)

// maxNode is the size up to which a checker's node is kept as it is,
// extensions apart.
const maxNode = 64 << 10

// keptNode gives what is kept of a checker's node, which must not be used any
// more: all but its extensions, of which Envoy lists hundreds; of one that is
// large all the same, its id.
func keptNode(n *corev3.Node) *corev3.Node {
	n.Extensions = nil
	if proto.Size(n) <= maxNode {
		return n
	}
	return &corev3.Node{Id: n.GetId()}
}

// told is the last message sent on a stream.
type told struct {
	message *healthv3.HealthCheckSpecifier
	digest  [sha256.Size]byte
	at      time.Time
}

// versionBytes is how much of a message's digest makes its version.
const versionBytes = 8

// Client is a connected checker and the specifier it has. Nothing in it may be
// changed.
type Client struct {
	// Node is what the checker said first, without its extensions; of a very
	// large one only the id is kept.
	Node  *corev3.Node
	State State
	// Specifier is the last one sent; nil where none was. Beside what is to be
	// checked it may list clusters without endpoints, which are about to go.
	Specifier *healthv3.HealthCheckSpecifier
	Version   string // of the specifier, a hash of its content
	Sent      time.Time
}

// Clients gives the connected checkers, by id.
func (s *Server) Clients() []Client {
	s.mu.Lock()
	streams := make([]*stream, 0, len(s.streams))
	for _, st := range s.streams {
		if !st.ending {
			streams = append(streams, st)
		}
	}
	s.mu.Unlock()
	all := make([]Client, len(streams))
	for i, st := range streams {
		last := st.told.Load() // first: a state that is ahead of it claims nothing
		all[i] = Client{Node: st.node, State: st.state()}
		if last != nil {
			all[i].Specifier, all[i].Sent = last.message, last.at.UTC()
			all[i].Version = hex.EncodeToString(last.digest[:versionBytes])
		}
	}
	slices.SortFunc(all, func(a, b Client) int { return cmp.Compare(a.Node.GetId(), b.Node.GetId()) })
	return all
}
