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
	NotChecked         Kind = "NOT_CHECKED"
	CheckerSilent      Kind = "CHECKER_SILENT"
	NoLeader           Kind = "NO_LEADER"
	ReplicaLost        Kind = "REPLICA_LOST"
	EngineLost         Kind = "ENGINE_LOST"
)

// Kinds that receivers get beside the configured ones.
const (
	More Kind = "MORE" // too many conditions to notify each
	Test Kind = "TEST" // requested by an operator
)

// Severe reports whether a kind means that traffic or all checks are affected as a whole.
func (k Kind) Severe() bool {
	return k == ClusterDown || k == ZoneDown || k == NoCheckers || k == NoLeader
}

// Key identifies a condition. Fields that do not apply to a kind are empty.
type Key struct {
	Kind    Kind   `json:"kind"`
	Cluster string `json:"cluster,omitempty"` // as its source and data planes call it
	Version string `json:"version,omitempty"` // of the cluster, where the relay has several; empty for the first
	Zone    string `json:"zone,omitempty"`    // region/zone, of an endpoint region/zone/sub-zone
	Address string `json:"address,omitempty"` // of an endpoint; empty for the others of its cluster
	Name    string `json:"name,omitempty"`    // of a checker, a source or a replica
}

// Condition is a problem.
type Condition struct {
	Key
	Since   time.Time `json:"since"`
	Text    string    `json:"summary"`
	Command string    `json:"command"` // the next command to run
}

// ID names one occurrence of a condition, the same at its beginning and its end.
func (c *Condition) ID() string {
	parts := []string{string(c.Kind), c.Cluster, c.Zone, c.Address, c.Name, c.Since.UTC().Format(time.RFC3339Nano)}
	if c.Version != "" {
		parts = append(parts, c.Version)
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:12])
}

// Change is a condition that begins or ends.
type Change struct {
	Condition // of one that ends, only the Key counts
	Ended     bool
}
