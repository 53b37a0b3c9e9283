package health

// Ability is something that a checker can or cannot do: one of the kinds
// below, or the name of an extension in its binary, as
// "envoy.transport_sockets.tls".
type Ability string

// The kinds of health check, and what else depends on the binary's version.
const (
	HTTP   Ability = "HTTP"
	TCP    Ability = "TCP"
	GRPC   Ability = "GRPC"
	Redis  Ability = "REDIS"
	Thrift Ability = "THRIFT"

	// SeveralChecks is to report an endpoint healthy only if all of several
	// health checks pass.
	SeveralChecks Ability = "SEVERAL_CHECKS"
)

// Kinds lists the abilities that are kinds of health check, in the order in
// which they are shown.
var Kinds = []Ability{HTTP, TCP, GRPC, Redis, Thrift}

// Abilities is a set of them; not changed once made, so that it can be shared.
type Abilities map[Ability]struct{}

// Has tells whether all of needs are there.
func (a Abilities) Has(needs ...Ability) bool {
	for _, need := range needs {
		if _, ok := a[need]; !ok {
			return false
		}
	}
	return true
}

// Checker is a program that checks endpoints on hdsd's behalf.
type Checker struct {
	ID        string // its node id
	Locality  Locality
	Version   string // as "envoy/1.40.0"
	Abilities Abilities
	Metadata  map[string]string // string values of its node's metadata

	// What it can take: how many endpoints in comparison to others, 0 counting
	// as 1, and how many checks a second at most, 0 for any number.
	Weight, MaxChecksPerSecond float64
}

// Reach says which checkers can reach an endpoint; the zero Reach is all.
type Reach struct {
	Localities []Locality        // one must match; an empty part matches any
	Metadata   map[string]string // all must be there
}

// Includes tells whether c is within reach.
func (r *Reach) Includes(c *Checker) bool {
	if r == nil {
		return true
	}
	for key, value := range r.Metadata {
		if have, ok := c.Metadata[key]; !ok || have != value {
			return false
		}
	}
	for _, l := range r.Localities {
		if l.includes(c.Locality) {
			return true
		}
	}
	return len(r.Localities) == 0
}

func (l Locality) includes(m Locality) bool {
	return (l.Region == "" || l.Region == m.Region) &&
		(l.Zone == "" || l.Zone == m.Zone) &&
		(l.SubZone == "" || l.SubZone == m.SubZone)
}
