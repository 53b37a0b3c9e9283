package health

// Ability is a capability of a checker: one of the kinds below, or an extension of its binary,
// such as "envoy.transport_sockets.tls".
type Ability string

// The kinds of health check, and abilities that depend on the binary's version.
const (
	HTTP   Ability = "HTTP"
	TCP    Ability = "TCP"
	GRPC   Ability = "GRPC"
	Redis  Ability = "REDIS"
	Thrift Ability = "THRIFT"

	// SeveralChecks means that an endpoint with several health checks is reported
	// healthy only if all of them pass.
	SeveralChecks Ability = "SEVERAL_CHECKS"

	// FreshCodes means that a reported status code is always that of the latest probe,
	// and absent if that probe had no answer.
	FreshCodes Ability = "FRESH_CODES"
)

// Kinds lists the kinds of health check in the order in which they are shown.
var Kinds = []Ability{HTTP, TCP, GRPC, Redis, Thrift}

// Abilities is a set of abilities. It never changes, so it can be shared.
type Abilities map[Ability]struct{}

// Has reports whether all of needs are in the set.
func (a Abilities) Has(needs ...Ability) bool {
	for _, need := range needs {
		if _, ok := a[need]; !ok {
			return false
		}
	}
	return true
}

// Checker is a program that checks endpoints for hdsd.
type Checker struct {
	ID        string // its node id
	Locality  Locality
	Version   string // such as "envoy/1.40.0"
	Abilities Abilities
	Metadata  map[string]string // string values of its node's metadata
	Identity  string            // the verified name of its certificate; empty without one

	// Weight is the number of endpoints that it can check in comparison to others; 0 counts as
	// 1. MaxChecksPerSecond is 0 for any number.
	Weight, MaxChecksPerSecond float64
}

// Reach selects the checkers that can reach an endpoint. The zero Reach is all.
type Reach struct {
	Localities []Locality        // one must match; an empty field matches any
	Metadata   map[string]string // the checker must have all
}

// Includes reports whether c can reach the endpoint.
func (r *Reach) Includes(c *Checker) bool {
	if r == nil {
		return true
	}
	for key, value := range r.Metadata {
		if actual, ok := c.Metadata[key]; !ok || actual != value {
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
