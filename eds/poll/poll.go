package poll

import (
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// How clients poll.
const (
	ByREST  = "REST"
	ByFetch = "FETCH" // a unary call of gRPC
)

// List identifies the names of one type that a client polls.
type List struct {
	TypeURL string
	All     bool // every resource of the type
	names   uint64
}

// ListOf returns the list of these names, sorted; no names mean all resources.
func ListOf(typeURL string, names []string) List {
	return List{TypeURL: typeURL, All: len(names) == 0, names: Hash(names)}
}

// Hash distinguishes lists of names.
func Hash(names []string) uint64 {
	var digest xxhash.Digest
	digest.Reset()
	for _, name := range names {
		digest.WriteString(name)
		digest.Write([]byte{0xff}) // in no valid UTF-8
	}
	return digest.Sum64()
}

// Key identifies a poll: a client, and a list of names.
type Key struct {
	Client
	List
}

// Client identifies a client that polls.
type Client struct {
	ID       string // its node id
	Protocol string // ByREST or ByFetch
}

// Fetch is one request of a client that polls, and the answer to it.
type Fetch struct {
	Key
	Node    *corev3.Node // as the tracker keeps it
	Choice  string       // the variant of names without a locator
	Held    string       // the version that the client claims to have
	Refusal *Nack        // nil without a refusal
	Version string       // of the answer

	// Contents returns the sorted keys of the answer and the version of each resource, 0 for
	// none. It is called for new answers only.
	Contents func() (keys []string, versions []uint64)
}

// Nack is a client's refusal of an answer.
type Nack struct {
	Text  string
	Nonce string // the version of the answer; empty: the latest
}

// State is a client's reaction to its latest answer.
type State uint8

// The states of a poll.
const (
	Outstanding State = iota // the client has not fetched since
	Accepted
	Refused
)

// Poll is one list of names that a client fetches again and again.
type Poll struct {
	Key
	Node      *corev3.Node // of the client's latest fetch
	Connected time.Time    // time of the client's first fetch
	Choice    string
	Time      time.Time // of the latest fetch
	Held      string    // the version that the client claims to have
	State     State

	Served     *Answer   // the latest
	Sent       time.Time // time of Served; zero if the client had it before
	Accepted   *Answer   // the answer that the client claims to have; nil: none that is known
	AcceptTime time.Time // of Accepted
	LastAck    time.Time
	LastError  string
	Refusal    *Refusal // the latest, until the client accepts an answer
}

// Refusal is an answer that a client refused.
type Refusal struct {
	Answer *Answer
	Text   string
	Time   time.Time
}

// Answer is the answer to a fetch, without the resources themselves. It must not be changed.
type Answer struct {
	List     List
	Version  string
	Keys     []string // the requested keys, sorted; for everything, all keys
	Versions []uint64 // of each; 0: it does not exist
	refs     int      // guarded by the tracker
}

// VersionOf returns the version of a resource, 0 if it does not exist, and whether the answer covers
// it.
func (a *Answer) VersionOf(key string) (version uint64, covered bool) {
	if a == nil {
		return 0, false
	}
	i, covered := slices.BinarySearch(a.Keys, key)
	if covered {
		version = a.Versions[i]
	}
	return version, covered
}

// cost estimates the bytes of an answer.
func (a *Answer) cost() int {
	bytes := overhead + 24*len(a.Keys)
	for _, key := range a.Keys {
		bytes += len(key)
	}
	return bytes
}
