package api

import (
	"context"
	"errors"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"hdsd/health"
	"hdsd/incident"
)

// Errors of a Backend, which callers see as gRPC codes.
var (
	// ErrUnknownCluster reports that no cluster of that name was ever known.
	ErrUnknownCluster = errors.New("unknown cluster")

	// ErrBadToken reports that a page token does not belong to this question.
	ErrBadToken = errors.New("page_token is not one given out for this question: repeat the first request without it")

	// ErrTooOld reports that the history does not reach back to a resume token.
	ErrTooOld = errors.New("the history no longer reaches back to the resume token: watch again without it")
)

// Backend answers queries.
type Backend interface {
	// Endpoints returns up to query.Limit endpoints after query.After, ordered by
	// cluster, locality and address, and whether there are more.
	Endpoints(ctx context.Context, query EndpointQuery) ([]EndpointHealth, bool, error)

	// Transitions returns a page of committed history, and the token of the next page.
	Transitions(ctx context.Context, query TransitionQuery) ([]health.Transition, string, error)

	// Gaps returns the gaps of one page of Transitions, of which next is the token.
	Gaps(ctx context.Context, query TransitionQuery, next string) ([]Gap, error)

	// HistoryBegan returns the time from which on the history has the health of endpoints.
	HistoryBegan() (time.Time, error)

	// HistoryFailing returns why the disk does not take the history at present, or "".
	HistoryFailing() string

	// Availability returns how long endpoints had each health, for up to query.Limit
	// endpoints after query.After in the order of Endpoints, and whether there are
	// more. Zero times default to the start of the history and to now.
	Availability(ctx context.Context, query AvailabilityQuery) (AvailabilityPage, error)

	// Incidents returns incidents as incident.Log.List does, of the clusters that the caller
	// may see.
	Incidents(ctx context.Context, query incident.Query) ([]incident.Incident, bool, error)

	// RecordedEvents returns up to query.Limit events that the caller may see, by time, and the
	// place to go on after, 0 at the end.
	RecordedEvents(ctx context.Context, query RecordedEventQuery) (found []RecordedEvent, next uint64, err error)

	// Clusters returns up to query.Limit clusters after query.After, by name, and whether
	// there are more.
	Clusters(ctx context.Context, query ClusterQuery) ([]Cluster, bool, error)

	// Checkers returns all checkers, by id.
	Checkers(ctx context.Context) ([]Checker, error)

	// Paths returns the paths between zones, by zone.
	Paths(ctx context.Context) ([]Path, error)

	// Clients returns all clients, one for each client and type; of a cluster, the data
	// planes that asked for it.
	Clients(ctx context.Context, cluster string) ([]Client, error)

	// Status says how hdsd and the clusters that the caller may see are.
	Status(ctx context.Context) (Status, error)

	// Overview returns up to limit clusters that are worst off, of those that the caller may
	// see.
	Overview(ctx context.Context, limit int) (Overview, error)

	// Watch starts to watch, or resumes after a token.
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
	Hostname  string // from its source; empty without one, and in answers about the past
	Verdict   health.Verdict
	Published *Published      // nil if the verdict is published, or nothing
	Override  *Override       // in place of the verdict; nil if the votes decide
	Voted     *health.Verdict // the verdict of the votes under an override; else nil
	HeldSince time.Time       // since when no believed vote stands behind the verdict; zero if one does
}

// Published is the published health of an endpoint if it is not the verdict, and why.
type Published struct {
	Status health.Status
	Reason string
}

// TransitionQuery narrows a list of transitions; zero fields do not.
type TransitionQuery struct {
	Cluster     string
	Address     string
	Filter      health.Filter // of the health after the change
	Checker     string        // one that the change has a vote of
	Start, End  time.Time
	NewestFirst bool
	Limit       int
	Token       string
}

// Gap is a part of the history that is missing.
type Gap struct {
	Start, End  time.Time // of the first and the last transition that is missing
	Transitions uint64
}

// ClusterQuery narrows a list of clusters; zero fields do not.
type ClusterQuery struct {
	Cluster string
	Filter  health.Filter // of some endpoint; Unhealthy: or of what is not checked
	After   string
	Limit   int
}

// HealthCounts counts endpoints by health. All answers count alike: Healthy has the endpoints that are
// up, Unhealthy those that are down. Healthy, Unhealthy, Draining and Unknown add up to all.
type HealthCounts struct {
	Healthy, Unhealthy, Draining, Unknown int

	Degraded int // of Healthy
	Timeout  int // of Unhealthy
}

// Add adds numbers of endpoints by status.
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
	Checked      bool
	Mode         Mode
	Endpoints    int
	HealthCounts
	Held              int
	Overridden        int // endpoints under an override
	Quarantined       []Quarantined
	RejectedReason    string                // why hdsd uses the version before the latest; empty if it uses the latest
	NoEndpointsReason string                // empty if there are some
	Panic             string                // why Envoys are in panic for it; empty if they are not
	PanicSince        time.Time             // zero: unknown
	HealthChecks      []*corev3.HealthCheck // as checkers are sent them; only of one that was asked for
}

// Mode says whether the verdicts of a cluster are published.
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
	TroubledSince     time.Time // since when it is doubted, silent or blind, as far as known
	Lost              *Lost     // nil if it is connected, or never was

	// Of the plan.
	Share           int // endpoints that it should check
	ChecksPerSecond float64
	PlanDigest      uint64
}

// Path is what votes over the path between two zones say.
type Path struct {
	From, To                   string // "region/zone"
	Votes, Downs, Contradicted int
	CutReason                  string // why its downs are not believed
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

// AvailabilityPage is a page of availability, with its period.
type AvailabilityPage struct {
	Found      []Availability
	More       bool
	Start, End time.Time
}

// Availability is how long an endpoint had each health. What is added up has the parts of
// the endpoint that all have in common, or a checker.
type Availability struct {
	Endpoint    health.Endpoint
	Checker     string
	In          [health.Degraded + 1]time.Duration // by health.Status
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
	Unasked                         int // assignments of checked clusters that it took without asking for them
	LastAck                         time.Time
	LastError                       string
	Poll                            *Poll // nil if it does not poll
}

// Poll is a client's latest poll.
type Poll struct {
	By          string
	Time        time.Time
	Given, Held string // versions
}

// Probation is that of a checker whose votes do not decide yet.
type Probation struct {
	Since  time.Time
	Reason string // how far it is
}

// Lost says when a checker was lost, and what became of its endpoints.
type Lost struct {
	Since  time.Time
	Reason string
	Gone   bool // its seats are not kept any more
}
