package api

import (
	"context"
	"errors"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"hdsd/health"
)

// Errors of a Backend, which callers see as gRPC codes.
var (
	// ErrUnknownCluster means that no cluster of that name ever existed.
	ErrUnknownCluster = errors.New("unknown cluster")

	// ErrBadToken means that a page token belongs to another query.
	ErrBadToken = errors.New("page_token is not one given out for this question: repeat the first request without it")

	// ErrTooOld means that the history does not reach back to a resume token.
	ErrTooOld = errors.New("the history no longer reaches back to the resume token: watch again without it")
)

// Backend answers queries.
type Backend interface {
	// Endpoints returns up to query.Limit endpoints after query.After, ordered by cluster,
	// locality and address, and whether more follow.
	Endpoints(ctx context.Context, query EndpointQuery) ([]EndpointHealth, bool, error)

	// Transitions returns a page of committed history, and the token of the next page.
	Transitions(ctx context.Context, query TransitionQuery) ([]health.Transition, string, error)

	// Gaps returns the gaps of one page of Transitions; next is the token of that page.
	Gaps(ctx context.Context, query TransitionQuery, next string) ([]Gap, error)

	// HistoryBegan returns the time from which the history has health.
	HistoryBegan() (time.Time, error)

	// HistoryFailing returns the reason why the disk does not take the history, or "".
	HistoryFailing() string

	// Availability returns the time of endpoints in each health, for up to query.Limit endpoints
	// after query.After in the order of Endpoints. Zero times default to the start of the
	// history and to now.
	Availability(ctx context.Context, query AvailabilityQuery) (AvailabilityPage, error)

	// Incidents returns incidents as incident.Log.List does, of clusters visible to the caller.
	Incidents(ctx context.Context, query IncidentQuery) (IncidentPage, error)

	// RecordedEvents returns up to query.Limit events visible to the caller, by time, and the
	// place after which the next page begins, 0 at the end.
	RecordedEvents(ctx context.Context, query RecordedEventQuery) (found []RecordedEvent, next uint64, err error)

	// Clusters returns up to query.Limit clusters after query.After, by name, and whether more
	// follow.
	Clusters(ctx context.Context, query ClusterQuery) ([]Cluster, bool, error)

	// Checkers returns all checkers, by id.
	Checkers(ctx context.Context) ([]Checker, error)

	// Paths returns the paths between zones, by zone.
	Paths(ctx context.Context) ([]Path, error)

	// Clients returns all clients, one for each client and type; for a cluster, its data planes.
	Clients(ctx context.Context, cluster string) ([]Client, error)

	// Replicas returns all replicas, by id, and the epoch of their leader: 0 without one, and for
	// a coordinator alone.
	Replicas(ctx context.Context) ([]Replica, int64, error)

	// Status returns the state of hdsd and of the clusters visible to the caller.
	Status(ctx context.Context) (Status, error)

	// Overview returns up to limit of the worst clusters visible to the caller.
	Overview(ctx context.Context, limit int) (Overview, error)

	// Watch starts a watch, or resumes one behind a token.
	Watch(ctx context.Context, query WatchQuery) (Watcher, error)
}

// EndpointQuery narrows a list of endpoints; zero fields do not.
type EndpointQuery struct {
	Cluster string
	Address string
	Health  *health.Status
	Filter  health.Filter
	AsOf    time.Time // the time of the health; zero: now
	After   *health.Endpoint
	Limit   int
}

// EndpointHealth is the health of an endpoint, and its reasons.
type EndpointHealth struct {
	Endpoint  health.Endpoint
	Hostname  string // from its source; empty if unknown, and in answers about the past
	Verdict   health.Verdict
	Published *Published      // nil if the verdict is published, or nothing
	Override  *Override       // in place of the verdict; nil without one
	Voted     *health.Verdict // the verdict by votes under an override; else nil
	HeldSince time.Time       // since when no believed vote stands behind the verdict; zero if one does
	Version   string          // of the cluster, as Cluster has it
}

// Published is the published health of an endpoint where it differs from the verdict, and the
// reason.
type Published struct {
	Status health.Status
	Reason string
}

// TransitionQuery narrows a list of transitions; zero fields do not.
type TransitionQuery struct {
	Cluster     string
	Address     string
	Filter      health.Filter // of the health after the change
	Checker     string        // a checker with a vote in the change
	Start, End  time.Time
	NewestFirst bool
	Limit       int
	Token       string
}

// Gap is a part of the history that is missing.
type Gap struct {
	Start, End  time.Time // times of the first and the last missing transition
	Transitions uint64
}

