package api

import (
	"context"
	"errors"
	"time"

	"hdsd/health"
)

// Errors that a Backend answers and callers see as their gRPC codes.
var (
	// ErrUnknownCluster says that a cluster of that name was never known.
	ErrUnknownCluster = errors.New("unknown cluster")

	// ErrBadToken says that a page token is not one that was given out for
	// this question.
	ErrBadToken = errors.New("page_token is not one given out for this question: repeat the first request without it")

	// ErrTooOld says that the history does not reach back to a resume token.
	ErrTooOld = errors.New("the history no longer reaches back to the resume token: watch again without it")
)

// Backend knows the answers.
type Backend interface {
	// Endpoints gives up to query.Limit endpoints after query.After, ordered
	// by cluster, locality and address, and whether there are more.
	Endpoints(ctx context.Context, query EndpointQuery) ([]EndpointHealth, bool, error)

	// Transitions gives a page of committed history and the token of the next.
	Transitions(ctx context.Context, query TransitionQuery) ([]health.Transition, string, error)

	// Availability gives how long up to query.Limit endpoints after query.After
	// were what, ordered as Endpoints, and whether there are more. Times that
	// are zero are by default the beginning of the history and now.
	Availability(ctx context.Context, query AvailabilityQuery) (AvailabilityPage, error)

	// Clusters gives up to limit clusters after the name, by name, and whether
	// there are more.
	Clusters(ctx context.Context, after string, limit int) ([]Cluster, bool, error)

	// Checkers gives all checkers, by id.
	Checkers(ctx context.Context) ([]Checker, error)

	// Clients gives all clients, each with one type once.
	Clients(ctx context.Context) ([]Client, error)

	// Watch begins to watch, or goes on behind a token.
	Watch(ctx context.Context, query WatchQuery) (Watcher, error)
}

// EndpointQuery narrows a list of endpoints; zero fields do not.
type EndpointQuery struct {
	Cluster string
	Address string
	Health  *health.Status
	AsOf    time.Time // what was held then; zero: what is now
	After   *health.Endpoint
	Limit   int
}

// EndpointHealth is an endpoint and what is held to be true of it.
type EndpointHealth struct {
	Endpoint  health.Endpoint
	Verdict   health.Verdict
	Published *Published      // nil where subscribers are told the verdict, or nothing
	Override  *Override       // that is the verdict; nil where the votes decide
	Voted     *health.Verdict // what these come to under it; nil without one
}

// Published is what subscribers are told of an endpoint in place of its
// verdict, and why.
type Published struct {
	Status health.Status
	Reason string
}

// TransitionQuery narrows a list of transitions; zero fields do not.
type TransitionQuery struct {
	Cluster     string
	Address     string
	Start, End  time.Time
	NewestFirst bool
	Limit       int
	Token       string
}

// Cluster is one cluster of the sources.
type Cluster struct {
	Name, Source                           string
	Checked                                bool
	Mode                                   Mode
	Endpoints, Healthy, Unhealthy, Unknown int
	Overridden                             int // endpoints under an override
	Quarantined                            []Quarantined
	NoEndpointsReason                      string // empty where there are some
}

// Mode is what becomes of a cluster's verdicts.
type Mode uint8

// Modes.
const (
	Publish Mode = iota
	Shadow
	Frozen
)

// Quarantined is something that is not checked; the whole cluster where the
// address is empty.
type Quarantined struct{ Address, Reason string }

// Checker is a checker as the coordinator sees it.
type Checker struct {
	health.Checker
	Connected         bool
	AssignedEndpoints int
	Specifier         string // NOT_SENT, SENT or SYNCED
	LastReport        time.Time
	Trusted           bool
	DistrustReason    string
	StrangeReports    uint64
	Operator          *Trust // nil where nothing is said
	CutPaths          []CutPath
	BlindReason       string // empty where it is not

	// Of the plan.
	Share           int // endpoints that it should check
	ChecksPerSecond float64
	PlanDigest      uint64
}

// CutPath is a zone about whose endpoints a checker is not believed.
type CutPath struct{ To, Reason string }

// AvailabilityQuery narrows a list of availability; zero fields do not.
type AvailabilityQuery struct {
	Cluster    string
	Address    string
	Start, End time.Time
	After      *health.Endpoint
	Limit      int
}

// AvailabilityPage is an answer, and the times that it is about.
type AvailabilityPage struct {
	Found      []Availability
	More       bool
	Start, End time.Time
}

// Availability is how long an endpoint was what.
type Availability struct {
	Endpoint    health.Endpoint
	In          map[health.Status]time.Duration
	Transitions int
}

// Kinds of client.
const (
	KindSubscriber = "subscriber"
	KindChecker    = "checker"
	KindUpstream   = "upstream"
)

// Client is one type of resource that one client has.
type Client struct {
	ID, Kind, TypeURL               string
	Connected                       bool
	Resources, Synced, Stale, Error int
	Unasked                         int // assignments of checked clusters that it took and does not ask for
	LastAck                         time.Time
	LastError                       string
	Poll                            *Poll // nil where it does not poll
}

// Poll is a client's latest poll.
type Poll struct {
	By          string
	Time        time.Time
	Given, Held string // versions
}
