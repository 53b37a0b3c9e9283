package simulate

import (
	"hdsd/assign"
	"hdsd/health"
)

// Input is a fleet and its clusters.
type Input struct {
	Checkers   []health.Checker
	Clusters   []Cluster // with different names
	DataPlanes []DataPlanes
}

// Cluster is endpoints that are checked alike.
type Cluster struct {
	Name           string
	Needs          []health.Ability // abilities that its checkers need
	Reach          *health.Reach    // nil: every checker
	Redundancy     int
	Rate           int64 // checks in 1,000 seconds of one endpoint by one checker
	Burst          int64 // the same within a burst of checks; no less than Rate
	Zones, Regions assign.Placement
	Places         []Place // checked endpoints
	Aside          []Aside // endpoints that are not checked
}

// Place is the endpoints in one locality.
type Place struct {
	Locality health.Locality
	Hashes   []health.Hash
}

// Aside is endpoints that no fleet could check. Their number is 0 if it is unknown.
type Aside struct {
	Reason    string
	Endpoints int
}

// DataPlanes is Envoys that have the same clusters.
type DataPlanes struct {
	Count int
	Uses  func(cluster string) bool
}