// ClusterQuery narrows a list of clusters; zero fields do not.
type ClusterQuery struct {
	Cluster string
	Filter  health.Filter // of any endpoint; Unhealthy also matches clusters that are not checked
	After   string
	Limit   int
}

// HealthCounts counts endpoints by health, in the same way in all answers: Healthy counts
// endpoints that are up, Unhealthy those that are down. Healthy, Unhealthy, Draining and Unknown
// add up to all.
type HealthCounts struct {
	Healthy, Unhealthy, Draining, Unknown int

	Degraded int // of Healthy
	Timeout  int // of Unhealthy
}

// Add adds counts by status.
func (n *HealthCounts) Add(counts *[health.Degraded + 1]int) {
	n.Healthy += counts[health.Healthy] + counts[health.Degraded]
	n.Unhealthy += counts[health.Unhealthy] + counts[health.Timeout]
	n.Draining += counts[health.Draining]
	n.Unknown += counts[health.Unknown]
	n.Degraded += counts[health.Degraded]
	n.Timeout += counts[health.Timeout]
}

// Cluster is one cluster of the sources.
type Cluster struct {
	Name, Source string
	Version      string // where the relay has several; empty for the first
	Checked      bool
	Mode         Mode
	Endpoints    int
	HealthCounts
	Held              int
	Overridden        int // endpoints under an override
	Quarantined       []Quarantined
	RejectedReason    string                // reason why hdsd uses an earlier version; empty if it uses the latest
	NoEndpointsReason string                // reason why the cluster has no endpoints; empty if it has some
	Panic             string                // reason why Envoys are in panic for it; empty if they are not
	PanicSince        time.Time             // zero: unknown
	HealthChecks      []*corev3.HealthCheck // as sent to checkers; only if requested
}

// Mode is whether the verdicts of a cluster are published.
type Mode uint8

// Modes.
const (
	Publish Mode = iota
	Shadow
	Frozen
)

// Quarantined is an endpoint that is not checked, or the whole cluster if the address
// is empty.
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
	Operator          *Trust // nil if not set
	CutPaths          []CutPath
	BlindReason       string     // empty if it is not blind
	Probation         *Probation // nil if it is established
	Silent            bool
	TroubledSince     time.Time // start of doubt, silence or blindness, as far as known
	Lost              *Lost     // nil if it is connected, or never was
	Replica           string    // has its stream, or had it last; empty for a coordinator alone

	// Of the plan.
	Share           int // planned number of endpoints
	ChecksPerSecond float64
	PlanDigest      uint64
}

// Path is the summary of votes over the path between two zones.
type Path struct {
	From, To                   string // "region/zone"
	Votes, Downs, Contradicted int
	CutReason                  string // reason why its downs are not believed
}

// CutPath is a zone for whose endpoints a checker is not believed.
type CutPath struct{ To, Reason string }

// AvailabilityQuery narrows a list of availability; zero fields do not.
type AvailabilityQuery struct {
	Cluster    string
	Address    string
	Start, End time.Time
	After      *health.Endpoint
	Limit      int
}

// AvailabilityPage is a page of availability, with its period.
type AvailabilityPage struct {
	Found      []Availability
	More       bool
	Start, End time.Time
}

// Availability is the time of an endpoint in each health. An aggregate has a checker, or the
// common parts of its endpoints.
type Availability struct {
	Endpoint    health.Endpoint
	Checker     string
	Durations   [health.Degraded + 1]time.Duration // by health.Status
	Transitions int
}

// Kinds of client.
const (
	KindSubscriber = "subscriber"
	KindChecker    = "checker"
	KindUpstream   = "upstream"
)

// Client is one type of resource of one client.
type Client struct {
	ID, Kind, TypeURL               string
	Connected                       bool
	Resources, Synced, Stale, Error int
	Unasked                         int // assignments of checked clusters that it has but did not request
	LastAck                         time.Time
	LastError                       string
	Poll                            *Poll  // nil if it does not poll
	Replica                         string // that it is connected to; empty for a coordinator alone
}

// Poll is a client's latest poll.
type Poll struct {
	Protocol     string
	Time         time.Time
	Served, Held string // versions
}

// Probation is the state of a checker whose votes do not decide yet.
type Probation struct {
	Since  time.Time
	Reason string // progress
}

// Lost is the time when a checker was lost, and the state of its endpoints.
type Lost struct {
	Since  time.Time
	Reason string
	Gone   bool // its seats are no longer kept
}
