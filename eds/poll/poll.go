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

// ListOf returns the list of these names, sorted; none means everything.
func ListOf(typeURL string, names []string) List {
	return List{TypeURL: typeURL, All: len(names) == 0, names: Hash(names)}
}

// Hash tells lists of names apart.
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
	ID string // its node id
	By string // ByREST or ByFetch
}

// Fetch is one request of a client that polls, and the answer to it.
type Fetch struct {
	Key
	Node    *corev3.Node // as the tracker keeps it
	Choice  string       // the variant of names without a locator
	Held    string       // the version that the client says it has
	Refusal *Nack        // nil where the client refuses nothing
	Version string       // of the answer

	// Contents returns the sorted keys of the answer and the version of each
	// resource, 0 where there is none. It is called if the answer is a new one.
	Contents func() (keys []string, versions []uint64)
}

// Nack is what a client says of an answer that it refuses.
type Nack struct {
	Text  string
	Nonce string // the version of the answer; empty: the latest
}

// State says how a client took what it was last given.
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
	Connected time.Time    // when the client fetched first
	Choice    string
	Time      time.Time // of the latest fetch
	Held      string    // the version that the client says it has
	State     State

	Given     *Answer   // the latest
	Sent      time.Time // when it was given; zero where the client had it before
	Accepted  *Answer   // what the client says it has; nil: nothing that is known
	LastAck   time.Time
	LastError string
	Refusal   *Refusal // the latest, until the client accepts an answer
	Unasked   int      // set by SetUnasked
}

// Refusal is an answer that a client refused.
type Refusal struct {
	Answer *Answer
	Text   string
	Time   time.Time
}

// Answer is what a client was given, without the resources themselves. It must not
// be changed.
type Answer struct {
	List     List
	Version  string
	Keys     []string // sorted: the keys that were asked for; of everything, what there was
	Versions []uint64 // of each; 0: there is none
	refs     int      // guarded by the tracker
}

// Of returns the version of a resource, 0 where there is none, and whether the answer
// is about it.
func (a *Answer) Of(key string) (version uint64, about bool) {
	if a == nil {
		return 0, false
	}
	i, about := slices.BinarySearch(a.Keys, key)
	if about {
		version = a.Versions[i]
	}
	return version, about
}

// cost is about how many bytes an answer takes.
func (a *Answer) cost() int {
	bytes := overhead + 24*len(a.Keys)
	for _, key := range a.Keys {
		bytes += len(key)
	}
	return bytes
}
