package hds

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"hdsd/envoy/specifier"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	"google.golang.org/protobuf/proto"
)

// maxNode is the largest node, without extensions, that is kept whole.
const maxNode = 64 << 10

// keptNode changes a checker's node to the part that hdsd keeps: all but the extensions, of
// which Envoy lists hundreds. Of a large node it keeps the id.
func keptNode(n *corev3.Node) *corev3.Node {
	n.Extensions = nil
	if proto.Size(n) <= maxNode {
		return n
	}
	return &corev3.Node{Id: n.GetId()}
}

// sentMessage is the last message of a session. It does not change once made.
type sentMessage struct {
	spec    *specifier.Specifier
	emptied []*healthv3.ClusterHealthCheck // clusters to be dropped soon
	digest  [sha256.Size]byte              // of the encoded message
	time    time.Time
}

func (s *sentMessage) encode() ([]byte, error) { return s.spec.Encode(s.emptied...) }

func (s *sentMessage) message() *healthv3.HealthCheckSpecifier {
	m := s.spec.Message()
	m.ClusterHealthChecks = append(m.ClusterHealthChecks, s.emptied...)
	return m
}

// versionBytes is the number of bytes of a message's digest in its version.
const versionBytes = 8

// Client is a connected checker and its specifier. It must not be changed.
type Client struct {
	// Node is that of the first message, without extensions. A very large one has only its id.
	Node  *corev3.Node
	State State
	// Specifier encodes the last one sent; nil if none was. It may also list clusters without
	// endpoints, which are dropped soon.
	Specifier func() ([]byte, error)
	Version   string // of the specifier, a hash of its content
	Sent      time.Time
}

// Clients returns the connected checkers, by id.
func (s *Server) Clients() []Client {
	s.mu.Lock()
	sessions := make([]*session, 0, len(s.sessions))
	for _, session := range s.sessions {
		if !session.ending {
			sessions = append(sessions, session)
		}
	}
	s.mu.Unlock()
	clients := make([]Client, len(sessions))
	for i, session := range sessions {
		last := session.progress.sent.Load() // first: a state that is ahead of it claims nothing
		clients[i] = Client{Node: session.node, State: session.state()}
		if last != nil {
			clients[i].Specifier, clients[i].Sent = last.encode, last.time.UTC()
			clients[i].Version = hex.EncodeToString(last.digest[:versionBytes])
		}
	}
	slices.SortFunc(clients, func(a, b Client) int { return cmp.Compare(a.Node.GetId(), b.Node.GetId()) })
	return clients
}
