package notify

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
)

// Kind is a kind of condition.
type Kind string

// The kinds that can be configured.
const (
	EndpointDown   Kind = "ENDPOINT_DOWN"
	ClusterDown    Kind = "CLUSTER_DOWN"
	ZoneDown       Kind = "ZONE_DOWN"
	NoCheckers     Kind = "NO_CHECKERS"
	CheckerDoubted Kind = "CHECKER_DOUBTED"
	ShrinkageHeld  Kind = "SHRINKAGE_HELD"
	HistoryFailing Kind = "HISTORY_FAILING"
	TooFewCheckers Kind = "TOO_FEW_CHECKERS"
	Panic          Kind = "PANIC"
	SourceBroken   Kind = "SOURCE_BROKEN"

	ProbeLimitReached  Kind = "PROBE_LIMIT_REACHED"
	NoHealthyEndpoint  Kind = "NO_HEALTHY_ENDPOINT"
	DataPlanesRefusing Kind = "DATA_PLANES_REFUSING"
)

// Kinds that receivers get beside those that they ask for.
const (
	More Kind = "MORE" // too much is wrong to tell each
	Test Kind = "TEST" // an operator asked for it
)

// Severe reports whether a kind means that traffic or all checks are affected as a whole.
func (k Kind) Severe() bool { return k == ClusterDown || k == ZoneDown || k == NoCheckers }

// Key identifies a condition. What a kind is not about is empty.
type Key struct {
	Kind    Kind   `json:"kind"`
	Cluster string `json:"cluster,omitempty"`
	Zone    string `json:"zone,omitempty"`    // region/zone, of an endpoint region/zone/sub-zone
	Address string `json:"address,omitempty"` // of an endpoint; empty for the others of its cluster
	Name    string `json:"name,omitempty"`    // of a checker or a source
}

// Condition is something that is wrong.
type Condition struct {
	Key
	Since   time.Time `json:"since"`
	Text    string    `json:"summary"`
	Command string    `json:"command"` // to go on with
}

// ID names one occurrence of a condition, the same at its beginning and its end.
func (c *Condition) ID() string {
	sum := sha256.Sum256([]byte(strings.Join([]string{
		string(c.Kind), c.Cluster, c.Zone, c.Address, c.Name, c.Since.UTC().Format(time.RFC3339Nano),
	}, "\x00")))
	return hex.EncodeToString(sum[:12])
}

// Change is a condition that begins, or is over.
type Change struct {
	Condition // of one that is over, only the Key counts
	Over      bool
}
