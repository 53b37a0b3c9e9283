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
)

// Backend knows the answers.
type Backend interface {
	// Endpoints gives up to query.Limit endpoints after query.After, ordered
	// by cluster, locality and address, and whether there are more.
	Endpoints(ctx context.Context, query EndpointQuery) ([]EndpointHealth, bool, error)

	// Transitions gives a page of committed history and the token of the next.
	Transitions(ctx context.Context, query TransitionQuery) ([]health.Transition, string, error)

	// Clusters gives up to limit clusters after the name, by name, and whether
	// there are more.
	Clusters(ctx context.Context, after string, limit int) ([]Cluster, bool, error)

	// Checkers gives all checkers, by id.
	Checkers(ctx context.Context) ([]Checker, error)
}

// EndpointQuery narrows a list of endpoints; zero fields do not.
type EndpointQuery struct {
	Cluster string
	Address string
	Health  *health.Status
	After   *health.Endpoint
	Limit   int
}

// EndpointHealth is an endpoint and what is held to be true of it.
type EndpointHealth struct {
	Endpoint health.Endpoint
	Verdict  health.Verdict
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
	Endpoints, Healthy, Unhealthy, Unknown int
	Quarantined                            []Quarantined
}

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
}
