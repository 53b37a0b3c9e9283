package simulate

import (
	"hdsd/assign"
	"hdsd/health"
)

// Input is a fleet and what it has to check.
type Input struct {
	Checkers   []health.Checker
	Clusters   []Cluster // of different names
	DataPlanes []DataPlanes
}

// Cluster is endpoints that are checked alike.
type Cluster struct {
	Name           string
	Needs          []health.Ability // of its checkers
	Reach          *health.Reach    // nil: every checker
	Redundancy     int
	Rate           int64 // checks in 1,000 seconds that an endpoint costs each of its checkers
	Burst          int64 // the same in the bursts in which checks come; no less than Rate
	Zones, Regions assign.Placement
	Places         []Place // the endpoints that are checked
	Aside          []Aside // those that are not
}

// Place is endpoints in one locality.
type Place struct {
	Locality health.Locality
	Hashes   []health.Hash
}

// Aside is endpoints that no fleet could check. Their number is 0 if nothing is known
// of a cluster's endpoints.
type Aside struct {
	Reason    string
	Endpoints int
}

// DataPlanes is Envoys that have the same clusters.
type DataPlanes struct {
	Count int
	Has   func(cluster string) bool
}
