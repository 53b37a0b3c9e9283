package simulate

import (
	"hdsd/assign"
	"hdsd/health"
)

// Input is what there is.
type Input struct {
	Checkers   []health.Checker
	Clusters   []Cluster // of different names
	DataPlanes []DataPlanes
}

// Cluster is some endpoints that are checked alike.
type Cluster struct {
	Name           string
	Needs          []health.Ability // of its checkers
	Reach          *health.Reach    // nil: every checker
	Redundancy     int
	Rate           int64 // checks in 1,000 seconds that an endpoint costs each of its checkers
	Zones, Regions assign.Placement
	Places         []Place // what is checked
	Aside          []Aside // what is not
}

// Place is some endpoints in one locality.
type Place struct {
	Locality health.Locality
	Hashes   []health.Hash
}

// Aside is some endpoints that are not checked, whoever the checkers are. It has
// none where nothing is known of a cluster's endpoints.
type Aside struct {
	Reason    string
	Endpoints int
}

// DataPlanes are some Envoys that have the same clusters.
type DataPlanes struct {
	Count int
	Has   func(cluster string) bool
}
