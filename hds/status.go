package hds

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"hdsd/hds/specifier"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/protobuf/proto"
)

// maxNode is the largest node, without extensions, that is kept whole.
const maxNode = 64 << 10

// keptNode gives what hdsd keeps of a checker's node, which it changes: all but the
// extensions, of which Envoy lists hundreds. Of a large node it keeps the id.
func keptNode(n *corev3.Node) *corev3.Node {
	n.Extensions = nil
	if proto.Size(n) <= maxNode {
		return n
	}
	return &corev3.Node{Id: n.GetId()}
}

// sent is the last message of a session. It does not change once made.
type sent struct {
	of      *specifier.Specifier
	emptied []*healthv3.ClusterHealthCheck // clusters that are about to be dropped
	digest  [sha256.Size]byte              // of the encoded message
	at      time.Time
}

func (s *sent) encode() ([]byte, error) { return s.of.Encode(s.emptied...) }

func (s *sent) message() *healthv3.HealthCheckSpecifier {
	m := s.of.Message()
	m.ClusterHealthChecks = append(m.ClusterHealthChecks, s.emptied...)
	return m
}

// versionBytes is how much of a message's digest makes its version.
const versionBytes = 8

// Client is a connected checker and the specifier it has. It must not be changed.
type Client struct {
	// Node is that of the first message, without extensions. A very large one has
	// only its id.
	Node  *corev3.Node
	State State
	// Specifier encodes the last one sent; nil if none was. It may also list clusters
	// without endpoints, which are about to be dropped.
	Specifier func() ([]byte, error)
	Version   string // of the specifier, a hash of its content
	Sent      time.Time
}

// Clients gives the connected checkers, by id.
func (s *Server) Clients() []Client {
	s.mu.Lock()
	sessions := make([]*session, 0, len(s.sessions))
	for _, one := range s.sessions {
		if !one.ending {
			sessions = append(sessions, one)
		}
	}
	s.mu.Unlock()
	all := make([]Client, len(sessions))
	for i, one := range sessions {
		last := one.progress.sent.Load() // first: a state that is ahead of it claims nothing
		all[i] = Client{Node: one.node, State: one.state()}
		if last != nil {
			all[i].Specifier, all[i].Sent = last.encode, last.at.UTC()
			all[i].Version = hex.EncodeToString(last.digest[:versionBytes])
		}
	}
	slices.SortFunc(all, func(a, b Client) int { return cmp.Compare(a.Node.GetId(), b.Node.GetId()) })
	return all
}
